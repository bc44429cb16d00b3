import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { gunzipSync } from 'node:zlib';

/**
 * Recorded payloads of the venues are outside the repository and are read in place, never copied into it:
 * `../shared/venue-data` from its root, or the folder in ODDSWIRE_VENUE_DATA.
 */
const ROOT = resolve(process.env['ODDSWIRE_VENUE_DATA'] ?? '../shared/venue-data');

/** More recordings, in a folder beside the others: files with the venue's name at their beginning. */
const REPORTS = '../venue-data-reports';

/** These files, under names that begin with `reports/`; none when the folder is absent. */
export function reportedFiles(): { name: string; path: string }[] {
  const folder = venueDataFolder(REPORTS);
  return folder === undefined
    ? []
    : listRecordedFiles(folder).map((file) => ({ name: `reports/${file}`, path: join(folder, file) }));
}

/** The folder of a venue's recordings, or undefined with a warning when it is missing. */
export function venueDataFolder(venue: string): string | undefined {
  const folder = join(ROOT, venue);
  if (existsSync(folder)) return folder;
  const line = '!'.repeat(100);
  console.error(
    `${line}\n! NO RECORDED PAYLOADS: ${folder} is absent.\n` +
      `! The conformance tests of ${venue} on real payloads are SKIPPED. Set ODDSWIRE_VENUE_DATA to their folder.\n${line}`,
  );
  return undefined;
}

/** Every file below a folder, as paths relative to it with forward slashes, sorted. */
export function listRecordedFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** A text file, gzipped or not. */
export function readRecordedText(path: string): string {
  const bytes = readFileSync(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

/** A JSON file, gzipped or not. */
export function readRecordedJson(path: string): unknown {
  return JSON.parse(readRecordedText(path));
}

/** A file with one JSON value per line, gzipped or not. */
export function readRecordedLines(path: string): unknown[] {
  return readRecordedText(path)
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line));
}

/** A CSV file with a header line as objects of text; fields may be quoted, and lose quotes inside them. */
export function readRecordedCsv(path: string): Record<string, string>[] {
  const [header = [], ...rows] = readRecordedText(path)
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map(splitCsvLine);
  return rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])));
}

function splitCsvLine(line: string): string[] {
  const fields: string[] = [''];
  let isQuoted = false;
  for (const character of line) {
    if (character === '"') isQuoted = !isQuoted;
    else if (character === ',' && !isQuoted) fields.push('');
    else fields.push(`${fields.pop() ?? ''}${character}`);
  }
  return fields;
}

/** Prints a table into the test output. */
export function printTable(title: string, rows: readonly Record<string, string | number>[]): void {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  console.log(`${title}\n${lines.join('\n')}\n`);
}
