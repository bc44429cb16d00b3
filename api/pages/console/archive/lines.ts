import { ARCHIVE_KINDS, type ArchiveKind } from '../../../../src/domain/archive/kinds.ts';
import type { ArchiveFileBody } from '../../../contract/archive/file.ts';
import { type Html, html } from '../../kit/html.ts';
import { tab } from '../program.ts';

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
export function readingLines(options: LinesOptions): Html {
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
