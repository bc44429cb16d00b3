/** The rules of a request rate that follows a host's refusals. The ledgers in memory and in Postgres share them. */

/** A refusal halves the rate: four refusals find a limit of a tenth of the ceiling. */
export const RATE_DECREASE = 0.5;
/** Below a tenth of the ceiling, refusals are an outage, and the breaker and the pauses of the venue deal with it. */
export const RATE_FLOOR = 0.1;
/** Successive requests at the full rate raise it from zero to the ceiling in this time. */
export const RATE_RECOVERY_SECONDS = 60;
/** The longest pause: a wrong header must not silence a venue for days. */
export const MAX_PAUSE_MS = 10 * 60_000;
/** A process may use turns that it reserved for this long. */
export const RESERVE_MS = 5_000;
/** At most this part of a burst is reserved at a time, by all processes together: the rest is for the others. */
export const RESERVED_SHARE = 0.5;
/** Turns are counted in binary fractions. */
export const TURN_ROUNDING = 1e-9;
