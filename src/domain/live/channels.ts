import type { ChangeKind } from './change.ts';

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

/** The type of the message for a kind of change. A range of history, which no stream sends, is a gap. */
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
