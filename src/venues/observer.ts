import type { VenueErrorCode } from './errors.ts';
import type { RecordKind } from './port.ts';

export type BreakerState = 'closed' | 'half_open' | 'open';

/** One HTTP attempt that ended; a retried call makes several. `route` is a fixed label, never a path with ids in it. */
export interface RequestEvent {
  venue: string;
  host: string;
  route: string;
  outcome: 'ok' | VenueErrorCode;
  statusCode?: number;
  durationMs: number;
  /** The `Age` of the answer, milliseconds; absent when the answer names none. */
  ageMs?: number;
}

/** A request that got its turn in the rate budget of its host after this wait, or was refused one: it would have come too late. */
interface TurnEvent {
  venue: string;
  host: string;
  waitedMs: number;
  isRefused: boolean;
}

/** The request rate of one client of a host, each time it changes; `previous` is 0 at the start. Both are per second. */
export interface RateEvent {
  venue: string;
  host: string;
  perSecond: number;
  previous: number;
}

export interface BreakerEvent {
  venue: string;
  host: string;
  state: BreakerState;
}

/** A venue state or field form that is not known; it was mapped to the nearest safe one. `value` is at most 100 characters. */
export interface UnknownValueEvent {
  venue: string;
  field: string;
  value: string;
}

/** A walk that could not see everything it should have: what it left out may be missing for good. */
export interface TruncationEvent {
  venue: string;
  kind: RecordKind;
  detail: string;
}

/** Sound records that are not stored, by reason (docs/venues.md). */
export interface SkipEvent {
  venue: string;
  kind: RecordKind;
  reason: string;
  count: number;
}

/**
 * Raw records that an adapter received and accounts for: each is among its records or its rejections, or was reported as
 * skipped. A raw record of several outcomes counts once for each record that is made from it.
 */
export interface ReceiptEvent {
  venue: string;
  kind: RecordKind;
  count: number;
}

/** What metrics and venue health listen to. Listeners must not throw. */
export interface VenueObserver {
  onRequest?(event: RequestEvent): void;
  onTurn?(event: TurnEvent): void;
  onRate?(event: RateEvent): void;
  onBreaker?(event: BreakerEvent): void;
  onUnknown?(event: UnknownValueEvent): void;
  onTruncated?(event: TruncationEvent): void;
  onSkipped?(event: SkipEvent): void;
  onReceived?(event: ReceiptEvent): void;
}
