/** A day: a larger value is a broken clock, and no venue caches a list for longer. */
const MAX_AGE_SECONDS = 86_400;

/**
 * Milliseconds of an `Age` header (RFC 9111 section 5.1: whole seconds). Undefined when it is absent, not a whole number of
 * seconds, or more than a day.
 */
export function parseAgeMs(header: string | string[] | undefined): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  if (!/^\d{1,9}$/.test(text)) return undefined;
  const seconds = Number(text);
  return seconds > MAX_AGE_SECONDS ? undefined : seconds * 1000;
}
