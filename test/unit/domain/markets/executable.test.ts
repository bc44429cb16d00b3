import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { executable, MAX_STORED_LEVELS, type Order } from '../../../../src/domain/markets/executable.ts';
import type { FeeRule } from '../../../../src/domain/markets/fee.ts';
import type { PriceLevel } from '../../../../src/domain/markets/market.ts';
import { type Decimal, decimal, ONE, subtractDecimals } from '../../../../src/domain/values/decimal.ts';
import { listRecordedFiles, readRecordedLines, venueDataFolder } from '../../../support/venue-data.ts';

/** The model: exact fractions, which know no digits. */
interface Fraction {
  over: bigint;
  under: bigint;
}
const fraction = (text: string): Fraction => {
  const [whole = '0', part = ''] = text.replace('-', '').split('.');
  const over = BigInt(whole + part);
  return { over: text.startsWith('-') ? -over : over, under: 10n ** BigInt(part.length) };
};
const plus = (a: Fraction, b: Fraction) => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
});
const times = (a: Fraction, b: Fraction) => ({ over: a.over * b.over, under: a.under * b.under });
const minus = (a: Fraction, b: Fraction) => plus(a, { over: -b.over, under: b.under });
const per = (a: Fraction, b: Fraction) => ({ over: a.over * b.under, under: a.under * b.over });
const isLess = (a: Fraction, b: Fraction) => minus(a, b).over < 0n;
const NOTHING = fraction('0');

/** The greatest multiple of 10^-digits that is at most the value. */
function floorAt({ over, under }: Fraction, digits: number): Fraction {
  const scaled = over * 10n ** BigInt(digits);
  const quotient = scaled / under - (scaled % under !== 0n && scaled < 0n ? 1n : 0n);
  return { over: quotient, under: 10n ** BigInt(digits) };
}
const ceilAt = (value: Fraction, digits: number) =>
  minus(NOTHING, floorAt({ over: -value.over, under: value.under }, digits));

function roundHalfToEven({ over, under }: Fraction, digits: number): Fraction {
  const step = 10n ** BigInt(digits);
  const lower = floorAt({ over, under }, digits);
  const twice = times(minus({ over, under }, lower), fraction(`${2n * step}`));
  const isUp = isLess(ONE_WHOLE, twice) || (minus(twice, ONE_WHOLE).over === 0n && lower.over % 2n !== 0n);
  return isUp ? { over: lower.over + 1n, under: step } : lower;
}
const ONE_WHOLE = fraction('1');

interface Case {
  bids: PriceLevel[];
  asks: PriceLevel[];
  order: Order;
  fee: FeeRule | null;
  sizeDigits: number;
}

/** Takes the smallest step of a size again and again would be too slow: the model takes level by level in fractions. */
function modelOf({ bids, asks, order, fee, sizeDigits }: Case) {
  const levels = order.side === 'buy' ? asks : bids;
  let rest = fraction(order.amount);
  let [size, notional, fees] = [NOTHING, NOTHING, NOTHING];
  let isComplete = false;
  let used: PriceLevel[] = [];
  for (const level of levels) {
    const [price, offered] = [fraction(level.price), fraction(level.size)];
    const wanted =
      order.by === 'size' ? rest : price.over === 0n ? plus(offered, ONE_WHOLE) : floorAt(per(rest, price), sizeDigits);
    const taken = isLess(offered, wanted) ? offered : wanted;
    const cost = times(taken, price);
    if (taken.over !== 0n) {
      used = [...used, level];
      size = plus(size, taken);
      notional = plus(notional, cost);
      rest = minus(rest, order.by === 'size' ? taken : cost);
      fees = plus(fees, feeOf(fee, price, taken));
    }
    isComplete = !isLess(offered, wanted) || rest.over === 0n;
    if (isComplete) break;
  }
  const charged = chargedFor(fee, order.side === 'buy', { notional, fees });
  return { size, notional, charged, isComplete, rest, used };
}

function feeOf(fee: FeeRule | null, price: Fraction, taken: Fraction): Fraction {
  if (fee === null || fee.model === 'none') return NOTHING;
  let raw = times(taken, fraction(fee.takerRate));
  for (let n = 0; n < fee.exponent; n += 1) raw = times(raw, times(price, minus(ONE_WHOLE, price)));
  if (fee.rounding === 'up') return ceilAt(raw, fee.digits);
  return floorAt(plus(raw, times(fraction('0.5'), { over: 1n, under: 10n ** BigInt(fee.digits) })), fee.digits);
}

