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

/** Letters that a terminal shows two columns wide: of East Asia, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
/** Letters without a column of their own. */
const MARK = /\p{Mn}|\p{Me}|\u200d|[\ufe00-\ufe0f]/u;

function columnsOf(letter: string): number {
  return letter < '\u0300' ? 1 : MARK.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1;
}

/** Columns of a terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += columnsOf(letter);
  return width;
}

/** The text within so many columns of a terminal. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const letter of text) {
    left -= columnsOf(letter);
    if (left < 0) break;
    kept += letter;
  }
  return `${kept}…`;
}

/** UTC to the second, of a date, of epoch seconds or of a time in ISO 8601. */
export function utc(time: Date | number | string | null | undefined, absent = ''): string {
  if (time === null || time === undefined) return absent;
  const text = typeof time === 'string' ? time : new Date(typeof time === 'number' ? time * 1_000 : time).toISOString();
  return text.slice(0, 19).replace('T', ' ');
}
