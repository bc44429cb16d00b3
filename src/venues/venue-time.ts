const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;
/** Times before the year 2000 are zero values of clocks and databases. */
const MIN_MS = Date.UTC(2000, 0, 1);
/** The last millisecond of the year 9999; venues use dates like 2500-12-31 for "never". */
const MAX_MS = 253_402_300_799_999;

/**
 * The greatest accepted difference of clocks. A record further in the future is rejected, because it would move a watermark, or hide every
 * later record.
 */
export const MAX_AHEAD_MS = 300_000;

/**
 * Epoch milliseconds of the date texts of venues: ISO 8601 with 0 to 9 fraction digits, `2026-07-24 00:00:16+00` with a space and a
 * two-digit zone, or a date alone (its midnight). No zone means UTC. Other texts are undefined.
 */
export function parseVenueTimeMs(value: unknown): number | undefined {
  const precise = parsePreciseVenueTimeMs(value);
  return precise === undefined ? undefined : Math.floor(precise);
}

/** The same with the venue's microseconds as a fraction, which orders the trades of one millisecond. */
export function parsePreciseVenueTimeMs(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined;
  const match = DATE_TIME.exec(value.trim());
  if (!match) return undefined;
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] = match;
  const midnight = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const isRealDay =
    new Date(midnight).getUTCDate() === Number(day) && new Date(midnight).getUTCMonth() + 1 === Number(month);
  if (!isRealDay || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const clockMs = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
  const micros = (midnight + clockMs - zoneOffsetMs(zone)) * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6));
  const ms = micros / 1000;
  return ms >= MIN_MS && ms < MAX_MS + 1 ? ms : undefined;
}

function zoneOffsetMs(zone: string): number {
  if (/^z$/i.test(zone)) return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(':', '') || 0);
  return (zone.startsWith('-') ? -1 : 1) * minutes * 60_000;
}
