import {
  type ExportKind,
  LINES,
  type LineColumn,
  type LineFormat,
  type LinePart,
  linePartsOf,
} from '../domain/archive/exported.ts';
import { ARCHIVE_KINDS, fileColumns } from '../domain/archive/kinds.ts';
import { INTERVAL_SECONDS } from '../domain/markets/candle.ts';
import type { DecimalFormat } from '../domain/values/api-json.ts';
import { timeSql } from './history.ts';
import { csvSql, literal, parquetOptions, rowsOf } from './parquet.ts';

/** The rows of an export that files have. */
export interface PastQuery {
  readonly kind: ExportKind;
  /** Lengths of candles, seconds. */
  readonly intervals: readonly number[];
  /** Paths. */
  readonly files: readonly string[];
  /** CSV of rows that files may have; null without such rows. */
  readonly merged: string | null;
  /** The file with which a value at the first moment of Postgres is compared. */
  readonly carriedFrom: string | null;
  readonly marketId: string | undefined;
  /** The outcomes of the market; null for all. */
  readonly outcomeIds: readonly string[] | null;
  /** `[from, until)`, epoch microseconds. */
  readonly from: bigint;
  readonly until: bigint;
}

/** A position in the order of an export. */
interface Place {
  readonly outcomeId: string;
  readonly keys: readonly string[] | null;
}

const TIME = { trades: 'ts', candles: 'start', prices: 'received_at', books: 'received_at' } as const;

/** The values that two rows of a history have in common when retention carried one of them. */
const VALUES = {
  prices: ['as_of', 'price', 'price_text', 'bid', 'bid_text', 'ask', 'ask_text'],
  books: ['as_of', 'bids', 'asks'],
} as const;

/** Statements that make the table of the rows that files may have and lack; none without such rows. */
export function mergeSql({ kind, files, merged, carriedFrom }: PastQuery): string[] {
  if (merged === null) return [];
  if (kind === 'candles') return [`CREATE TABLE fresh AS ${csvSql(kind, merged)}`];
  const given = `CREATE TABLE given AS ${csvSql(kind, merged)}`;
  const choose = (known: string | null, isSame: string) =>
    `CREATE TABLE fresh AS SELECT g.* FROM given g ${known === null ? '' : `ANTI JOIN (${known}) p ON ${isSame}`}`;
  if (kind === 'trades') {
    const isSame = ['outcome_id', 'ts', 'trade_id'].map((name) => `p.${name} = g.${name}`).join(' AND ');
    // DuckDB keeps the right side of the semi join in memory: the small one.
    const known = `SELECT f.outcome_id, f.ts, f.trade_id FROM ${rowsOf(...files)} f SEMI JOIN given g USING (outcome_id, ts, trade_id)`;
    return [given, choose(files.length === 0 ? null : known, isSame)];
  }
  const isSame = VALUES[kind].map((name) => `p.${name} IS NOT DISTINCT FROM g.${name}`);
  const known =
    carriedFrom === null
      ? null
      : `SELECT f.* FROM ${rowsOf(carriedFrom)} f SEMI JOIN given g USING (outcome_id)
         QUALIFY row_number() OVER (PARTITION BY f.outcome_id ORDER BY f.received_at DESC) = 1`;
  return [given, choose(known, ['p.outcome_id = g.outcome_id', ...isSame].join(' AND '))];
}

