import { printable } from '../../src/domain/values/text.ts';

/** Columns padded to their widest cell, numbers right-aligned. The first row is the head. */
export function table(rows: readonly (readonly string[])[], numeric: readonly number[] = []): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number) =>
    numeric.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return cells.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('');
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** UTC to the second. */
export function shortTime(ms: number): string {
  return iso(ms).slice(0, 19).replace('T', ' ');
}
