import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../domain/markets/market.ts';
import type { VenueProfile } from '../domain/markets/venue.ts';

/** What an adapter can be polled for, and so the kinds of records there are. */
const POLL_KINDS = ['markets', 'prices', 'books', 'trades'] as const;
export type PollKind = (typeof POLL_KINDS)[number];
/** The same, with what wallet and token adapters read. */
export type RecordKind = PollKind | 'wallets' | 'tokens';

/** One record that did not pass the door: its neighbours go through, this is counted and kept for the operator. */
export interface RejectedRecord {
  kind: RecordKind;
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

/**
 * A page of the catalog. `sweep` is set while the walk lists every market that is not over yet: when it `ended`, stored
 * tradable markets that no page since `startedAtMs` has named are missing from the venue's list.
 */
export interface MarketPage extends Page<MarketRecord> {
  sweep?: {
    startedAtMs: number;
    ended: boolean;
    /**
     * Set where a cache answered with a page from before the start: when its oldest page was made, epoch milliseconds. A market
     * seen since then is not missing.
     */
    madeSinceMs?: number;
    /**
     * The list has closed markets too until their result is known, so that a closed one that no page has named is missing as well.
     * Set with `ended`.
     */
    includesClosed?: boolean;
    /** Markets that this page lists and has no record of: nothing of theirs changed, or they were refused. */
    alsoListed?: readonly string[];
  };
}

/** The trades of one market in `[fromMs, toMs)`, newest first. */
export interface HistoryRequest {
  marketId: string;
  /** The market's own outcomes. */
  outcomeIds: readonly string[];
  fromMs: number;
  toMs: number;
}

export interface HistoryPage extends Page<TradeRecord> {
  /** Everything from here to `toMs` was read, epoch milliseconds. */
  reachedMs: number;
  /** What the venue would not give, when it would not give all. */
  truncated?: string;
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
  pollMarkets(position: unknown, context: CallContext): Promise<MarketPage>;

  /** Markets by their ids, whatever their state; one that the venue does not know is simply absent. */
  fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>>;

  /** How many markets one `fetchMarkets` may name. */
  readonly maxMarketsPerFetch: number;

  /** The next trades after `position`, oldest or newest page first as the venue allows; null starts at the recent past. */
  pollTrades(position: unknown, context: CallContext): Promise<Page<TradeRecord>>;

  /**
   * The next page of a market's older trades after `position`; null starts at `toMs`. Politely: at a share of the host's
   * budget, so that no walk back keeps the live polls waiting. Trades have the ids that `pollTrades` gives them.
   */
  pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage>;

  /** Prices of these outcomes; an outcome the venue does not price is simply absent. */
  fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>>;

  /** Books of these outcomes; an outcome without a book is simply absent. */
  fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>>;

  /** How many outcomes one `fetchPrices` or `fetchBooks` may name. */
  readonly maxOutcomesPerFetch: number;

  /** The same for `fetchBooks` alone, where each book is a request. */
  readonly maxBooksPerFetch?: number;

  /** `fetchPrices` prices markets without a book too, although the venue has books. */
  readonly pricesWithoutBooks?: boolean;

  /** Closes sockets. The adapter is dead afterwards. */
  close(): Promise<void>;
}