/** SQL of the rows of files, and of the rows that they lack, after the statements of `mergeSql`. */
function pastSql(query: PastQuery, columns: readonly string[]): string {
  const { kind, intervals, files, merged, marketId, outcomeIds, from, until } = query;
  const time = TIME[kind];
  const conditions = [
    `${time} >= ${timeSql(from)} AND ${time} < ${timeSql(until)}`,
    ...(kind === 'prices' || kind === 'books' ? ['NOT in_effect'] : []),
    ...(kind === 'candles' ? [`interval_seconds IN (${intervals.join(', ')})`] : []),
    // Files are sorted by market. A token may have got its market after its file was made.
    ...(marketId === undefined ? [] : [`(market_id = ${literal(marketId)} OR market_id IS NULL)`]),
    ...(outcomeIds === null ? [] : [`outcome_id IN (${['', ...outcomeIds].map(literal).join(', ')})`]),
  ];
  const names = columns.map((name) => `"${name}"`).join(', ');
  // A candle of Postgres stands in for that of a file.
  const replaced =
    kind === 'candles' && merged !== null
      ? `ANTI JOIN (SELECT outcome_id, interval_seconds, start FROM fresh WHERE start < ${timeSql(until)}) USING (outcome_id, interval_seconds, start)`
      : '';
  const parts = [
    ...(files.length === 0
      ? []
      : [`SELECT ${names} FROM ${rowsOf(...files)} ${replaced} WHERE ${conditions.join(' AND ')}`]),
    ...(merged === null ? [] : [`SELECT ${names} FROM fresh`]),
  ];
  return parts.join(' UNION ALL ');
}

/**
 * SQL of the lines of files behind a position: the outcome, the keys of the row, and its line without the head, in the order of an export.
 * DuckDB makes the lines before it sorts them, on all of its threads; behind the sort it uses one.
 */
export function linesSql(
  query: PastQuery,
  { format, decimalFormat, after }: { format: LineFormat; decimalFormat: DecimalFormat; after: Place | null },
): string {
  const { columns, keys }: { columns: readonly LineColumn[]; keys: readonly (keyof typeof KEYS)[] } = LINES[query.kind];
  const used = new Set(['outcome_id', ...keys, ...columns.flatMap(storedIn)]);
  const line = linePartsOf(query.kind, format, decimalFormat).map(partSql);
  const keySql = keys.map((key) => KEYS[key]);
  const names = keys.map((_, index) => `key_${index}`);
  const named = keySql.map((key, index) => `${key} AS key_${index}`);
  return `SELECT outcome_id, ${names.join(', ')}, line FROM (
      SELECT outcome_id, ${named.join(', ')}, ${line.join(' || ')} AS line
      FROM (${pastSql(query, [...used])}) ${after === null ? '' : `WHERE ${behindSql(after, keySql)}`})
    ORDER BY outcome_id, ${names.join(', ')}`;
}

/** SQL of the keys of a row, as the store has them. */
const KEYS = {
  ts: 'epoch_us(ts)',
  trade_id: 'trade_id',
  interval_seconds: 'interval_seconds',
  start: 'epoch_us(start) // 1000000',
  received_at: 'epoch_us(received_at)',
} as const;

function behindSql({ outcomeId, keys }: Place, keySql: readonly string[]): string {
  const outcome = literal(outcomeId);
  if (keys === null) return `outcome_id > ${outcome}`;
  const values = keys.map((key, index) => (keySql[index] === 'trade_id' ? literal(key) : BigInt(key))).join(', ');
  return `outcome_id >= ${outcome} AND (outcome_id > ${outcome} OR (${keySql.join(', ')}) > (${values}))`;
}

/** The columns of a file that have the value of a column of a line. */
const storedIn = ({ type, of }: LineColumn) => (type === 'decimal' ? [of, `${of}_text`] : [of]);

/** SQL of a value as text, as the store renders it from Postgres. */
function textOf({ type, of }: LineColumn): string {
  if (type === 'iso') return `strftime(make_timestamp(epoch_us(${of})), '%Y-%m-%dT%H:%M:%S.%fZ')`;
  if (type === 'epoch')
    return `CAST(CAST(epoch_us(${of}) AS DECIMAL(18, 0)) * CAST('0.000001' AS DECIMAL(6, 6)) AS VARCHAR)`;
  if (type === 'interval') {
    const names = Object.entries(INTERVAL_SECONDS).map(([name, seconds]) => `WHEN ${seconds} THEN ${literal(name)}`);
    return `CASE ${of} ${names.join(' ')} END`;
  }
  if (type === 'decimal') return `coalesce(rtrim(rtrim(CAST(${of} AS VARCHAR), '0'), '.'), ${of}_text)`;
  return type === 'integer' ? `CAST(${of} AS VARCHAR)` : of;
}

