import { ORDER_SIDES, type OrderSide } from '../../../src/domain/markets/executable.ts';
import { ApiError } from '../../errors.ts';
import { type DepthLevel, depthChart } from '../kit/drawings.ts';
import { chosen, textField } from '../kit/filters.ts';
import { badge, facts, type Html, html, NONE } from '../kit/html.ts';
import type { Book, Executable, Level, Market } from './answers.ts';
import { type ApiCall, exactData, orNothing } from './api-calls.ts';
import type { ConsoleRequest } from './route.ts';
import { amount, clock, currencyOf, price } from './values.ts';

/** Every stored level: an order may take all of them. */
const ALL_LEVELS = 200;
const SIDE_WORDS: Readonly<Record<OrderSide, string>> = { buy: 'Buy', sell: 'Sell' };

/** The order in the form of a market page, and what it costs. */
interface ShownOrder {
  side: OrderSide;
  /** As entered; undefined while the field is empty. */
  size: string | undefined;
  /** Undefined without a size, and null without a book. */
  fill?: Executable | null;
  /** The fault of the size, in the words of the API. */
  fault?: string;
  isLive?: boolean;
  book?: Book | null;
}

/** Reads what the order of the form costs. */
export async function readOrder(
  { api, query }: Pick<ConsoleRequest, 'api' | 'query'>,
  { venue, market_id }: Market,
  outcome: string | undefined,
): Promise<ShownOrder> {
  const side = chosen(query, 'side', ORDER_SIDES) ?? 'buy';
  const size = textField(query, 'size');
  if (size === undefined || outcome === undefined) return { side, size };
  const params = { venue, market_id };
  const call: ApiCall = { operationId: 'getExecutable', params, query: { side, size, outcome_id: outcome } };
  const bookCall = { operationId: 'getOrderbook', params, query: { depth: ALL_LEVELS, outcome_id: outcome } };
  const [filled, book] = await Promise.all([fillOrFault(api<Executable>(call)), orNothing(api<Book>(bookCall))]);
  if (typeof filled === 'string') return { side, size, fault: filled };
  const isLive = filled?.meta?.['live'] === true;
  return { side, size, fill: filled ? exactData<Executable>(filled) : null, isLive, book: book?.data ?? null };
}

/** The answer, undefined without a book, or the fault of the size. */
async function fillOrFault<T>(answer: Promise<T>): Promise<T | string | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return error.code === 'invalid_request' ? error.details.map(({ message }) => message).join('; ') : undefined;
  }
}

/** The form with an order on the outcome of the page. `hidden`: the other choices of the page. */
export function orderSection(
  { venue }: Market,
  outcome: { outcome_id: string; label: string },
  order: ShownOrder,
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
<div data-part="order" aria-live="polite">${orderResult(venue, order)}</div></section>`;
}

/** What the order costs, and the book with the part that it takes. */
export function orderResult(venue: string, order: ShownOrder): Html {
  const { side, fill, fault, book } = order;
  if (fault !== undefined) return html`<p class="problem" id="order-fault">The size ${fault}.</p>`;
  if (fill === undefined) {
    return html`<p class="muted">Enter a size in units of the outcome: the page takes the levels of the book one by one, and adds the fee.</p>`;
  }
  if (fill === null) return html`<p class="muted">No book of this outcome is stored.</p>`;
  const currency = currencyOf(venue);
  const money = (value: Executable['total']) => (value === null ? NONE : html`${amount(value, 2)} ${currency}`);
  return html`<div class="order-result"><div>${facts([
    ['Price with fee', html`<strong>${price(fill.price_with_fee)}</strong>`],
    ['Average price', price(fill.average_price)],
    ['Fee', fill.fee === null ? html`${NONE} <span class="muted">${feeWords(fill)}</span>` : money(fill.fee)],
    [side === 'buy' ? 'You pay' : 'You get', money(fill.total)],
    ['Worst price', price(fill.worst_price)],
    ['Slippage', price(fill.slippage)],
    ['Filled', html`${amount(fill.filled_size)} from ${fill.levels} ${fill.levels === 1 ? 'level' : 'levels'}`],
  ])}${warnings(order, fill)}</div>${book ? depth(book, fill) : html``}</div>`;
}

function feeWords({ fee_reason: reason, levels }: Executable): string {
  if (reason === 'depends_on_account') return 'each account of this venue has its own rate';
  if (reason === 'unknown_rule') return 'the venue does not publish the formula';
  if (reason === 'not_stated') return 'the venue states no fee';
  return reason === undefined && levels === 0 ? 'nothing is filled' : 'not read yet';
}

function warnings({ isLive, book }: ShownOrder, fill: Executable): Html {
  const at = clock(new Date(fill.as_of * 1_000));
  return html`<p class="order-notes">${
    fill.missing_size !== undefined &&
    html`${badge('warn', 'not complete')} The book lacks ${amount(fill.missing_size)}. `
  }${
    fill.reason === 'book_truncated' &&
    html`${badge('warn', 'not complete')} Only ${ALL_LEVELS} levels are stored; the venue may have more. `
  }${fill.crossed && html`${badge('warn', 'crossed')} The best bid is at the best ask or above it. `}${
    !isLive && book !== null && html`${badge('warn', 'old book')} `
  }<span class="muted">Book of ${at} UTC.</span></p>`;
}

function depth(book: Book, fill: Executable): Html {
  const levels = (side: readonly Level[]): DepthLevel[] =>
    side.map(({ price, size }) => ({ price: Number(price), size: Number(size) }));
  const label = `The order takes ${String(fill.filled_size)} from ${fill.levels} ${fill.side === 'buy' ? 'asks' : 'bids'}`;
  return depthChart(
    { bids: levels(book.bids), asks: levels(book.asks) },
    { side: fill.side === 'buy' ? 'asks' : 'bids', size: Number(fill.filled_size) },
    label,
  );
}
