import type { ARCHIVE_KIND_NAMES } from '../../../../src/domain/archive/kinds.ts';
import { type CoverageKind, HOUR_MS } from '../../../../src/domain/markets/coverage.ts';
import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import type { CoverageHourBody } from '../../../contract/completeness.ts';
import { ApiError } from '../../../errors.ts';
import { badge, type Html, html, number, table } from '../../kit/html.ts';
import type { ConsoleRequest } from '../route.ts';

type Kind = (typeof ARCHIVE_KIND_NAMES)[number];

/** The coverage that covers a kind of the archive. Results of markets have none. */
const COVERAGE_OF: Readonly<Record<Kind, CoverageKind | undefined>> = {
  trades: 'trades',
  candles: 'trades',
  prices: 'prices',
  books: 'books',
  markets: 'markets',
  resolutions: undefined,
  coverage: undefined,
};
/** More hours than a month has. */
const MAX_HOURS = 1_000;
const MAX_SPANS = 24;
const HOUR_SECONDS = HOUR_MS / 1_000;

/** The worst class of the hours of a day. */
export type DayClass = 'complete' | 'gap' | 'unknown';

export interface DayCoverage {
  readonly class: DayClass;
  /** The class in words, with the hours that it concerns. */
  readonly text: string;
}

/** The hours of UTC days, both included; undefined when the kind has no coverage, or the key may not read it. */
export async function hoursOfDays(
  { api, nowMs }: Pick<ConsoleRequest, 'api' | 'nowMs'>,
  { kind, venue }: { kind: Kind; venue: string },
  first: string,
  last: string,
): Promise<readonly CoverageHourBody[] | undefined> {
  const covered = COVERAGE_OF[kind];
  const startMs = Date.parse(first);
  const endMs = Math.min(Date.parse(last) + DAY_MS, Math.floor(nowMs / DAY_MS) * DAY_MS);
  if (covered === undefined || startMs >= endMs) return undefined;
  const query = { kind: covered, start: startMs / 1_000, end: endMs / 1_000, limit: MAX_HOURS };
  try {
    return (await api<CoverageHourBody[]>({ operationId: 'listCoverage', params: { venue }, query })).data;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'insufficient_scope') return undefined;
    throw error;
  }
}

const dayOf = ({ start }: CoverageHourBody) => new Date(start * 1_000).toISOString().slice(0, 10);

/** The class of each day: a gap of one hour makes its day one with a gap, and one unknown hour makes it unknown. */
export function classesOfDays(hours: readonly CoverageHourBody[]): ReadonlyMap<string, DayCoverage> {
  const byDay = new Map<string, CoverageHourBody[]>();
  for (const hour of hours) byDay.set(dayOf(hour), [...(byDay.get(dayOf(hour)) ?? []), hour]);
  return new Map([...byDay].map(([day, ofDay]) => [day, classOf(ofDay)]));
}

function classOf(hours: readonly CoverageHourBody[]): DayCoverage {
  for (const bad of ['gap', 'unknown'] as const) {
    const count = hours.filter((hour) => hour.class === bad).length;
    if (count > 0) return { class: bad, text: count === hours.length ? bad : `${bad} ${count} h` };
  }
  return { class: 'complete', text: hours.some((hour) => hour.class === 'observed') ? 'observed' : 'complete' };
}

interface Span extends Pick<CoverageHourBody, 'start' | 'class' | 'cause' | 'reason'> {
  end: number;
}

/** Gaps and unknown hours that follow each other with the same cause or reason. */
function spansOf(hours: readonly CoverageHourBody[]): Span[] {
  const spans: Span[] = [];
  for (const { start, class: each, cause, reason } of hours) {
    if (each !== 'gap' && each !== 'unknown') continue;
    const end = start + HOUR_SECONDS;
    const last = spans.at(-1);
    if (last?.end === start && last.class === each && last.cause === cause && last.reason === reason) last.end = end;
    else spans.push({ start, end, class: each, ...(cause && { cause }), ...(reason && { reason }) });
  }
  return spans;
}

const minuteOf = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ');

/** The hours of the chosen days in words, and the spans that are not complete. */
export function coverageSection(kind: Kind, hours: readonly CoverageHourBody[]): Html {
  const count = (...classes: CoverageHourBody['class'][]) =>
    hours.filter((hour) => classes.includes(hour.class)).length;
  const spans = spansOf(hours);
  const shown = spans.slice(0, MAX_SPANS);
  const good = kind === 'trades' || kind === 'candles' ? 'complete or quiet' : 'observed';
  return html`<section aria-labelledby="coverage-title"><h2 id="coverage-title">Coverage</h2>
<p class="lead">Of ${number(hours.length)} hours ${number(count('complete', 'quiet', 'observed'))} ${good}, ${number(count('gap'))} with a gap, ${number(count('unknown'))} unknown. <a href="/docs/read/coverage">The classes</a></p>
${
  shown.length > 0 &&
  table<Span>({
    caption: 'Hours that are not complete',
    rows: shown,
    empty: '',
    columns: [
      { label: 'From (UTC)', cell: ({ start }) => minuteOf(start) },
      { label: 'To (UTC)', cell: ({ end }) => minuteOf(end) },
      { label: 'Class', cell: ({ class: each }) => badge(each === 'gap' ? 'bad' : 'warn', each) },
      { label: 'Why', cell: ({ cause, reason }) => (cause ?? reason ?? '').replaceAll('_', ' ') },
    ],
  })
}${spans.length > shown.length && html`<p class="lead">and ${number(spans.length - shown.length)} more spans: <code>oddswire-cli coverage</code> prints all.</p>`}</section>`;
}
