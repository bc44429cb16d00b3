import { ARCHIVE_KIND_NAMES, ARCHIVE_KINDS, type ArchiveKind } from '../../../../src/domain/archive/kinds.ts';
import { VENUE_NAMES } from '../../../../src/domain/markets/venue.ts';
import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import type { ArchiveFileBody } from '../../../contract/archive/file.ts';
import type { CoverageHourBody } from '../../../contract/completeness.ts';
import { ApiError, invalidRequest } from '../../../errors.ts';
import { marketVenues } from '../../../routes/market-scope.ts';
import { chosen, textField } from '../../kit/filters.ts';
import { choice, field, filterForm } from '../../kit/forms.ts';
import { emptyState, type Html, html, number } from '../../kit/html.ts';
import { withQuery } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { SECTIONS } from '../layout.ts';
import { tab } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { venueTitle } from '../values.ts';
import {
  calendar,
  classesOfDays,
  coverageSection,
  hoursOfDays,
  legend,
  type Month,
  monthOf,
  sizeText,
} from './calendar.ts';

const { path: PATH, scope } = SECTIONS.archive;
/** A year of days. */
const MAX_DAYS = 366;

type Kind = (typeof ARCHIVE_KIND_NAMES)[number];

interface Chosen {
  kind: Kind;
  venue: string;
  month: Month;
  from: string;
  to: string;
}

/** /archive: the archived days of a kind and venue, and the lines that read them. */
export function archivePage(router: ConsoleRouter, deps: Pick<PageDeps, 'venues'>): void {
  const [firstVenue = 'polymarket'] = marketVenues(deps);
  router.page({
    path: PATH,
    section: 'archive',
    scope,
    async load(request) {
      const today = new Date(request.nowMs).toISOString().slice(0, 10);
      const view = readChosen(request.query, today, firstVenue);
      const { month, from, to } = view;
      const isMonth = from >= month.first && to <= month.last;
      try {
        const [ofMonth, hours, ofRange] = await Promise.all([
          filesOf(request, view, month.first, month.last),
          hoursOfDays(request, view, month.first, month.last),
          isMonth ? undefined : filesOf(request, view, from, to),
        ]);
        const range = (ofRange ?? ofMonth).filter(({ date }) => date >= from && date <= to);
        return { title: 'Archive', body: pageBody(request, view, { today, ofMonth, range, hours }) };
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 'archive_off')) throw error;
        const text = html`This server has no archive. Its operator switches it on with <a href="/docs/read/archive">ARCHIVE_DIR</a>.`;
        return { title: 'Archive', body: emptyState(text) };
      }
    },
  });
}

function readChosen(query: URLSearchParams, today: string, firstVenue: string): Chosen {
  const kind = chosen(query, 'kind', ARCHIVE_KIND_NAMES) ?? 'trades';
  const venue = chosen(query, 'venue', VENUE_NAMES) ?? firstVenue;
  const [from, to] = [dayField(query, 'from'), dayField(query, 'to')];
  const named = textField(query, 'month');
  if (named !== undefined && !/^\d{4}-(0[1-9]|1[0-2])$/.test(named)) {
    throw invalidRequest([{ path: 'month', message: 'must be a month such as 2026-01' }]);
  }
  const month = monthOf(named ?? from ?? to ?? today);
  const range = { from: from ?? (to !== undefined && to < month.first ? to : month.first), to: to ?? month.last };
  if (range.from > range.to) throw invalidRequest([{ path: 'from', message: 'must not be later than to' }]);
  if (Date.parse(range.to) - Date.parse(range.from) >= MAX_DAYS * 86_400_000) {
    throw invalidRequest([{ path: 'to', message: `must be within ${MAX_DAYS} days of from` }]);
  }
  return { kind, venue, month, ...range };
}

function dayField(query: URLSearchParams, name: 'from' | 'to'): string | undefined {
  const text = textField(query, name);
  const atMs = Date.parse(`${text}T00:00:00Z`);
  const isDay =
    text === undefined || (!Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text) && text.length === 10);
  if (!isDay) throw invalidRequest([{ path: name, message: 'must be a day such as 2026-01-31' }]);
  return text;
}

async function filesOf(
  { api }: Pick<ConsoleRequest, 'api'>,
  { kind, venue }: Chosen,
  from: string,
  to: string,
): Promise<ArchiveFileBody[]> {
  const query = { kind, venue, from, to, limit: MAX_DAYS };
  return (await api<ArchiveFileBody[]>({ operationId: 'listArchiveFiles', query })).data;
}

interface Loaded {
  today: string;
  ofMonth: readonly ArchiveFileBody[];
  range: readonly ArchiveFileBody[];
  /** The coverage of the month. */
  hours: readonly CoverageHourBody[] | undefined;
}