/** The account pays the next greater amount, and gets the next smaller one. */
function chargedFor(fee: FeeRule | null, isBuy: boolean, { notional, fees }: { notional: Fraction; fees: Fraction }) {
  const digits = fee?.model === 'price_curve' ? fee.balanceDigits : undefined;
  if (digits === undefined) return fees;
  if (isBuy) return minus(ceilAt(plus(notional, fees), digits), notional);
  return minus(notional, floorAt(minus(notional, fees), digits));
}

const isEqual = (text: Decimal | null, value: Fraction) => {
  expect(text === null ? null : minus(fraction(text), value).over).toBe(0n);
};

function expectModel(one: Case): void {
  const { order, fee, bids, asks } = one;
  const found = executable({ bids, asks }, order, { fee, sizeDigits: one.sizeDigits });
  const model = modelOf(one);
  isEqual(found.filledSize, model.size);
  isEqual(found.filledNotional, model.notional);
  expect(found.levels).toBe(model.used.length);
  const isBelowStep = model.isComplete && model.size.over === 0n;
  expect([found.isComplete, found.isBelowStep]).toEqual([model.isComplete && !isBelowStep, isBelowStep]);
  const side = order.side === 'buy' ? asks : bids;
  expect(found.isTruncated).toBe(!model.isComplete && side.length >= MAX_STORED_LEVELS);
  const missing = found.missingSize ?? found.missingNotional;
  if (model.isComplete || found.isTruncated) expect(missing).toBeUndefined();
  else isEqual(missing ?? null, model.rest);
  if (model.size.over === 0n) {
    expect([found.averagePrice, found.fee, found.total, found.priceWithFee, found.slippage]).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
    return;
  }
  const digits = Math.max(18, ...model.used.map(({ price }) => price.split('.')[1]?.length ?? 0));
  const average = roundHalfToEven(per(model.notional, model.size), digits);
  isEqual(found.averagePrice, average);
  expect(found.worstPrice).toBe(model.used.at(-1)?.price);
  const [bid, ask] = [bids[0], asks[0]];
  if (bid && ask) {
    const mid = times(plus(fraction(bid.price), fraction(ask.price)), fraction('0.5'));
    isEqual(found.slippage, order.side === 'buy' ? minus(average, mid) : minus(mid, average));
  } else expect(found.slippage).toBeNull();
  if (fee === null) {
    expect([found.fee, found.total, found.priceWithFee]).toEqual([null, null, null]);
    return;
  }
  isEqual(found.fee, model.charged);
  const total = order.side === 'buy' ? plus(model.notional, model.charged) : minus(model.notional, model.charged);
  isEqual(found.total, total);
  isEqual(found.priceWithFee, roundHalfToEven(per(total, model.size), digits));
}

const digitsOf = (count: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: count });
const share = (digits: number) => digitsOf(digits).map((text) => decimal(`0.${text}`));
const amount = (digits: number) =>
  fc
    .tuple(fc.integer({ min: 0, max: 100_000 }), digitsOf(digits))
    .map(([whole, part]) => decimal(`${whole}.${part}`))
    .filter((value) => value !== '0');
const byPrice = (sign: 1 | -1) => (a: PriceLevel, b: PriceLevel) => sign * (Number(a.price) - Number(b.price));
const side = (sign: 1 | -1, digits: number) =>
  fc
    .uniqueArray(fc.record({ price: share(Math.min(digits, 4)), size: amount(digits) }), {
      selector: ({ price }) => price,
      maxLength: 8,
    })
    .map((levels) => levels.sort(byPrice(sign)));
const curve = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 6,
  rounding: 'up',
  balanceDigits: 4,
});
const fees = fc.oneof(
  fc.constant(null),
  fc.constant<FeeRule>({ model: 'none' }),
  fc
    .record({
      takerRate: share(4),
      exponent: fc.integer({ min: 1, max: 3 }),
      digits: fc.integer({ min: 2, max: 6 }),
      rounding: fc.constantFrom('up' as const, 'half_up' as const),
      balanceDigits: fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined }),
    })
    .map(
      ({ balanceDigits, ...rule }): FeeRule => ({
        model: 'price_curve',
        ...rule,
        ...(balanceDigits !== undefined && { balanceDigits }),
      }),
    ),
);
const orders = (digits: number) =>
  fc.record({
    side: fc.constantFrom('buy' as const, 'sell' as const),
    by: fc.constantFrom('size' as const, 'notional' as const),
    amount: amount(digits),
  });

