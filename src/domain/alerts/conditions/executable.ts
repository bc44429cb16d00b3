import { netOfFills } from '../../markets/executable.ts';
import { ORDER_SIDES, type OrderSide } from '../../markets/market.ts';
import { type Data, joined, numberOf, observed, prefixed, textOf, word } from '../../webhooks/chat-values.ts';
import { type BookCondition, isAtLeast, isAtMost } from '../condition.ts';

const AT_LEAST_OR_MOST = { at_most: 'at most', at_least: 'at least' } as const;
const toWords = (direction: unknown) => AT_LEAST_OR_MOST[direction === 'at_most' ? 'at_most' : 'at_least'];
const VERBS: Readonly<Record<OrderSide, string>> = { buy: 'buying', sell: 'selling' };

/** The price with fee of an order is on a side of a threshold. */
export const executable: BookCondition = {
  of: 'book',
  label: 'Price of an order with its fee',
  required: ['side', 'price', 'direction'],
  optional: ['size', 'notional'],
  faults({ size, notional }, addFault) {
    if ((size === undefined) === (notional === undefined)) addFault('size', 'must be given, or notional, but not both');
  },
  direction: {
    label: 'Fires when the price is',
    options: [
      ['at_most', 'at most this'],
      ['at_least', 'at least this'],
    ],
  },
  threshold: () => 'price',
  probe: () => 'executable',
  orders: ({ side = ORDER_SIDES[0], by, amount }) => [{ side, by, amount }],
  measure([fill], { threshold, direction }) {
    const price = fill?.priceWithFee ?? null;
    if (price === null) return undefined;
    return (direction === 'at_most' ? isAtMost(price, threshold) : isAtLeast(price, threshold)) ? { price } : undefined;
  },
  sentence({ side = 'buy', size, notional, price, direction }, words) {
    const order = size === undefined ? words.amount(notional) : words.number(size);
    return `${VERBS[side]} ${order}${words.after('of')} has a price with fee of ${toWords(direction)} ${words.price(price)}`;
  },
  line: (data) =>
    observed(
      joined(word(data['side']), orderOf(data), prefixed('for', word(data['targetPrice']))),
      word(data['priceWithFee']),
    ),
  chat({ subject, data }) {
    const price = numberOf(data['priceWithFee']);
    const threshold = joined(toWords(data['direction']), numberOf(data['targetPrice']));
    return {
      title: joined(
        'Order alert:',
        textOf(data['side']),
        orderOf(data),
        subject,
        price && `at ${price}`,
        `(${threshold})`,
      ),
      fields: [
        ['Price with fee', price],
        ['Price', numberOf(data['averagePrice'])],
        ['Fee', numberOf(data['fee'])],
        ['Threshold', threshold],
      ],
    };
  },
};

function orderOf(data: Data): string {
  const size = word(data['size']);
  const notional = word(data['notional']);
  return size === '' && notional !== '' ? `${notional} of money` : size;
}

function priceOf(fill: unknown): string | undefined {
  return numberOf((fill as Data | undefined)?.['priceWithFee']);
}

/** A purchase of one outcome and a sale of as many units of another leave at least a threshold per unit. */
export const netDifference: BookCondition = {
  of: 'book',
  label: 'Difference of a purchase and a sale',
  required: ['sellTokenMint', 'size', 'price'],
  optional: ['direction'],
  priceLabel: 'Net per unit',
  direction: { label: 'Fires when the net is', options: [['at_least', 'at least this']] },
  threshold: () => 'price',
  probe: () => 'net_difference',
  orders: ({ by, amount }) => ORDER_SIDES.map((side) => ({ side, by, amount })),
  measure([buy, sell], { threshold }) {
    const net = buy && sell ? netOfFills(buy, sell) : null;
    if (net === null || !buy?.priceWithFee || !isAtLeast(net.perUnit, threshold)) return undefined;
    return { price: buy.priceWithFee, value: net.perUnit };
  },
  sentence: ({ size, price }, words) =>
    joined(
      `buying ${words.number(size)}${words.after('of')} and selling as many of ${words.other}`,
      `leaves at least ${words.difference(price)} per unit with fees`,
    ),
  line: (data) =>
    observed(joined('net', word(data['targetPrice']), prefixed('of', word(data['size']))), word(data['net'])),
  chat({ subject, data }) {
    const net = numberOf(data['net']);
    return {
      title: joined('Net alert:', 'buy', word(data['size']), subject, 'and sell', textOf(data['sellTokenSymbol'])),
      fields: [
        ['Net per unit', net],
        ['Threshold', joined('at least', numberOf(data['targetPrice']))],
        ['Buy at', priceOf(data['buy'])],
        ['Sell at', priceOf(data['sell'])],
        ['Sold market', textOf(data['sellTitle'])],
      ],
    };
  },
};
