const SECONDS = /^\d{1,9}$/;
/** HTTP dates begin with a weekday; `Date.parse` alone would take almost anything. */
const WEEKDAY = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * The pause of a `Retry-After` header in milliseconds, from whole seconds or an HTTP date (RFC 9110 section 10.2.3). A date in the past is
 * 0; other forms are undefined.
 */
export function parseRetryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (!text) return undefined;
  if (SECONDS.test(text)) return Number(text) * 1000;
  const dateMs = WEEKDAY.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
