import type { IncomingHttpHeaders } from 'node:http';
import type { BookRecord, PriceRecord, TradeRecord } from '../../domain/markets/market.ts';
import type { AnnouncedTimes } from '../../domain/markets/resolution.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import type { UnknownValue } from '../parsed-batch.ts';
import type { RejectedRecord } from '../port.ts';

/** A market of a subscription, with the ids of its outcomes in the venue's order. */
export interface FeedMarket {
  readonly marketId: string;
  readonly outcomeIds: readonly string[];
}

/** One change that a feed announced. */
type FeedUpdate =
  /** The top of a book, or the price of a pool. */
  | { readonly kind: 'quote'; readonly record: PriceRecord }
  /** The book of this outcome changed and is consistent: `FeedSession.book` returns it. */
  | { readonly kind: 'book'; readonly outcomeId: string }
  /** A trade with the same id and time as in the polls. */
  | { readonly kind: 'trade'; readonly record: TradeRecord }
  /** A trade whose stored identity only a poll knows: `tsMs` in epoch milliseconds. */
  | { readonly kind: 'print'; readonly outcomeId: string; readonly tsMs: number; readonly price: Decimal }
  /** The catalog entry of this market changed: a poll must read it. `change` is the venue's word, `times` are those of its result. */
  | { readonly kind: 'market'; readonly marketId: string; readonly change: string; readonly times?: AnnouncedTimes };

/** The reasons of a loss, as metrics and `feed_gap` name them. */
const FEED_LOSSES = [
  'sequence_gap',
  'hash_mismatch',
  'crossed_book',
  'negative_size',
  'rejected_book',
  'missing_snapshot',
] as const;

/**
 * Messages that did not arrive. Of `books`, the session ignores further changes until a new snapshot; of `trades` and `markets`, only a poll
 * reads the missing ones.
 */
export interface FeedLoss {
  readonly of: 'books' | 'trades' | 'markets';
  readonly reason: (typeof FEED_LOSSES)[number];
  readonly marketIds: readonly string[];
}

/** A statement of the venue about the connection itself. */
type FeedNotice =
  /** Subscriptions have an effect from now on. */
  | { readonly kind: 'ready' }
  /** An answer to a ping. It proves that the socket works, not that data flows. */
  | { readonly kind: 'pong' }
  | { readonly kind: 'error'; readonly code: string; readonly message: string; readonly isFinal: boolean };

/**
 * The content of one frame. Each message in it counts once: `received` = `applied` + rejections + skips. A change of several outcomes in one
 * message counts once for each.
 */
export interface FeedReading {
  received: number;
  applied: number;
  updates: FeedUpdate[];
  rejected: RejectedRecord[];
  /** A reason for each message that is not data, or data that oddswire does not keep (docs/feeds.md lists them). */
  skipped: string[];
  unknowns: UnknownValue[];
  losses: FeedLoss[];
  notices: FeedNotice[];
  /** Frames that the venue now expects, in order. */
  sends: string[];
  /** The newest time of the venue in the frame, epoch milliseconds, for the measured lag. */
  venueAtMs?: number;
}

/**
 * The protocol state of one connection: frames in, updates out. It has no clock, no socket and no storage. `nowMs` is the arrival of a frame
 * in epoch milliseconds. No frame makes it throw.
 */
export interface FeedSession {
  /** The frames after the handshake. */
  open(): string[];
  /** Adds markets; the frames to send, possibly none before the venue is ready. */
  subscribe(markets: readonly FeedMarket[], nowMs: number): string[];
  unsubscribe(marketIds: readonly string[], nowMs: number): string[];
  /** Requests new snapshots of subscribed markets. */
  refresh(marketIds: readonly string[], nowMs: number): string[];
  take(frame: string, nowMs: number): FeedReading;
  /** Losses that only time shows: a snapshot that never came, a mismatch that lasts. Call it at least every second. */
  check(nowMs: number): FeedLoss[];
  /** The present book of an outcome; undefined without a consistent one. */
  book(outcomeId: string): BookRecord | undefined;
  /** The ping of this protocol as a text frame; undefined where the socket's own pings are used. */
  ping(): string | undefined;
}

/** Documented limits of a venue's feed (docs/feeds.md has the sources). */
export interface FeedLimits {
  readonly marketsPerConnection: number;
  readonly connections: number;
  /** Interval of pings, milliseconds. */
  readonly pingEveryMs: number;
  /** The largest frame that a connection reads, bytes. */
  readonly maxFrameBytes: number;
}

/** A venue's feed. */
export interface VenueFeed {
  readonly venue: string;
  readonly url: string;
  readonly limits: FeedLimits;
  createSession(): FeedSession;
  /** Whether a subscription brings a snapshot of each market, so that data can be requested. */
  readonly hasSnapshots: boolean;
  /** Headers of the handshake, signed for this moment. */
  headers(nowMs: number): Readonly<Record<string, string>>;
  describeRefusal(refusal: FeedRefusal): RefusalReason;
}

/** An answer to a handshake other than 101. */
export interface FeedRefusal {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  /** At most 2 KiB. */
  readonly body: string;
  /** The moment of the signature, and that of the answer, epoch milliseconds. */
  readonly sentMs: number;
  readonly nowMs: number;
}

/** The reason of a refused handshake. */
export interface RefusalReason {
  /** One line without secrets. */
  readonly detail: string;
  /** Whether the venue rejects the credentials, so that a new attempt soon is useless. */
  readonly isOfCredentials: boolean;
}

/**
 * The states of a connection. `live`: data arrived since the handshake. `refused`: the venue rejects the credentials. `given_up`: no market of the
 * connection stayed complete, so it waits for a while before it tries again.
 */
export type FeedState = 'connecting' | 'open' | 'live' | 'waiting' | 'refused' | 'given_up' | 'closed';

/** The reasons of a gap: a loss that a session found, or one of the connection. */
export type GapReason = FeedLoss['reason'] | 'disconnected' | 'silent' | 'half_open' | 'differs_from_poll';

/** An interval in which changes of these markets may be missing; `toMs` is absent while it lasts. Epoch milliseconds. */
export interface FeedGap {
  readonly id: string;
  readonly of: FeedLoss['of'];
  readonly reason: GapReason;
  readonly fromMs: number;
  readonly toMs?: number;
  readonly marketIds: readonly string[];
}

/** The listeners of a connection. They must not throw. */
export interface FeedListener {
  onReading(reading: FeedReading, session: FeedSession): void;
  onState(state: FeedState, detail: string): void;
  onGapStart(gap: FeedGap): void;
  onGapEnd(gap: FeedGap & { readonly toMs: number }): void;
  /** Markets that stay incomplete after a reconnect, while others are complete: only polls read them from now on. */
  onGivenUp(marketIds: readonly string[]): void;
}
