import { cut, table, utc, widthOf } from '../../../cli/table.ts';
import { printable } from '../../../src/domain/values/text.ts';
import type { Market, TradeHistory } from '../../typescript/src/index.ts';
import type { Call } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { wholeNumber } from './read-arguments.ts';

type Cell = string | number | boolean | undefined | null;

export interface Column<Row> {
  readonly name: string;
  /** The value, as in CSV. */
  of(row: Row): Cell;
  /** Its text in a table; by default the value. */
  show?(row: Row): string;
  readonly isNumber?: boolean;
  /** The text is cut to this length in a table on a terminal, and further where the terminal is narrow. */
  readonly cutAt?: number;
  /** On a terminal that is too narrow, columns with the lowest number are left out first. */
  readonly leaveOut?: number;
}

interface Printed<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** The value of `--json`. */
  readonly answer: unknown;
  /** The note without rows. */
  readonly none: string;
  /** The colour of a row in a table. */
  colour?(row: Row): ((text: string) => string) | undefined;
}

/** Rows in the format of the call: a table, `--csv`, or `--json` with `answer`. */
export async function printRows<Row>(call: Call, { rows, columns, answer, none, colour }: Printed<Row>): Promise<void> {
  if (call.flags.has('json')) {
    await call.print(`${JSON.stringify(answer, null, 2)}\n`);
  } else if (call.flags.has('csv')) {
    // A file gets the exact text.
    const clean = call.io.stdout.isTerminal ? printable : (text: string) => text;
    const lines = rows.map((row) => columns.map(({ of }) => csvCell(clean(textOf(of(row))))));
    await call.print(
      [columns.map(({ name }) => csvCell(name)), ...lines].map((cells) => `${cells.join(',')}\r\n`).join(''),
    );
  } else if (rows.length === 0) {
    await call.note(none);
  } else {
    await call.print(tableText(call, rows, columns, colour));
  }
}

/** Lines of a name and a text, without the unknown ones, and an empty line behind them. */
export async function printFacts(call: Call, facts: readonly (readonly [string, string | undefined])[]): Promise<void> {
  const shown = facts.filter(([, text]) => text !== undefined && text !== '');
  const lines = shown.map(([name, text = '']) => `${call.colours.dim(name.padEnd(13))} ${printable(text)}\n`);
  await call.print(`${lines.join('')}\n`);
}

function tableText<Row>(
  call: Call,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  colour: Printed<Row>['colour'],
): string {
  const { stdout } = call.io;
  const cellOf = (row: Row, column: Column<Row>) => printable(column.show?.(row) ?? textOf(column.of(row)));
  const full = columns.map((column) => [column.name.toUpperCase(), ...rows.map((row) => cellOf(row, column))]);
  const shown = stdout.isTerminal
    ? fitted(columns, full, stdout.columns)
    : columns.map((column, at) => ({ column, cells: full[at] ?? [] }));
  const lines = [undefined, ...rows].map((_, at) => shown.map(({ cells }) => cells[at] ?? ''));
  const numeric = shown.flatMap(({ column }, at) => (column.isNumber ? [at] : []));
  return table(lines, numeric, (line, at) => {
    const row = rows[at - 1];
    return row === undefined ? call.colours.dim(line) : (colour?.(row)?.(line) ?? line);
  });
}

/** Between two columns. */
const GAP = 2;
/** A shorter text says too little. */
const LEAST_TEXT = 24;

/** The columns that a terminal of this width shows without wrapping, their long texts cut. Ids are never cut. */
function fitted<Row>(columns: readonly Column<Row>[], full: readonly (readonly string[])[], width: number) {
  let shown = columns.map((column, at) => {
    const natural = Math.max(...(full[at] ?? []).map(widthOf));
    return { column, cells: full[at] ?? [], width: Math.min(natural, column.cutAt ?? natural) };
  });
  const least = ({ column, width: wanted }: (typeof shown)[number]) =>
    column.cutAt === undefined ? wanted : Math.min(wanted, LEAST_TEXT);
  const sum = (widths: readonly number[]) => widths.reduce((total, each) => total + each + GAP, -GAP);
  for (;;) {
    if (sum(shown.map(least)) <= width) break;
    const numbers = shown.flatMap(({ column: { leaveOut } }) => (leaveOut === undefined ? [] : [leaveOut]));
    if (numbers.length === 0) break;
    shown = shown.filter(({ column }) => column.leaveOut !== Math.min(...numbers));
  }
  let over = sum(shown.map((each) => each.width)) - width;
  return shown.map((each) => {
    const less = Math.max(0, Math.min(over, each.width - least(each)));
    over -= less;
    const { cutAt } = each.column;
    return {
      ...each,
      cells: cutAt === undefined ? each.cells : each.cells.map((cell) => cut(cell, each.width - less)),
    };
  });
}

