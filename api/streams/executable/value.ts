import type { OrderSide } from '../../../src/domain/markets/market.ts';
import { type DecimalFormat, JsonText, toJsonText } from '../../../src/domain/values/api-json.ts';
import type { Decimal } from '../../../src/domain/values/decimal.ts';
import type { JournalHead } from '../../../src/store/journal/read-journal.ts';
import type { OrderBook } from '../../../src/store/series/book-reads.ts';
import { isLive, stableBookMs } from '../../reads/cold-read.ts';
import { hasBook, presentPlaced, stableFeeMs } from '../../reads/executable-answer.ts';
import { type Replaceable, type StreamCursors, streamMessage } from '../frame.ts';

/** What an order costs or pays, as its messages state it. */
export interface Value {
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string;
  readonly conflationKey: string;
  /** The data as JSON, without the times of the book: a value whose text is the same has not changed. */
  readonly text: string;
  /** The times as JSON. */
  readonly times: string;
}

/** The value of an order on a book at a moment (epoch milliseconds); undefined without a stored book. */
export function computedValue(
  book: OrderBook,
  { side, size }: { side: OrderSide; size: Decimal },
  { atMs, sizeDigits, decimalFormat }: { atMs: number; sizeDigits: number; decimalFormat: DecimalFormat },
): Value | undefined {
  if (!hasBook(book)) return undefined;
  const { venue, marketId, outcomeId } = book;
  const order = { side, by: 'size', amount: size } as const;
  const { as_of, observed_at, ...fields } = presentPlaced(book, { order, sizeDigits, atMs, isPast: false }).body;
  return {
    venue,
    marketId,
    outcomeId,
    conflationKey: `executable\n${outcomeId}\n${side}\n${size}`,
    text: toJsonText(fields, decimalFormat),
    times: toJsonText({ as_of, observed_at }, decimalFormat),
  };
}

/** The time until values change without a change of their facts, milliseconds: the book grows old, or an announced fee begins. */
export function stableMs(book: OrderBook, atMs: number): number {
  const { unseenMs, fee } = book;
  const isYoung = unseenMs !== null && isLive({ unseenMs }, book);
  // A book is old only beyond the limit.
  const youngMs = isYoung ? stableBookMs({ unseenMs }, book) + 1 : Number.POSITIVE_INFINITY;
  return Math.min(stableFeeMs(fee, atMs), youngMs);
}

/** The message of a value at a number of the journal. */
export function valueMessage(
  { venue, marketId, outcomeId, conflationKey, text, times }: Value,
  at: { head: JournalHead; seq: number; cursors: StreamCursors; decimalFormat: DecimalFormat },
): Replaceable {
  const { head, seq, cursors, decimalFormat } = at;
  const fields = { type: 'executable', seq, at: head.readAt, venue, marketId, outcomeId } as const;
  const data = new JsonText(`${text.slice(0, -1)},${times.slice(1)}`);
  const cursor = cursors.encode({ epoch: head.epoch, seq });
  return { ...streamMessage(fields, data, { cursor, decimalFormat }), conflationKey };
}

interface WatchedOutcome {
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string;
}

/** The orders of a subscription: each size on each side of each outcome. */
export interface WatchedOrders {
  readonly outcomes: readonly WatchedOutcome[];
  readonly sides: readonly OrderSide[];
  readonly sizes: readonly Decimal[];
}

export function countOf({ outcomes, sides, sizes }: WatchedOrders): number {
  return outcomes.length * sides.length * sizes.length;
}
