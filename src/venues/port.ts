import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../domain/market.ts';
import type { VenueProfile } from '../domain/venue.ts';

/** What an adapter can be polled for. Later kinds join this list. */
export const POLL_KINDS = ['markets', 'prices', 'books', 'trades'] as const;
export type PollKind = (typeof POLL_KINDS)[number];

/** One record that did not pass the door: its neighbours go through, this is counted and kept for the operator. */
export interface RejectedRecord {
  kind: PollKind;
  /** The record's own id when it could be read. */
  recordId?: string;
  /** Short, stable, groupable: `price_out_of_range`, `missing_field`, … */
  reason: string;
  /** Where and what, for a person: no secrets, at most 500 characters. */
  detail: string;
  /** The offending record as JSON text, cut to 4 KiB, storable (no U+0000, no lone surrogate). */
  sample: string;
}

export interface Batch<R> {
  records: R[];
  rejected: RejectedRecord[];
}

/**
 * One page of a walk. `position` is where to go on: opaque JSON of the adapter, stored in the transaction that stores the
 * records, handed back at the next call. `more` says that the next page is worth fetching at once.
 */
export interface Page<R> extends Batch<R> {
  position: unknown;
  more: boolean;
}

export interface CallContext {
  /** Aborted at the job's deadline or when the process stops. */
  signal: AbortSignal;
  /** The clock, epoch milliseconds: a parameter so that recorded payloads can be replayed at their own time. */
  now(): number;
}

/**
 * A venue, as the rest of oddswire sees it (DESIGN section 5). An adapter talks HTTP through the one venue client, validates
 * payloads at the door, and yields normalized records; it never touches storage or queues.
 * Every call may throw VenueError; a bad record never makes one.
 */
export interface VenueAdapter extends VenueProfile {
  readonly venue: string;

  /** The next page of the catalog walk; null starts over. When a walk ends, `more` is false and the next call begins a new one. */
  pollMarkets(position: unknown, context: CallContext): Promise<Page<MarketRecord>>;

  /** The next trades after `position`, oldest or newest page first as the venue allows; null starts at the recent past. */
  pollTrades(position: unknown, context: CallContext): Promise<Page<TradeRecord>>;

  /** Prices of these outcomes; an outcome the venue does not price is simply absent. */
  fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>>;

  /** Books of these outcomes; an outcome without a book is simply absent. */
  fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>>;

  /** How many outcomes one `fetchPrices` or `fetchBooks` may name. */
  readonly maxOutcomesPerFetch: number;

  /** Closes sockets. The adapter is dead afterwards. */
  close(): Promise<void>;
}
