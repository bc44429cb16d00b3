/** RFC 9110 section 5.6.7: the fixed form, then the two obsolete forms that a recipient must still accept. */
const IMF_OR_RFC850_DATE =
  /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} [\d:]{8} GMT$/;
const ASCTIME_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/;

/**
 * Seconds of a `Retry-After` header: a number (servers do send decimals) or an HTTP date (RFC 9110 section 10.2.3). A date in the
 * past is 0. Any other text is undefined, like an absent header. Of several headers the first one counts.
 */
export function parseRetryAfter(header: string | readonly string[] | undefined, nowMs: number): number | undefined {
  const text = ((typeof header === 'string' ? header : header?.[0]) ?? '').trim();
  if (/^\d{1,15}(\.\d{1,9})?$/.test(text)) return Number(text);
  const atMs = Date.parse(dateText(text));
  return Number.isNaN(atMs) ? undefined : Math.max(0, (atMs - nowMs) / 1000);
}

/** Date.parse accepts almost any text ("-5", "3 apples"), so only the three HTTP forms may reach it. */
function dateText(text: string): string {
  if (IMF_OR_RFC850_DATE.test(text)) return text;
  // asctime has no zone; without one, Date.parse uses local time.
  return ASCTIME_DATE.test(text) ? `${text} GMT` : '';
}
