/** RFC 9110 section 5.6.7: the fixed form, then the two obsolete ones that must still be understood. */
const IMF_OR_RFC850_DATE =
  /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} [\d:]{8} GMT$/;
const ASCTIME_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/;

/**
 * Seconds a `Retry-After` header asks to wait: a number (decimals are seen in practice) or an HTTP-date. A date in
 * the past is 0; anything else is undefined, as if the header were absent.
 */
export function parseRetryAfter(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^\d{1,15}(\.\d{1,9})?$/.test(text)) return Number(text);
  const atMs = Date.parse(dateText(text));
  return Number.isNaN(atMs) ? undefined : Math.max(0, (atMs - nowMs) / 1000);
}

/** Date.parse reads almost anything ("-5", "3 apples"): only the three HTTP forms may reach it. */
function dateText(text: string): string {
  if (IMF_OR_RFC850_DATE.test(text)) return text;
  // asctime names no zone; without one it would be read as local time.
  return ASCTIME_DATE.test(text) ? `${text} GMT` : '';
}
