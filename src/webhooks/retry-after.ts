/** RFC 9110 section 5.6.7: the current form, then the two obsolete forms that recipients must accept. */
const IMF_OR_RFC850_DATE =
  /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} [\d:]{8} GMT$/;
const ASCTIME_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/;

/**
 * The seconds of a `Retry-After` header: a number (some servers send decimals) or an HTTP-date. A date in
 * the past is 0; anything else is undefined, as if the header were absent.
 */
export function parseRetryAfter(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^\d{1,15}(\.\d{1,9})?$/.test(text)) return Number(text);
  const atMs = Date.parse(dateText(text));
  return Number.isNaN(atMs) ? undefined : Math.max(0, (atMs - nowMs) / 1000);
}

/** Date.parse accepts almost any text ("-5", "3 apples"), so only the three HTTP forms are passed to it. */
function dateText(text: string): string {
  if (IMF_OR_RFC850_DATE.test(text)) return text;
  // asctime has no zone; without one, Date.parse would assume local time.
  return ASCTIME_DATE.test(text) ? `${text} GMT` : '';
}