function pageBody(request: ConsoleRequest, view: Chosen, { today, ofMonth, range, hours }: Loaded): Html {
  const { kind, venue, month, from, to } = view;
  const place = { path: PATH, query: request.query };
  const stepTo = (by: number) =>
    withQuery(place, { month: monthOf(month.first, by).name, from: undefined, to: undefined });
  const isMonth = from === month.first && to === month.last;
  const chosenHours = hours?.filter(
    ({ start }) => start * 1_000 >= Date.parse(from) && start * 1_000 < Date.parse(to) + DAY_MS,
  );
  const files = range.filter((row): row is ArchiveFileBody & { file: string } => row.file !== null);
  return html`${filterForm(
    PATH,
    html`${choice({ label: 'Kind', name: 'kind', value: kind, options: ARCHIVE_KIND_NAMES.map((each) => [each, each] as const) })}
${choice({ label: 'Venue', name: 'venue', value: venue, options: VENUE_NAMES.map((each) => [each, venueTitle(each)] as const) })}
${field({ label: 'From', name: 'from', type: 'date', value: from })}
${field({ label: 'To', name: 'to', type: 'date', value: to })}`,
  )}
<h2>${month.name}</h2>
<p class="lead">${summaryOf(ofMonth)}</p>
${calendar({ place, month, files: ofMonth, coverage: hours && classesOfDays(hours), marked: isMonth ? undefined : { from, to }, today })}
<nav class="pager" aria-label="Months"><a class="button" href="${stepTo(-1)}">Earlier</a>${
    monthOf(month.first, 1).first <= today && html`<a class="button" href="${stepTo(1)}" rel="next">Later</a>`
  }</nav>
${legend(hours !== undefined)}
<h2>${from === to ? from : `${from} to ${to}`}</h2>
<p class="lead">${summaryOf(range)}</p>
${chosenHours !== undefined && chosenHours.length > 0 && coverageSection(kind, chosenHours)}
${
  files.length === 0
    ? emptyState('These days have no file.')
    : readingLines({ kind, venue, from, to, files, origin: request.origin })
}`;
}

function summaryOf(rows: readonly ArchiveFileBody[]): Html {
  if (rows.length === 0) return html`No day is archived.`;
  const sum = (of: (row: ArchiveFileBody) => number) => rows.reduce((total, row) => total + of(row), 0);
  const empty = rows.filter(({ file }) => file === null).length;
  return html`${number(rows.length)} ${rows.length === 1 ? 'day is' : 'days are'} archived${
    empty > 0 && html`, ${number(empty)} of them without rows`
  }: ${number(sum((row) => row.rows))} rows in ${sizeText(sum((row) => row.bytes))}.`;
}

/** Lines of curl: more files are for the program. */
const MAX_FILES = 31;

interface LinesOptions {
  readonly kind: ArchiveKind;
  readonly venue: string;
  /** UTC days. */
  readonly from: string;
  readonly to: string;
  /** The files of these days, at least one. */
  readonly files: readonly (ArchiveFileBody & { file: string })[];
  readonly origin: string;
}

/** Lines that copy the chosen days, and that read the copy. The key stays out of them. */
function readingLines(options: LinesOptions): Html {
  return html`<section class="program" aria-labelledby="lines-title"><h2 id="lines-title">These days in a program</h2>
<p class="lead">Copy the files first. The other lines read the folder <code>archive</code> of the copy.</p>
${tab('copy', 'oddswire-cli', copyLine(options), { isOpen: true })}${tab('curl', 'curl', curlLines(options))}
${tab('duckdb', 'DuckDB', duckdbLine(options))}${tab('polars', 'Polars', polarsLines(options))}${tab('pandas', 'pandas', pandasLines(options))}</section>`;
}

function copyLine({ kind, venue, from, to, origin }: LinesOptions): Html {
  return html`ODDSWIRE_URL=<span data-origin>${origin}</span> ODDSWIRE_KEY=$KEY \\
  oddswire-cli archive get --kind ${kind} --venue ${venue} --from ${from} --to ${to} --out archive`;
}

const folderOf = ({ kind, venue }: LinesOptions) => `archive/${kind}/venue=${venue}`;

function curlLines(options: LinesOptions): Html {
  const { files, origin } = options;
  const shown = files
    .slice(0, MAX_FILES)
    .map(
      ({ file, date }) =>
        html`curl -sf --create-dirs -H "Authorization: Bearer $KEY" -o ${folderOf(options)}/date=${date}/${file} "<span data-origin>${origin}</span>/v1/archive/${file}"\n`,
    );
  const more = files.length - shown.length;
  return html`${shown}${more > 0 && `# and ${more} more files: oddswire-cli copies all of them\n`}`;
}

/** Whether each file begins with values from before its day, which the file of the day before has too. */
function isCarried({ kind, files }: LinesOptions): boolean {
  return files.length > 1 && ARCHIVE_KINDS[kind].columns.some(({ name }) => name === 'in_effect');
}

const firstDay = ({ files, from }: LinesOptions) => files[0]?.date ?? from;

function duckdbLine(options: LinesOptions): string {
  const { from, to } = options;
  const carried = isCarried(options) ? `\n  AND (NOT in_effect OR date = '${firstDay(options)}')` : '';
  return `duckdb -c "SELECT * FROM read_parquet('${folderOf(options)}/date=*/*.parquet', hive_partitioning = true)
  WHERE date BETWEEN '${from}' AND '${to}'${carried} LIMIT 20"`;
}

const pythonDate = (day: string) => `date(${day.split('-').map(Number).join(', ')})`;

function polarsLines(options: LinesOptions): string {
  const { kind, from, to } = options;
  const carried = isCarried(options)
    ? `\n    .filter(~pl.col('in_effect') | (pl.col('date') == ${pythonDate(firstDay(options))}))`
    : '';
  return `from datetime import date
import polars as pl

${kind} = (
    pl.scan_parquet('${folderOf(options)}/**/*.parquet', hive_partitioning=True)
    .filter(pl.col('date').is_between(${pythonDate(from)}, ${pythonDate(to)}))${carried}
    .collect()
)
print(${kind})`;
}

function pandasLines(options: LinesOptions): string {
  const { kind, from, to } = options;
  const all = isCarried(options) ? `[frames[0], *(frame[~frame['in_effect']] for frame in frames[1:])]` : 'frames';
  return `from glob import glob
import pandas as pd

days = pd.date_range('${from}', '${to}').strftime('%Y-%m-%d')
files = [file for day in days for file in glob(f'${folderOf(options)}/date={day}/*.parquet')]
frames = [pd.read_parquet(file) for file in files]
${kind} = pd.concat(${all}, ignore_index=True)
print(${kind})`;
}
