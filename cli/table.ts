import { printable } from '../src/domain/values/text.ts';

/**
 * Columns padded to their widest cell, those of `numeric` right-aligned. The first row is the head. `paint` colours the padded line of a
 * row.
 */
export function table(
  rows: readonly (readonly string[])[],
  numeric: readonly number[] = [],
  paint: (line: string, row: number) => string = (line) => line,
): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => widthOf(row[column] ?? ''))));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => pad(cell, widths[column] ?? 0, numeric.includes(column))).join('  ');
  return cells.map((row, at) => `${paint(line(row).trimEnd(), at)}\n`).join('');
}

/** Names with a text behind each, for help. */
export function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join('');
}

/** The text with spaces up to this width, before it for a number. */
export function pad(text: string, width: number, isNumber = false): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)));
  return isNumber ? `${space}${text}` : `${text}${space}`;
}

/** Letters on the screen, counted as code points. */
function widthOf(text: string): number {
  return [...text].length;
}

export function cut(text: string, length: number): string {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, Math.max(0, length - 1)).join('')}…`;
}

/** UTC to the second, of a date, of epoch seconds or of a time in ISO 8601. */
export function utc(time: Date | number | string | null | undefined, absent = ''): string {
  if (time === null || time === undefined) return absent;
  const text = typeof time === 'string' ? time : new Date(typeof time === 'number' ? time * 1_000 : time).toISOString();
  return text.slice(0, 19).replace('T', ' ');
}