function textOf(cell: Cell): string {
  return cell === undefined || cell === null ? '' : String(cell);
}

/** A number has no formula in it, also with a sign or an exponent. */
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;
/** Spreadsheets read a cell that begins so as a formula, and titles come from strangers. Full-width forms count as well. */
const FORMULA = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/**
 * A cell by RFC 4180. A text that a spreadsheet would run as a formula begins with `'`, as OWASP recommends. Separators of other locales
 * are quoted too: without quotes, the part behind one would be a cell of its own.
 */
function csvCell(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return safe !== text || /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

interface PageOf<Item> {
  data: Item[];
  meta: { next_cursor: string | null };
}

/** Pages until `limit` items: the items, and the `meta` of the last page. */
export async function readUpTo<Page extends PageOf<unknown>>(
  limit: number,
  start: string | undefined,
  read: (place: { limit: number; cursor?: string }) => Promise<Page>,
): Promise<Page> {
  const data: unknown[] = [];
  let cursor = start;
  for (;;) {
    const page = await read({
      limit: Math.min(MAX_PAGE, limit - data.length),
      ...(cursor !== undefined && { cursor }),
    });
    data.push(...page.data);
    cursor = page.meta.next_cursor ?? undefined;
    if (cursor === undefined || data.length >= limit) return { ...page, data };
  }
}

/** Items per request of the API. */
const MAX_PAGE = 1_000;
export const MAX_ITEMS = 1_000_000;
export const DEFAULT_LIMIT = 50;

/** Prints up to `--limit` items of a list of the API. */
export async function printList<Row>(
  call: Call,
  shown: Pick<Printed<Row>, 'columns' | 'none' | 'colour'>,
  read: (place: { limit: number; cursor?: string }) => Promise<PageOf<Row>>,
): Promise<number> {
  const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
  const page = await readUpTo(limit, call.texts.get('cursor'), read);
  await printRows(call, { ...shown, rows: page.data, answer: page });
  return EXIT.done;
}

export async function printOne<Row>(call: Call, columns: readonly Column<Row>[], row: Row): Promise<number> {
  await printRows(call, { rows: [row], columns, answer: row, none: '' });
  return EXIT.done;
}

export async function printDeleted(call: Call, id: string): Promise<number> {
  await call.print(call.flags.has('json') ? `${JSON.stringify({ id, deleted: true })}\n` : `${id} deleted\n`);
  return EXIT.done;
}

type Titles = Pick<Market<string>, 'title' | 'sibling_label' | 'event_title'>;

/** Markets of one event often share a title; the label distinguishes them. */
export function titleOf({ title, sibling_label: label }: Pick<Titles, 'title' | 'sibling_label'>): string {
  return label === undefined || title.includes(label) ? title : `${title} (${label})`;
}

/** The event and the market in it; the title of a market that is its event. */
export function questionOf({ title, sibling_label: label, event_title: event }: Titles): string {
  if (event === undefined || event === title)
    return titleOf({ title, ...(label !== undefined && { sibling_label: label }) });
  return `${event}: ${label ?? title}`;
}

/** A share of 0 to 1 as percents, rounded down: only a complete one is 100 %. */
export function shareText(share: number): string {
  return `${(Math.floor(share * 1_000 + 1e-6) / 10).toFixed(1)} %`;
}

/** States on standard error, beside a table, how far back the stored trades of the market are complete. */
export async function noteHistory(
  call: Call,
  meta: { history: TradeHistory; cold_reads?: 'exhausted' },
): Promise<void> {
  if (call.flags.has('json')) return;
  const { status, covered_from: from, covered_to: to, coverage, reason } = meta.history;
  const until = to === undefined ? '' : ` until ${utc(to)} UTC`;
  const since = from === undefined ? '' : `; all trades since ${utc(from)} UTC${until} are stored`;
  const share = coverage === undefined ? '' : `; ${shareText(coverage.share)} of the venue's volume`;
  const why = reason === undefined ? '' : ` (${reason})`;
  await call.note(`history: ${status}${why}${since}${share}`);
  if (meta.cold_reads !== undefined)
    await call.note('the stored state only: the account has used up its cold reads of this minute');
}
