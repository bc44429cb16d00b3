export const UNITS = ['absolute', 'percent'] as const;
export type Unit = (typeof UNITS)[number];

/** `at_most` and `at_least` of a spread; `up` and `down` of a change, which without one counts in both directions. */
export const DIRECTIONS = ['at_most', 'at_least', 'up', 'down'] as const;
export type Direction = (typeof DIRECTIONS)[number];

export const ALERT_STATUSES = ['active', 'paused', 'triggered', 'expired'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** A trade print received later than this after its venue time fires no alert. */
export const STALE_OBSERVATION_MS = 600_000;

export const MAX_WINDOW_SECONDS = 86_400;
/** The longest time of all windows of a volume together. */
export const MAX_WINDOWS_SECONDS = 604_800;
export const MIN_COOLDOWN_SECONDS = 1;
/** Of an alert that repeats. */
export const DEFAULT_COOLDOWN_SECONDS = 3_600;
export const MAX_COOLDOWN_SECONDS = 2_592_000;

/** The markets of a rule. All given fields must fit. */
export interface Scope {
  market_id?: string | undefined;
  event_id?: string | undefined;
  venue?: string | undefined;
  category?: string | undefined;
  /** Every word is in the title of the market or of its event. */
  q?: string | undefined;
}
