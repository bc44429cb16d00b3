import type { DecimalFormat } from '../values/api-json.ts';
import { csvLine, jsonCell } from '../wire/csv.ts';
import type { ArchiveKind } from './kinds.ts';

export const EXPORT_KINDS = ['trades', 'candles', 'prices', 'books'] as const satisfies readonly ArchiveKind[];
export type ExportKind = (typeof EXPORT_KINDS)[number];
/** The formats with a line for each row. */
export const LINE_FORMATS = ['csv', 'jsonl'] as const;
export type LineFormat = (typeof LINE_FORMATS)[number];
export const EXPORT_FORMATS = [...LINE_FORMATS, 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/**
 * A column of a line. `of` is the column of `ARCHIVE_KINDS` that has its value. A moment has two forms: `iso` and `epoch`, seconds. A `word`
 * and an `interval` are texts that no format has to quote.
 */
export interface LineColumn {
  readonly name: string;
  readonly type: 'text' | 'word' | 'interval' | 'iso' | 'epoch' | 'integer' | 'decimal' | 'json';
  readonly of: string;
}

const column = (type: LineColumn['type'], name: string, of = name): LineColumn => ({ name, type, of });
const moment = (of: string) => [column('iso', 'time', of), column('epoch', 'epoch', of)];
const history = (columns: readonly LineColumn[]) => ({
  columns: [...moment('received_at'), column('iso', 'as_of'), ...columns],
  keys: ['received_at'] as const,
});

/** The columns of the lines of each kind, and the order of the rows of an outcome. */
export const LINES = {
  trades: {
    columns: [
      column('text', 'trade_id'),
      ...moment('ts'),
      column('decimal', 'price'),
      column('decimal', 'size'),
      column('word', 'side'),
      column('integer', 'ordinal'),
    ],
    keys: ['ts', 'trade_id'],
  },
  candles: {
    columns: [
      column('interval', 'interval', 'interval_seconds'),
      ...moment('start'),
      ...['open', 'high', 'low', 'close', 'volume', 'notional'].map((name) => column('decimal', name)),
      column('integer', 'trades'),
    ],
    keys: ['interval_seconds', 'start'],
  },
  prices: history([
    column('decimal', 'price'),
    column('decimal', 'best_bid', 'bid'),
    column('decimal', 'best_ask', 'ask'),
  ]),
  books: history([column('json', 'bids'), column('json', 'asks')]),
} as const satisfies Record<ExportKind, { columns: readonly LineColumn[]; keys: readonly string[] }>;

/** The names of the first columns, which have one value for all rows of an outcome. */
const HEAD = ['venue', 'market_id', 'outcome_id'];

/** The text before all lines. */
export function headerOf(kind: ExportKind, format: LineFormat): string {
  return format === 'csv' ? csvLine([...HEAD, ...LINES[kind].columns.map(({ name }) => name)]) : '';
}

/** The begin of each line of an outcome; the values are those of `HEAD`. */
export function headOf(format: LineFormat, values: readonly string[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  if (format === 'csv') return `${texts.map(jsonCell).join(',')},`;
  return `{${HEAD.map((name, index) => `"${name}":${texts[index]}`).join(',')},`;
}

/** How the text of a value stands in a line: as it is, with quotes that CSV needs or always has, as a JSON string of any text or of a word. */
type Quoting = 'none' | 'csv' | 'csv_always' | 'json' | 'json_word';

/** A part of a line: a constant text, or a value. */
export type LinePart =
  | string
  | { readonly column: LineColumn; readonly quoting: Quoting; readonly whenNull: '' | 'null' };

/** The parts of a line behind its head. A new format needs only its parts here. */
export function linePartsOf(kind: ExportKind, format: LineFormat, decimalFormat: DecimalFormat): LinePart[] {
  const parts = LINES[kind].columns.flatMap((each: LineColumn, index): LinePart[] => {
    const comma = index === 0 ? '' : ',';
    if (format === 'csv') return [comma, { column: each, quoting: csvQuoting(each), whenNull: '' }];
    return [`${comma}"${each.name}":`, { column: each, quoting: jsonQuoting(each, decimalFormat), whenNull: 'null' }];
  });
  return [...parts, format === 'csv' ? '\r\n' : '}\n'].filter((part) => part !== '');
}

function csvQuoting({ type }: LineColumn): Quoting {
  if (type === 'text') return 'csv';
  return type === 'json' ? 'csv_always' : 'none';
}

function jsonQuoting({ type }: LineColumn, decimalFormat: DecimalFormat): Quoting {
  if (type === 'text') return 'json';
  const isWord = ['word', 'interval', 'iso'].includes(type) || (type === 'decimal' && decimalFormat === 'string');
  return isWord ? 'json_word' : 'none';
}
