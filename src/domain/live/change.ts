import type { ApiJson } from '../values/api-json.ts';
import { type Fields, presentBody } from '../wire/fields.ts';
import { BOOK, CANDLE, MARKET, PRICE, RESOLUTION, TRADE } from '../wire/market-data.ts';

/**
 * The kinds of changes in the journal. `history` names a range of trades or candles that were added late, corrected or removed, and `gap` a
 * range that a venue's feed may have lost. `facts` is for reads from memory, and streams skip it.
 */
const CHANGE_KINDS = ['price', 'trade', 'book', 'candle', 'market', 'history', 'gap', 'facts', 'resolution'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** Facts of answers that change without a message of the streams; see docs/live.md. */
const FACT_KINDS = ['volumes', 'coverage', 'book-seen', 'quote-age', 'fees'] as const;
export type FactKind = (typeof FACT_KINDS)[number];

/** One row of the journal. */
export interface Change {
  /** Dense and ascending within an epoch. */
  seq: number;
  /** The database clock of the claim that published it. */
  at: Date;
  kind: ChangeKind;
  venue: string;
  /** The venue's id. */
  marketId: string;
  outcomeId?: string;
  /**
   * The item of the read API with its field names and the ids of market and outcome. Decimals are texts with every stored digit, unknown
   * fields are absent. `changeData` makes the answer of it.
   * - `price`: an outcome of a price snapshot, with its own `as_of`
   * - `trade`: a trade
   * - `book`: a book with the best level of each side
   * - `candle`: a candle with its `interval`, which is `1m`
   * - `market`: a market without its long texts: `description`, `resolution_criteria` and `coverage` are absent
   * - `resolution`: a row of the timeline of the result of a market
   * - `history`: `series` (`trades` or `candles`), `start` and `end`, epoch seconds: trades or candles of `[start, end)` were added, corrected
   *   or removed
   * - `gap`: `from` and `to`, epoch seconds; `to` is null while the gap lasts, and another change with the same `gap_id` follows at its end.
   *   `affected` (`books`, `trades` or `markets`) and `reason`
   * - `facts`: `market_ids` and `about`, a FactKind: these facts of these markets changed; `market_id` is empty
   */
  body: ChangeBody;
}

export type ChangeBody = Readonly<Record<string, unknown>>;

/** The fields of the kinds that are objects of the read API. */
const FIELDS_OF_KIND: Readonly<Partial<Record<ChangeKind, Fields>>> = {
  price: PRICE,
  trade: TRADE,
  book: BOOK,
  candle: CANDLE,
  market: MARKET,
  resolution: RESOLUTION,
};

/** The `data` of a message: the body with its decimals as exact numbers. */
export function changeData({ kind, body }: Pick<Change, 'kind' | 'body'>): ApiJson {
  return presentBody(FIELDS_OF_KIND[kind] ?? {}, body);
}

/** The channels of a stream. */
export const CHANNELS = ['prices', 'trades', 'books', 'candles', 'markets', 'resolutions', 'executable'] as const;
export type Channel = (typeof CHANNELS)[number];

/** The types of the messages of a market stream. Users script these names. */
const MESSAGE_TYPES = [
  'price',
  'trade',
  'book',
  'candle',
  'market',
  'resolution',
  'executable',
  'heartbeat',
  'gap',
  'lagged',
  'snapshot',
  'stale',
] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/**
 * The channels that send a kind of change; a range of history names its own. A gap in the feed of a venue concerns every channel, and facts
 * none.
 */
export const CHANNELS_OF_KIND: Readonly<Record<Exclude<ChangeKind, 'history'>, readonly Channel[]>> = {
  price: ['prices'],
  trade: ['trades'],
  book: ['books'],
  candle: ['candles'],
  market: ['markets'],
  resolution: ['resolutions'],
  gap: CHANNELS,
  facts: [],
};

/** The type of the message for a kind of change. A range of history is sent as a gap. */
export const TYPE_OF_KIND: Readonly<Record<Exclude<ChangeKind, 'facts'>, MessageType>> = {
  price: 'price',
  trade: 'trade',
  history: 'gap',
  book: 'book',
  candle: 'candle',
  market: 'market',
  resolution: 'resolution',
  gap: 'gap',
};

/** Kinds that describe a state: the latest change replaces an unsent earlier one. */
export const CONFLATED_KINDS: ReadonlySet<ChangeKind> = new Set(['price', 'book', 'candle', 'market']);

/**
 * Why no heartbeat is sent although the stream is open. `publisher_stalled`: the publisher runs but does not confirm. `publisher_gone`: no
 * publisher runs. `database_unreachable`: this API process has no answer of the database.
 */
export const STALE_REASONS = ['publisher_stalled', 'publisher_gone', 'database_unreachable'] as const;
/** The same for the stream of account events. `commit_pending`: a transaction that stores events has not committed for more than a second. */
export const EVENT_STALE_REASONS = ['database_unreachable', 'commit_pending'] as const;
export type StaleReason = (typeof STALE_REASONS | typeof EVENT_STALE_REASONS)[number];

/** Why changes between two messages are missing. */
export const GAP_REASONS = ['expired', 'epoch', 'backfill', 'feed'] as const;
export type GapReason = (typeof GAP_REASONS)[number];

/** The parts of a feed that a gap concerns. */
export const FEED_GAP_PARTS = ['books', 'trades', 'markets'] as const;
