import { MAX_STORED_LEVELS } from '../../../src/domain/markets/executable.ts';
import { ORDER_SIDES, type OrderSide } from '../../../src/domain/markets/market.ts';
import { decimal, roundedText } from '../../../src/domain/values/decimal.ts';
import { ApiError } from '../../errors.ts';
import { depthChart } from '../kit/drawings.ts';
import { chosen, textField } from '../kit/filters.ts';
import { badge, facts, type Html, html, NONE } from '../kit/html.ts';
import { groupedDigits } from '../kit/shown-values.ts';
import type { Book, Decimal, Executable, Market } from './answers.ts';
import { exactData } from './api-calls.ts';
import { depthLevels } from './market-tape.ts';
import type { ConsoleRequest } from './route.ts';
import { clock, currencyOf, plain, price } from './values.ts';

/** Digits after the point of small amounts and of quotients. */
const SMALL_DIGITS = 6;
const SIDE_WORDS: Readonly<Record<OrderSide, string>> = { buy: 'Buy', sell: 'Sell' };

/** The order in the form of a market page, and its cost. */
interface ShownOrder {
  side: OrderSide;
  /** As entered; undefined while the field is empty. */
  size: string | undefined;
  /** Undefined without a size, and null without a book. */
  fill?: Executable | null;
  /** The reason why the API refused it. */
  fault?: string;
  isLive?: boolean;
}

/** Reads the cost of the order in the form. */
export async function readOrder(
  { api, query }: Pick<ConsoleRequest, 'api' | 'query'>,
  { venue, market_id }: Market,
  outcome: string | undefined,
): Promise<ShownOrder> {
  const side = chosen(query, 'side', ORDER_SIDES) ?? 'buy';
  const size = textField(query, 'size');
  if (size === undefined || outcome === undefined) return { side, size };
  const params = { venue, market_id };
  try {
    const answer = await api<Executable>({
      operationId: 'getExecutable',
      params,
      query: { side, size, outcome_id: outcome },
    });
    return { side, size, fill: exactData<Executable>(answer), isLive: answer.meta?.['live'] === true };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    if (error.status === 404) return { side, size, fill: null };
    const fault = error.details.map(({ path, message }) => `${path} ${message}`).join('; ');
    return { side, size, fault: fault === '' ? error.message : fault };
  }
}

/** The form with an order on the outcome of the page. `hidden`: the other choices of the page. */
export function orderSection(
  { venue }: Market,
  outcome: { outcome_id: string; label: string },
  order: ShownOrder,
  book: Book | null,
  hidden: readonly (readonly [name: string, value: string])[],
): Html {
  return html`<section class="card order-card" aria-labelledby="order-title"><h2 id="order-title">Cost of an order</h2>
<form class="order-form" id="order-form" method="get">${hidden.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}
<label>Side <select name="side">${ORDER_SIDES.map(
    (side) =>
      html`<option value="${side}"${side === order.side && html` selected`}>${SIDE_WORDS[side]} ${outcome.label}</option>`,
  )}</select></label>
<label>Size <input name="size" inputmode="decimal" autocomplete="off" placeholder="500" value="${order.size ?? ''}"${
    order.fault !== undefined && html` aria-invalid="true" aria-describedby="order-fault"`
  }></label>
<button type="submit">Show the cost</button></form>
<p class="visually-hidden" role="status" data-order-status></p>
<div data-part="order">${orderResult(venue, order, book)}</div></section>`;
}

/** The cost of the order, and the book with the part that it takes. */
export function orderResult(venue: string, order: ShownOrder, book: Book | null): Html {
  const { side, fill, fault } = order;
  if (fault !== undefined) return html`<p class="problem" id="order-fault">The order is refused: ${fault}.</p>`;
  if (fill === undefined) {
    return html`<p class="muted">Enter a size in units of the outcome: the page takes the levels of the book one by one, and adds the fee.</p>`;
  }
  if (fill === null) return html`<p class="muted">No book of this outcome is stored.</p>`;
  const currency = currencyOf(venue);
  const money = (value: Executable['total']) => (value === null ? NONE : html`${cost(value)} ${currency}`);
  return html`<div class="order-result"><div>${facts([
    ['Price with fee', html`<strong>${quotient(fill.price_with_fee)}</strong>`],
    ['Average price', quotient(fill.average_price)],
    ['Fee', fill.fee === null ? html`unknown <span class="muted">${feeWords(fill)}</span>` : money(fill.fee)],
    [side === 'buy' ? 'You pay' : 'You get', money(fill.total)],
    ['Worst price', price(fill.worst_price)],
    ['Slippage', quotient(fill.slippage)],
    ['Spread of the book', book?.as_of === fill.as_of ? price(book.spread) : NONE],
    ['Filled', html`${price(fill.filled_size)} from ${fill.levels} ${fill.levels === 1 ? 'level' : 'levels'}`],
  ])}${warnings(order, fill)}</div>${book?.as_of === fill.as_of && depth(book, fill)}</div>`;
}

/** A small amount keeps its first digits: a fee of 0.0036 is not 0.00. */
function cost(value: Decimal): Html {
  return digitsAfter(value, Number(value) >= 1 ? 2 : SMALL_DIGITS);
}

/** A quotient has 18 digits; its title has them all. */
function quotient(value: Decimal | null): Html {
  return value === null ? NONE : digitsAfter(value, SMALL_DIGITS);
}

function digitsAfter(value: Decimal, digits: number): Html {
  const text = roundedText(decimal(value), digits);
  return html`<span class="num" title="${plain(value)}">${groupedDigits(digits > 2 ? text.replace(/\.?0+$/, '') : text)}</span>`;
}

function feeWords({ fee_reason: reason, levels }: Executable): string {
  if (reason === 'depends_on_account') return 'each account of this venue has its own rate';
  if (reason === 'unknown_rule') return 'the venue does not publish the formula';
  if (reason === 'not_stated') return 'the venue states no fee';
  return reason === undefined && levels === 0 ? 'nothing is filled' : 'not read yet';
}

function warnings({ isLive }: ShownOrder, fill: Executable): Html {
  const at = clock(new Date(fill.as_of * 1_000));
  return html`<p class="order-notes">${
    fill.missing_size !== undefined &&
    html`${badge('warn', 'not complete')} The book lacks ${price(fill.missing_size)}. `
  }${
    fill.reason === 'book_truncated' &&
    html`${badge('warn', 'not complete')} Only ${MAX_STORED_LEVELS} levels are stored; the venue may have more. `
  }${
    fill.reason === 'below_step' &&
    html`${badge('warn', 'not complete')} The amount is less than the price of the smallest size. `
  }${fill.crossed && html`${badge('warn', 'crossed')} The best bid is at the best ask or above it. `}${
    !isLive && html`${badge('warn', 'old book')} `
  }<span class="muted">Book of ${at} UTC.</span></p>`;
}

function depth(book: Book, fill: Executable): Html {
  const label = `The order takes ${String(fill.filled_size)} from ${fill.levels} ${fill.side === 'buy' ? 'asks' : 'bids'}`;
  return depthChart({ bids: depthLevels(book.bids), asks: depthLevels(book.asks) }, label, {
    side: fill.side === 'buy' ? 'asks' : 'bids',
    size: Number(fill.filled_size),
  });
}
