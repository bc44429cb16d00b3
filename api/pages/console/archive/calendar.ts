import type { ARCHIVE_KIND_NAMES } from '../../../../src/domain/archive/kinds.ts';
import { type CoverageKind, HOUR_MS } from '../../../../src/domain/markets/coverage.ts';
import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import type { ArchiveFileBody } from '../../../contract/archive/file.ts';
import type { CoverageHourBody } from '../../../contract/completeness.ts';
import { ApiError } from '../../../errors.ts';
import { badge, type Html, html, number, table } from '../../kit/html.ts';
import { withQuery } from '../../kit/lists.ts';
import type { ConsoleRequest } from '../route.ts';
import { compact } from '../values.ts';

const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** A UTC month, `YYYY-MM`, with its first and last day. */
export interface Month {
  readonly name: string;
  readonly first: string;
  readonly last: string;
}

const dayOf = (atMs: number) => new Date(atMs).toISOString().slice(0, 10);

/** The month of a day `YYYY-MM-DD`, or one `by` months later. */
export function monthOf(day: string, by = 0): Month {
  const [year = 0, month = 1] = day.split('-').map(Number);
  const startMs = Date.UTC(year, month - 1 + by, 1);
  const endMs = Date.UTC(year, month + by, 1);
  return { name: dayOf(startMs).slice(0, 7), first: dayOf(startMs), last: dayOf(endMs - DAY_MS) };
}

/** The days from the first to the last one, both included. */
function daysBetween(first: string, last: string): string[] {
  const count = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  return Array.from({ length: count }, (_, index) => dayOf(Date.parse(first) + index * DAY_MS));
}

/** Bytes in a decimal unit. */
export function sizeText(bytes: number): string {
  const [unit, size] = [['GB', 1e9] as const, ['MB', 1e6] as const, ['kB', 1e3] as const].find(
    ([, each]) => bytes >= each,
  ) ?? ['B', 1];
  return `${size === 1 ? bytes : (bytes / size).toFixed(1)} ${unit}`;
}

interface CalendarOptions {
  readonly place: { path: string; query: URLSearchParams };
  readonly month: Month;
  readonly files: readonly ArchiveFileBody[];
  /** The coverage by day; a day that is not over has none. */
  readonly coverage?: ReadonlyMap<string, DayCoverage> | undefined;
  /** The days that are marked, `YYYY-MM-DD`; absent: none. */
  readonly marked?: { readonly from: string; readonly to: string } | undefined;
  /** The present UTC day. */
  readonly today: string;
}

/** The days of a month, Monday first: each is a link that chooses it. */
export function calendar({ place, month, files, coverage, marked, today }: CalendarOptions): Html {
  const byDay = new Map(files.map((file) => [file.date, file]));
  const startsAt = (new Date(month.first).getUTCDay() + 6) % 7;
  return html`<div class="calendar"><ol class="weekdays" aria-hidden="true">${WEEKDAYS.map((name) => html`<li>${name}</li>`)}</ol>
<ol class="days starts-${startsAt}" aria-label="Days of ${month.name}">${daysBetween(month.first, month.last).map(
    (day) => {
      const file = byDay.get(day);
      const number = Number(day.slice(8));
      if (!file && day >= today) {
        return html`<li><span class="day later"><span class="date">${number}</span><span class="visually-hidden">not over</span></span></li>`;
      }
      const isMarked = marked !== undefined && day >= marked.from && day <= marked.to;
      const [state, text] = stateOf(file);
      const covered = coverage?.get(day);
      return html`<li><a class="day ${state}${covered && ` is-${covered.class}`}" href="${withQuery(place, { month: month.name, from: day, to: day })}"${
        isMarked && html` aria-current="date"`
      }><span class="date">${number}${covered && mark(covered.class)}</span>${covered && html`<span class="day-class">${covered.text}</span>`}${text}</a></li>`;
    },
  )}</ol></div>`;
}

function stateOf(file: ArchiveFileBody | undefined): readonly [state: string, text: Html] {
  if (!file) return ['absent', html`<span class="day-rows">–<span class="visually-hidden"> not archived</span></span>`];
  if (file.file === null) return ['rowless', html`<span class="day-rows">empty</span>`];
  return [
    'archived',
    html`<span class="day-rows">${compact(file.rows)}<span class="visually-hidden"> rows, </span></span>
<span class="day-size">${sizeText(file.bytes)}</span>`,
  ];
}

const MARKS: Readonly<Record<DayClass, string>> = { complete: '✓', gap: '✕', unknown: '?' };

function mark(covered: DayClass): Html {
  return html`<span class="day-mark" aria-hidden="true">${MARKS[covered]}</span>`;
}

const CLASSES: readonly (readonly [DayClass, string])[] = [
  ['complete', 'complete or observed'],
  ['gap', 'hours with a gap'],
  ['unknown', 'unknown hours'],
];

/** The states of days by colour and word. */
export function legend(hasCoverage: boolean): Html {
  const classes = CLASSES.map(
    ([name, text]) =>
      html`<li><span class="day archived is-${name}" aria-hidden="true">${mark(name)}</span>${text}</li>\n`,
  );
  if (hasCoverage) {
    return html`<ul class="legend">${classes}<li><span class="day absent" aria-hidden="true"></span>not archived</li></ul>`;
  }
  return html`<ul class="legend"><li><span class="day archived" aria-hidden="true"></span>archived, with rows and size</li>
<li><span class="day rowless" aria-hidden="true"></span>archived, without rows</li>
<li><span class="day absent" aria-hidden="true"></span>not archived</li></ul>`;
}

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
type DayClass = 'complete' | 'gap' | 'unknown';

interface DayCoverage {
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

const dateOf = ({ start }: CoverageHourBody) => new Date(start * 1_000).toISOString().slice(0, 10);

/** The class of each day: a gap of one hour makes its day one with a gap, and one unknown hour makes it unknown. */
export function classesOfDays(hours: readonly CoverageHourBody[]): ReadonlyMap<string, DayCoverage> {
  const byDay = new Map<string, CoverageHourBody[]>();
  for (const hour of hours) byDay.set(dateOf(hour), [...(byDay.get(dateOf(hour)) ?? []), hour]);
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
