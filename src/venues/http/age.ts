/** One day: no venue caches a list for longer. */
const MAX_AGE_SECONDS = 86_400;

/**
 * Milliseconds of an `Age` header (RFC 9111 section 5.1: whole seconds, of a list the first), at most a day; undefined without one. A cache
 * sent the answer, so a value that is not a number of seconds means an unknown age: a day, because none would look fresh.
 */
export function parseAgeMs(header: string | string[] | undefined): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.split(',')[0]?.trim();
  if (text === undefined) return undefined;
  return 1000 * (/^\d+$/.test(text) ? Math.min(Number(text), MAX_AGE_SECONDS) : MAX_AGE_SECONDS);
}

/**
 * The longest time that an answer with this age was in a cache, milliseconds. `Age` counts whole seconds, so up to one more second may have
 * passed.
 */
export function cachedForMs(ageMs: number | undefined): number {
  return ageMs === undefined ? 0 : ageMs + 1_000;
}

/** The rows of one answer and their moment: see `VenueAnswer.observedAt`. */
export interface ObservedRows {
  rows: unknown[];
  observedAt: number;
}

/**
 * The `asOfMs` of a price without a time of its own, whole epoch milliseconds. It is never later than the moment at which the venue had
 * this price: neither the duration of the request nor the time in a cache makes a price look fresher.
 */
export function observedAtMs({ observedAt }: { observedAt: number }, nowMs: number): number {
  return Math.floor(nowMs - (performance.now() - observedAt));
}