describe('executable', () => {
  it('equals the sum of fractions over the levels of any book', () => {
    fc.assert(
      fc.property(
        fc.record({
          bids: side(-1, 6),
          asks: side(1, 6),
          order: orders(2),
          fee: fees,
          sizeDigits: fc.integer({ min: 0, max: 6 }),
        }),
        (one) => {
          expectModel(one);
        },
      ),
      { numRuns: 6_500 },
    );
  });

  it('keeps every digit of values of 30 digits', () => {
    const price = decimal('0.123456789012345678901234567891');
    const size = decimal('1234567890.123456789012345678901234567891');
    const one: Case = {
      bids: [],
      asks: [{ price, size }],
      order: { side: 'buy', by: 'size', amount: decimal('1000000000.000000000000000000000000000001') },
      fee: {
        model: 'price_curve',
        takerRate: decimal('0.07'),
        exponent: 1,
        digits: 90,
        rounding: 'up',
      },
      sizeDigits: 30,
    };
    expectModel(one);
    expect(executable(one, one.order, one).averagePrice).toBe(price);
  });

  it('names a missing size only when the book of the venue ends', () => {
    const level = (n: number): PriceLevel => ({ price: decimal(`0.${100 + n}`), size: ONE });
    const levels = (count: number) => Array.from({ length: count }, (_, n) => level(n));
    const order: Order = { side: 'buy', by: 'size', amount: decimal('500') };
    const fill = (count: number) => executable({ bids: [], asks: levels(count) }, order, { fee: null, sizeDigits: 2 });
    expect(fill(MAX_STORED_LEVELS - 1)).toMatchObject({ isComplete: false, isTruncated: false, missingSize: '301' });
    expect(fill(MAX_STORED_LEVELS)).toMatchObject({ isComplete: false, isTruncated: true });
    expect(fill(MAX_STORED_LEVELS)).not.toHaveProperty('missingSize');
  });

  it('marks a book whose best bid is at its best ask', () => {
    const at = (price: string) => [{ price: decimal(price), size: ONE }];
    const crossing = (bid: string, ask: string) =>
      executable(
        { bids: at(bid), asks: at(ask) },
        { side: 'buy', by: 'size', amount: ONE },
        { fee: null, sizeDigits: 2 },
      ).isCrossed;
    expect([crossing('0.5', '0.51'), crossing('0.5', '0.5'), crossing('0.52', '0.5')]).toEqual([false, true, true]);
  });

  it('never buys for less, nor sells for more, when the order is larger', () => {
    fc.assert(
      fc.property(side(1, 4), amount(2), amount(2), (asks, a, b) => {
        const [small, large] = Number(a) < Number(b) ? [a, b] : [b, a];
        const price = (size: Decimal) =>
          executable({ bids: [], asks }, { side: 'buy', by: 'size', amount: size }, { fee: null, sizeDigits: 2 });
        const [first, second] = [price(small), price(large)];
        if (!first.isComplete || !second.isComplete) return;
        expect(Number(second.averagePrice) - Number(first.averagePrice)).toBeGreaterThan(-1e-9);
      }),
    );
  });
});

type RecordedBook = { ticker: string; yes_bids: [number, number][]; no_bids: [number, number][] };
const folder = venueDataFolder('kalshi');

describe.skipIf(folder === undefined)('executable on recorded books of Kalshi', () => {
  it('equals the sum of fractions for orders of many sizes', () => {
    const root = folder ?? '';
    const files = listRecordedFiles(root).filter((file) => file.includes('orderbook_depth'));
    const books = files.flatMap((file) => readRecordedLines(join(root, file)) as RecordedBook[]);
    expect(books.length).toBeGreaterThan(3_500);
    for (const [n, { yes_bids, no_bids }] of books.entries()) {
      const level = ([price, size]: [number, number]) => ({ price: decimal(price), size: decimal(size) });
      const bids = yes_bids.map(level).sort(byPrice(-1));
      const asks = no_bids
        .map(level)
        .map(({ price, size }) => ({ price: subtractDecimals(ONE, price), size }))
        .sort(byPrice(1));
      const order: Order = {
        side: n % 2 === 0 ? 'buy' : 'sell',
        by: n % 3 === 0 ? 'notional' : 'size',
        amount: decimal(`${1 + ((n * 7_919) % 30_000)}.${n % 100}1`),
      };
      expectModel({ bids, asks, order, fee: curve('0.07'), sizeDigits: 2 });
    }
  });
});