const quoted = (text: string) => `'"' || ${text} || '"'`;
/** Of the ASCII ones, as Postgres finds them in a text of the collation "C". */
const NEEDS_QUOTES = literal('[",\\r\\n]|^[\\t\\n\\v\\f\\r ]|[\\t\\n\\v\\f\\r ]$');

function partSql(part: LinePart): string {
  if (typeof part === 'string') return literal(part);
  const { column, quoting, whenNull } = part;
  const text = textOf(column);
  if (quoting === 'none') return `coalesce(${text}, '${whenNull}')`;
  if (quoting === 'json') return `coalesce(${quoted(jsonEscaped(text))}, '${whenNull}')`;
  if (quoting === 'json_word') return `coalesce(${quoted(text)}, '${whenNull}')`;
  const escaped = quoted(`replace(${text}, '"', '""')`);
  if (quoting === 'csv_always') return `coalesce(${escaped}, '${whenNull}')`;
  return `CASE WHEN ${text} = '' OR regexp_matches(${text}, ${NEEDS_QUOTES}) THEN ${escaped} ELSE coalesce(${text}, '') END`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
};

/** The content of a JSON string as Postgres writes it: DuckDB would write other digits of a control character. */
function jsonEscaped(text: string): string {
  let escaped = text;
  for (const sign of ['\\', '"']) escaped = `replace(${escaped}, ${literal(sign)}, ${literal(`\\${sign}`)})`;
  for (let code = 1; code < 32; code += 1) {
    const to = SHORT_ESCAPES[String.fromCharCode(code)] ?? `\\u${code.toString(16).padStart(4, '0')}`;
    escaped = `replace(${escaped}, chr(${code}), ${literal(to)})`;
  }
  return `CASE WHEN regexp_matches(${text}, '[\\x01-\\x1f"\\\\]') THEN ${escaped} ELSE ${text} END`;
}

/** A whole export as a file. */
export interface ParquetExport {
  readonly kind: ExportKind;
  readonly venue: string;
  /** Epoch seconds. */
  readonly range: { readonly start: number; readonly end: number };
  /** Null without rows of files. */
  readonly past: PastQuery | null;
  /** CSV of the rows of Postgres. */
  readonly present: string;
  /** CSV of the outcomes with their markets. */
  readonly outcomes: string;
}

/** SQL that returns the number of rows of files that a Parquet export has, after the statements of `mergeSql`. */
export function countPastSql({ past, outcomes }: ParquetExport & { past: PastQuery }): string {
  return `SELECT CAST(count(*) AS VARCHAR) AS rows FROM (${pastSql(past, ['outcome_id'])}) SEMI JOIN ${outcomesSql(outcomes)} USING (outcome_id)`;
}

/** SQL that writes the file, with the columns and the order of a file of the archive. */
export function writeExportSql(made: ParquetExport, path: string): string {
  const { kind, venue, range, past, present, outcomes } = made;
  const names = fileColumns(kind).map(({ name }) => name);
  const parts = [...(past === null ? [] : [pastSql(past, names)]), csvSql(kind, present)];
  const columns = names.map((name) => (name === 'market_id' ? 'o.market_id' : `r."${name}"`)).join(', ');
  const order = ARCHIVE_KINDS[kind].order.map((name) => `${name === 'market_id' ? 'o' : 'r'}.${name} NULLS FIRST`);
  const facts = { kind, venue, start: isoOf(range.start), end: isoOf(range.end) };
  return `COPY (SELECT ${columns} FROM (${parts.join(' UNION ALL ')}) r JOIN ${outcomesSql(outcomes)} o USING (outcome_id)
    ORDER BY ${order.join(', ')}) TO ${literal(path)} (${parquetOptions(facts)})`;
}

const isoOf = (seconds: number) => new Date(seconds * 1_000).toISOString();
const outcomesSql = (csvPath: string) =>
  `(SELECT * FROM read_csv(${literal(csvPath)}, header = false, columns = {'outcome_id': 'VARCHAR', 'market_id': 'VARCHAR'}, delim = ',',
      quote = '"', escape = '"', auto_detect = false))`;
