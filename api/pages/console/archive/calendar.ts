import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import type { ArchiveFileBody } from '../../../contract/archive/file.ts';
import { type Html, html } from '../../kit/html.ts';
import { withQuery } from '../../kit/lists.ts';
import { compact } from '../values.ts';
import type { DayClass, DayCoverage } from './day-coverage.ts';

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
