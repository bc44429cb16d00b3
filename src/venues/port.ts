import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../domain/markets/market.ts';
import type { VenueProfile } from '../domain/markets/venue.ts';
import type { VenueError } from './errors.ts';

/** The kinds of records: of the polls of a market adapter, and of wallet and token adapters. */
export type RecordKind = 'markets' | 'prices' | 'books' | 'trades' | 'wallets' | 'tokens';

/** One rejected record: the other records of its payload pass. It is counted and kept in the quarantine for the operator. */
export interface RejectedRecord {
  kind: RecordKind;
  /** The record's own id, if it is readable. */
  recordId?: string;
  /** Short, stable, groupable: `price_out_of_range`, `missing_field`, … */
  reason: string;
  /** The field and the fault, for a person: no secrets, at most 500 characters. */
  detail: string;
  /** The offending record as JSON text, cut to 4 KiB, storable (no U+0000, no lone surrogate). */
  sample: string;
}

export interface Batch<R> {
  records: R[];
  /** Records that are not in the list, because they are known to be stored: trades (`TapeKnowledge`), or books of the last seconds. */
  known?: number;
  rejected: RejectedRecord[];
  /** Requested ids that this answer says nothing about: they are in quarantine, or the host failed before their turn. */
  unread?: readonly string[];
  /** Why a part was not read. The records of the other parts are sound. */
  fault?: VenueError;
}

/**
 * One page of a walk. `position` is where the walk continues: opaque JSON of the adapter, stored in the transaction that stores the
 * records, and passed to the next call. `more` is true when the next page should be fetched at once.
 */
export interface Page<R> extends Batch<R> {
  position: unknown;
  more: boolean;
  /** No request succeeded, so the page proves nothing about the venue. */
  isIdle?: true;
}

/**
 * A page of the catalog. `sweep` is set while the walk lists every market that is not over. When it `ended`, stored tradable markets that
 * no page since `startedAtMs` has named are missing from the venue's list.
 */
export interface MarketPage extends Page<MarketRecord> {
  sweep?: {
    startedAtMs: number;
    ended: boolean;
    /**
     * Set when a cache answered with a page from before the start: the creation time of its oldest page, epoch milliseconds. A market that
     * was seen since then is not missing.
     */
    madeSinceMs?: number;
    /**
     * Set with `ended`: the list contains closed markets too until their result is known. A closed market that no page listed is then
     * missing as well.
     */
    includesClosed?: boolean;
    /** Markets that this page lists without a record: they did not change, or they were rejected. */
    alsoListed?: readonly string[];
  };
}

/**
 * A page of the tape. `caughtUpMs`: the feed was read without a gap up to its state at this moment, epoch milliseconds, and with the overlap
 * for late trades.
 */
export interface TapePage extends Page<TradeRecord> {
  caughtUpMs?: number;
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
  /** The part that the venue does not serve, if any. */
  truncated?: string;
}

/** A part of the open markets of a venue, whose pages follow each other: opaque JSON of the adapter. */
export type SweepPart = unknown;

interface SweepPage extends Batch<PriceRecord> {
  /** The part after this page: its next page, or the facts that the next sweep uses. */
  part: SweepPart;
  /** Whether the part has another page in this sweep. */
  more: boolean;
  /** Markets on this page, apart from those that another part lists too. */
  markets: number;
}

/** The prices of all open markets of a venue that lists them itself. */
export interface PriceSweep {
  /** Requests in flight at once; the pages of one part never overlap. */
  readonly atOnce: number;
  /** Parts that together list every open market. `previous`: the parts of the last complete sweep, after their last pages. */
  parts(nowMs: number, previous: readonly SweepPart[]): readonly SweepPart[];
  /** The next page of a part. */
  fetch(part: SweepPart, context: CallContext): Promise<SweepPage>;
}

export interface CallContext {
  /** Aborted at the job's deadline or when the process stops. */
  signal: AbortSignal;
  /** The clock, epoch milliseconds. It is a parameter, so tests replay recorded payloads at their own time. */
  now(): number;
}

/** What the caller knows of the tape. Without it, late trades are looked for at each walk, and each trade is parsed. */
export interface TapeKnowledge {
  /** This process stored the last page, and no poll failed since: the walk reads the overlap for late trades only when that is due. */
  isContinued?: boolean;
  /** Whether this process knows that a trade with this id is stored. */
  isStored?(tradeId: string): boolean;
}

export interface TapeContext extends CallContext, TapeKnowledge {}

/**
 * The interface of a venue. An adapter sends requests through `createVenueHttp`, validates payloads and returns normalized records; it uses
 * neither storage nor queues.
 * Every call may throw VenueError; a bad record does not cause one.
 */
export interface VenueAdapter extends VenueProfile {
  readonly venue: string;

  /** The next page of the catalog walk; null starts over. When a walk ends, `more` is false and the next call begins a new one. */
  pollMarkets(position: unknown, context: CallContext): Promise<MarketPage>;

  /** Markets by their ids, in any state; a market that the venue does not know is absent. */
  fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>>;

  /** How many markets one `fetchMarkets` may name. */
  readonly maxMarketsPerFetch: number;

  /** The next trades after `position`, the oldest or the newest page first, depending on the venue; null starts at the recent past. */
  pollTrades(position: unknown, context: TapeContext): Promise<TapePage>;

  /**
   * The next page of a market's older trades after `position`; null starts at `toMs`. It uses a share of the host's budget only, so walks
   * back never delay the live polls. Trades have the same ids as from `pollTrades`.
   */
  pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage>;

  /**
   * Prices of these outcomes; an outcome without a price is absent. `mirrors` names the other outcome of a market by the requested one:
   * its price is part of the answer too. Only adapters with `mirrorsOutcomes` get it.
   */
  fetchPrices(
    outcomeIds: readonly string[],
    context: CallContext,
    mirrors?: ReadonlyMap<string, string>,
  ): Promise<Batch<PriceRecord>>;

  /** How many calls of `fetchPrices` may overlap in the price poll; absent: one. */
  readonly fetchesAtOnce?: number;

  /** One outcome of a market with two outcomes is enough for `fetchPrices`, because the quotes of the other mirror it. */
  readonly mirrorsOutcomes?: boolean;

  /** Present when the venue lists the quotes of its open markets: the price poll then names no outcomes. */
  readonly sweepPrices?: PriceSweep;

  /** Books of these outcomes; an outcome without a book is absent. */
  fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>>;

  /** How many outcomes one `fetchPrices` or `fetchBooks` may name. */
  readonly maxOutcomesPerFetch: number;

  /** The same for `fetchBooks` alone, if each book is a request. */
  readonly maxBooksPerFetch?: number;

  /** `fetchPrices` also prices markets without a book, although the venue has books. */
  readonly pricesWithoutBooks?: boolean;

  /** Closes sockets. Later calls fail. */
  close(): Promise<void>;
}
