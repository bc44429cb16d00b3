const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?)?$/;

/** The seconds of a span as a person types it (`30s`, `90m`, `24h`, `7d`); null for other text. */
export function parseSpan(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (UNIT_SECONDS[unit] ?? 0);
}

/** The epoch seconds of a time as a person types it: epoch seconds, or a date or time in ISO 8601 (UTC unless it has a zone). */
export function parseMoment(text: string): number | null {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  const [, date, time = '00:00', zone = 'Z'] = MOMENT.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  return Number.isNaN(ms) ? null : Math.floor(ms / 1_000);
}

/** The epoch seconds of a past time: an age such as `24h`, or as in `parseMoment`. */
export function parsePast(text: string, nowSeconds: number): number | null {
  const span = parseSpan(text);
  return span === null ? parseMoment(text) : nowSeconds - span;
}

/** The epoch seconds of a time to come: a span such as `90d` from now, or as in `parseMoment`. */
export function parseFuture(text: string, nowSeconds: number): number | null {
  const span = parseSpan(text);
  return span === null ? parseMoment(text) : nowSeconds + span;
}
