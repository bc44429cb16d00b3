import type { Arguments } from './arguments.ts';

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?)?$/;

/** The seconds of an option such as `30s`, `90m`, `24h` or `7d`; undefined when it is absent or, with a problem, invalid. */
export function spanOf({ texts, problems }: Arguments, name: string): number | undefined {
  const text = texts.get(name);
  const seconds = text === undefined ? undefined : parseSpan(text);
  if (seconds === null) problems.push(`--${name} must be a span such as 90s, 15m or 1h`);
  return seconds ?? undefined;
}

/**
 * The epoch seconds of an option: an age such as `24h`, epoch seconds, or a date or time in ISO 8601 (UTC unless it has a zone), rounded
 * down to whole seconds; undefined when it is absent or, with a problem, invalid.
 */
export function pastOf(given: Arguments, name: string, nowMs: number): number | undefined {
  return momentOf(given, name, (span) => nowMs / 1_000 - span, 'an age such as 24h');
}

/** The same for a time to come: a span such as `90d` is from now. */
export function futureOf(given: Arguments, name: string, nowMs: number): number | undefined {
  return momentOf(given, name, (span) => nowMs / 1_000 + span, 'a span from now such as 90d');
}

function momentOf({ texts, problems }: Arguments, name: string, at: (span: number) => number, form: string) {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  const span = parseSpan(text);
  const seconds = span === null ? parseMoment(text) : at(span);
  if (seconds !== null) return Math.floor(seconds);
  problems.push(`--${name} must be ${form}, a date, a time in ISO 8601, or epoch seconds`);
  return undefined;
}

function parseSpan(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (UNIT_SECONDS[unit] ?? 0);
}

function parseMoment(text: string): number | null {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  const [, date, time = '00:00', zone = 'Z'] = MOMENT.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  return Number.isNaN(ms) ? null : ms / 1_000;
}

/** Whether a text is a day of the calendar, such as 2026-01-31. */
export function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
