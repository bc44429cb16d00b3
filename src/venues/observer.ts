import type { VenueErrorCode } from './errors.ts';
import type { RecordKind } from './port.ts';

export type BreakerState = 'closed' | 'half_open' | 'open';

/** One HTTP attempt that ended; a retried call makes several. `route` is a fixed label, never a path that contains ids. */
export interface RequestEvent {
  venue: string;
  host: string;
  route: string;
  outcome: 'ok' | VenueErrorCode;
  statusCode?: number;
  durationMs: number;
  /** The `Age` of the answer, milliseconds; absent without one. */
  ageMs?: number;
}

/** A request that got its turn in the rate budget of its host after this wait, or was refused one because the wait would be too long. */
interface TurnEvent {
  venue: string;
  host: string;
  waitedMs: number;
  isRefused: boolean;
}

interface BreakerEvent {
  venue: string;
  host: string;
  state: BreakerState;
}

/** A venue state or field form that is not known; the adapter mapped it to the nearest safe one. `value` has at most 100 characters. */
interface UnknownValueEvent {
  venue: string;
  field: string;
  value: string;
}

/** A walk that could not see everything it should have: the unseen records may be missing permanently. */
interface TruncationEvent {
  venue: string;
  kind: RecordKind;
  detail: string;
}

/** Sound records that are not stored, by reason. `docs/venues.md` lists the reasons of each venue. */
interface SkipEvent {
  venue: string;
  kind: RecordKind;
  reason: string;
  count: number;
}

/**
 * Raw records that an adapter received and accounts for: each is among its records or its rejections, or was reported as skipped. A raw
 * record of several outcomes counts once for each record that is made from it.
 */
interface ReceiptEvent {
  venue: string;
  kind: RecordKind;
  count: number;
}

/** A member that failed alone while others of the same call succeeded. */
export interface RefusedMember {
  member: string;
  route: string;
  reason: string;
  /** In a row. */
  failures: number;
  /** Milliseconds until it is asked again. */
  retryAfterMs: number;
}

/** Ids that break a request went into the quarantine of a route, or left it. */
interface MembersEvent {
  venue: string;
  route: string;
  /** Failed alone while others succeeded. */
  refused: readonly RefusedMember[];
  /** Were in quarantine, and have an answer again. */
  healed: readonly string[];
  /** Ids in the quarantine of this route now. */
  quarantined: number;
}

/** The listeners of metrics and of venue health. They must not throw. */
export interface VenueObserver {
  onRequest?(event: RequestEvent): void;
  onTurn?(event: TurnEvent): void;
  onBreaker?(event: BreakerEvent): void;
  onUnknown?(event: UnknownValueEvent): void;
  onTruncated?(event: TruncationEvent): void;
  onSkipped?(event: SkipEvent): void;
  onReceived?(event: ReceiptEvent): void;
  onMembers?(event: MembersEvent): void;
  /** A venue refuses the key of this client, which goes on without it. */
  onKeyRefused?(event: { venue: string; host: string; statusCode: number }): void;
}
