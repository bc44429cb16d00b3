import { INTERVAL_SECONDS, type Interval } from '../../domain/markets/candle.ts';
import type { DecimalFormat } from '../../domain/values/api-json.ts';
import type { TimeRange } from '../../domain/values/time-range.ts';
import { csvLine, jsonCell } from '../../domain/wire/csv.ts';
import { ORIGIN } from '../db/origin.ts';
import { listPartitions, type PartitionedTable } from '../db/partitions.ts';
import { type Queryable, type Statement, sql } from '../db/tx.ts';

export const EXPORT_KINDS = ['trades', 'candles', 'prices', 'books'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];
export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A column: `sql` is an expression of a row of the table. A `word` is a text that no format has to quote. */
interface Column {
  name: string;
  type: 'text' | 'word' | 'plain' | 'decimal' | 'json';
  sql: string;
}

interface Kind {
  table: string;
  /** Present for a table whose oldest partition says how far back it reaches. */
  partitioned?: PartitionedTable;
  columns: readonly Column[];
  /** The keys of the order inside an outcome, as the index has them. */
  order: readonly string[];
  /** The same keys as texts, and the condition of the rows behind given ones. */
  keys: readonly string[];
  behind(keys: readonly string[]): string;
  /** The condition of the rows in the range. `from` and `to` are epoch seconds, `intervals` lengths in seconds. */
  within(from: string, to: string, intervals: string): string;
  hasIntervals?: true;
  /** Rows per page of one outcome. */
  pageRows: number;
  /** Rows of each outcome that one statement reads for several outcomes, most of which have few. */
  firstRows: number;
}

const isoTime = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const micros = (time: string) => `(extract(epoch FROM ${time}) * 1000000)::bigint`;
/** The moment in both forms, each with microseconds. */
const moment = (time: string): Column[] => [
  { name: 'time', type: 'word', sql: isoTime(time) },
  { name: 'epoch', type: 'plain', sql: `${micros(time)} * 0.000001` },
];
const decimals = (...names: [name: string, sql?: string][]): Column[] =>
  names.map(([name, column = name]) => ({ name, type: 'decimal', sql: column }));
const fromMicros = (text: string) => `timestamptz 'epoch' + ${text}::bigint * interval '1 microsecond'`;
const timeWithin = (time: string) => (from: string, to: string) =>
  `${time} >= to_timestamp(${from}::bigint) AND ${time} < to_timestamp(${to}::bigint)`;

/** A history of quotes or books: in the order of the receipt, which its range selects. */
function history(table: 'price_history' | 'book_history', columns: readonly Column[]) {
  return {
    table,
    partitioned: table,
    columns: [...moment('received_at'), { name: 'as_of', type: 'word', sql: isoTime('as_of') }, ...columns],
    order: ['received_at'],
    keys: [micros('received_at')],
    behind: ([at = '']) => `received_at > ${fromMicros(at)}`,
    within: timeWithin('received_at'),
  } as const satisfies Partial<Kind>;
}

const KINDS: Readonly<Record<ExportKind, Kind>> = {
  trades: {
    table: 'trade',
    partitioned: 'trade',
    columns: [
      { name: 'trade_id', type: 'text', sql: 'trade_id' },
      ...moment('ts'),
      ...decimals(['price'], ['size']),
      { name: 'side', type: 'word', sql: `CASE side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END` },
      { name: 'ordinal', type: 'plain', sql: 'ordinal' },
    ],
    order: ['ts', 'trade_id'],
    keys: [micros('ts'), 'trade_id'],
    // The condition on `ts` alone selects partitions.
    behind: ([at = '', id]) => `ts >= ${fromMicros(at)} AND (ts, trade_id) > (${fromMicros(at)}, ${id}::text)`,
    within: timeWithin('ts'),
    pageRows: 10_000,
    firstRows: 100,
  },
  candles: {
    table: 'candle',
    columns: [
      {
        name: 'interval',
        type: 'word',
        sql: `CASE interval_seconds ${Object.entries(INTERVAL_SECONDS)
          .map(([name, seconds]) => `WHEN ${seconds} THEN '${name}'`)
          .join(' ')} END`,
      },
      ...moment('to_timestamp(bucket)'),
      ...decimals(['open'], ['high'], ['low'], ['close'], ['volume'], ['notional']),
      { name: 'trades', type: 'plain', sql: 'trades' },
    ],
    order: ['interval_seconds', 'bucket'],
    keys: ['interval_seconds', 'bucket'],
    behind: ([interval, bucket]) => `(interval_seconds, bucket) > (${interval}::int, ${bucket}::bigint)`,
    within: (from, to, intervals) =>
      `interval_seconds = ANY (${intervals}::int[]) AND bucket >= ${from}::bigint AND bucket < ${to}::bigint`,
    hasIntervals: true,
    pageRows: 10_000,
    firstRows: 100,
  },
  prices: {
    ...history('price_history', decimals(['price'], ['best_bid', 'bid'], ['best_ask', 'ask'])),
    pageRows: 10_000,
    firstRows: 100,
  },
  // A book may have hundreds of levels.
  books: {
    ...history('book_history', [
      { name: 'bids', type: 'json', sql: 'bids' },
      { name: 'asks', type: 'json', sql: 'asks' },
    ]),
    pageRows: 200,
    firstRows: 10,
  },
};

/** The outcome of rows: the first columns of every file. */
interface ExportedOutcome {
  tokenId: bigint;
  outcomeId: string;
  marketId: string;
}

/** The names of the first columns, which have one value for all rows of an outcome. */
const HEAD = ['venue', 'market_id', 'outcome_id'];

/** How a format writes rows. A new format needs only a row of `FORMATS`. */
interface Format {
  /** The text before all rows. */
  header(columns: readonly string[]): string;
  /** The beginning of each line of an outcome: the values of `HEAD`, as JSON texts. */
  head(values: readonly string[]): string;
  /** SQL of the rest of the line. */
  line(columns: readonly Column[], decimalFormat: DecimalFormat): string;
}

const isPlain = ({ type }: Column) => type === 'plain' || type === 'decimal';
/** Without superfluous zeros, as answers of the API. */
const digits = ({ sql: value, type }: Column) => (type === 'decimal' ? `trim_scale(${value})` : `(${value})`);
const csvQuoted = (text: string) => `'"' || replace(${text}, '"', '""') || '"'`;

function csvCell(column: Column): string {
  if (isPlain(column)) return `coalesce(${digits(column)}::text, '')`;
  if (column.type === 'word') return `coalesce(${column.sql}, '')`;
  if (column.type === 'json') return `coalesce(${csvQuoted(`${column.sql}::text`)}, '')`;
  const text = column.sql;
  return `CASE WHEN ${text} = '' OR ${text} ~ '[",\\r\\n]|^\\s|\\s$' THEN ${csvQuoted(text)} ELSE coalesce(${text}, '') END`;
}

function jsonValue(column: Column, decimalFormat: DecimalFormat): string {
  if (column.type === 'text') return `coalesce(to_json(${column.sql})::text, 'null')`;
  if (column.type === 'word' || (column.type === 'decimal' && decimalFormat === 'string'))
    return `coalesce('"' || ${digits(column)}::text || '"', 'null')`;
  return `coalesce(${isPlain(column) ? digits(column) : column.sql}::text, 'null')`;
}

const FORMATS: Readonly<Record<ExportFormat, Format>> = {
  csv: {
    header: (columns) => csvLine(columns),
    head: (values) => `${values.map(jsonCell).join(',')},`,
    line: (columns) => `${columns.map(csvCell).join(` || ',' || `)} || E'\\r\\n'`,
  },
  jsonl: {
    header: () => '',
    head: (values) => `{${HEAD.map((name, index) => `"${name}":${values[index]}`).join(',')},`,
    line: (columns, decimalFormat) =>
      `${columns.map((column) => `'"${column.name}":' || ${jsonValue(column, decimalFormat)}`).join(` || ',' || `)} || E'}\\n'`,
  },
};

/**
 * Rows of several outcomes: per outcome the text of at most `$5` rows, their number, and the keys of the last one. The scan of the
 * materialized page keeps its order, so that the aggregate needs no second sort.
 */
function rowsStatement(
  kindName: ExportKind,
  format: ExportFormat,
  decimalFormat: DecimalFormat,
  isContinued: boolean,
): Statement {
  const kind = KINDS[kindName];
  const order = kind.order.join(', ');
  const reversed = kind.order.map((key) => `${key} DESC`).join(', ');
  const firstKey = kind.hasIntervals ? 7 : 6;
  const behind = isContinued ? `AND ${kind.behind(kind.keys.map((_, index) => `$${firstKey + index}`))}` : '';
  return sql(
    `export_${kindName}_${format}_${decimalFormat}${isContinued ? '_behind' : ''}`,
    `SELECT k.place::int AS place, r.rows, r.lines, r.keys
     FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (token_id, head, place)
     CROSS JOIN LATERAL (
       WITH page AS MATERIALIZED (
         SELECT ${order}, ${FORMATS[format].line(kind.columns, decimalFormat)} AS line FROM ${kind.table}
         WHERE token_id = k.token_id AND ${kind.within('$3', '$4', '$6')} ${behind} ORDER BY ${order} LIMIT $5)
       SELECT s.rows, s.lines, l.keys FROM
         (SELECT count(*)::int AS rows, string_agg(k.head || line, '') AS lines FROM page) s
         CROSS JOIN (SELECT ARRAY[${kind.keys.map((key) => `${key}::text`).join(', ')}] AS keys FROM page ORDER BY ${reversed} LIMIT 1) l) r
     ORDER BY k.place`,
  );
}

const STATEMENTS = Object.fromEntries(
  EXPORT_KINDS.flatMap((kind) =>
    EXPORT_FORMATS.flatMap((format) =>
      (['number', 'string'] as const).flatMap((decimalFormat) =>
        [false, true].map((isContinued) => [
          keyOf(kind, format, decimalFormat, isContinued),
          rowsStatement(kind, format, decimalFormat, isContinued),
        ]),
      ),
    ),
  ),
) as Readonly<Record<string, Statement>>;

function keyOf(kind: ExportKind, format: ExportFormat, decimalFormat: DecimalFormat, isContinued: boolean): string {
  return `${kind} ${format} ${decimalFormat} ${isContinued}`;
}

const OUTCOMES = `FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE m.venue = $1 AND ($2::text IS NULL OR m.venue_market_id = $2)`;
const OUTCOME_PAGE = sql(
  'export_outcomes',
  `SELECT t.id AS token_id, t.mint AS outcome_id, m.venue_market_id AS market_id ${OUTCOMES}
   AND t.mint > $3 ORDER BY t.mint LIMIT $4`,
);
const ONE_OUTCOME = sql(
  'export_outcome',
  `SELECT t.id AS token_id, t.mint AS outcome_id, m.venue_market_id AS market_id ${OUTCOMES} AND t.mint = $3`,
);
const COUNT_OUTCOMES = sql('export_count_outcomes', `SELECT count(*)::int AS outcomes ${OUTCOMES}`);
const READ_ORIGIN = sql('export_origin', `SELECT ${ORIGIN} AS origin`);

const OUTCOMES_PER_PAGE = 1_000;
const OUTCOMES_PER_STATEMENT = 100;

/** What an export contains. */
export interface ExportRequest {
  kind: ExportKind;
  format: ExportFormat;
  venue: string;
  /** Absent: every market of the venue. */
  marketId?: string;
  /** Of candles: the start of a bucket. Of prices and books: the receipt. Of trades: the venue's time. */
  range: TimeRange;
  /** Of candles only. */
  intervals: readonly Interval[];
  decimalFormat: DecimalFormat;
}

/** A position: behind all rows of an outcome, or behind its row with these keys. */
export interface ExportPlace {
  outcomeId: string;
  keys: string[] | null;
}

interface ExportPage {
  text: string;
  rows: number;
  /** Outcomes that end with this page. */
  outcomes: number;
  place: ExportPlace;
}

/** The text before all rows. */
export function exportHeader({ kind, format }: Pick<ExportRequest, 'kind' | 'format'>): string {
  return FORMATS[format].header([...HEAD, ...KINDS[kind].columns.map(({ name }) => name)]);
}

/** The number of outcomes that an export visits. */
export async function countExportedOutcomes(
  db: Queryable,
  { venue, marketId }: Pick<ExportRequest, 'venue' | 'marketId'>,
): Promise<number> {
  const [row] = await db.query<{ outcomes: number }>(COUNT_OUTCOMES, [venue, marketId ?? null]);
  return row?.outcomes ?? 0;
}

/** The time from which on rows of this kind may be stored, epoch seconds; undefined when the table has no limit, or no rows. */
export async function storedSince(db: Queryable, kind: ExportKind): Promise<number | undefined> {
  const { partitioned } = KINDS[kind];
  const [oldest] = partitioned ? await listPartitions(db, partitioned) : [];
  return oldest && oldest.fromMs / 1_000;
}

/** The identity of the database: another one continues no export. */
export async function exportOrigin(db: Queryable): Promise<string> {
  const [row] = await db.query<{ origin: string }>(READ_ORIGIN);
  return row?.origin ?? '';
}

/**
 * The stored rows in the order (outcome id, keys of the kind), in pages behind `after`. Each page is a statement of its own, so an export
 * holds no snapshot: rows that are stored or dropped meanwhile may be in it or not.
 */
export async function* exportPages(
  db: Queryable,
  request: ExportRequest,
  after: ExportPlace | null = null,
): AsyncGenerator<ExportPage> {
  const { venue, marketId = null } = request;
  if (after?.keys) {
    const [outcome] = await db.query<ExportedOutcome>(ONE_OUTCOME, [venue, marketId, after.outcomeId]);
    if (outcome) yield* restOf(db, request, outcome, after.keys);
  }
  for (let last = after?.outcomeId ?? ''; ; ) {
    const page = await db.query<ExportedOutcome>(OUTCOME_PAGE, [venue, marketId, last, OUTCOMES_PER_PAGE]);
    for (let at = 0; at < page.length; at += OUTCOMES_PER_STATEMENT) {
      yield* groupOf(db, request, page.slice(at, at + OUTCOMES_PER_STATEMENT));
    }
    last = page.at(-1)?.outcomeId ?? last;
    if (page.length < OUTCOMES_PER_PAGE) return;
  }
}

interface OutcomeRows {
  /** From 1. */
  place: number;
  rows: number;
  lines: string;
  keys: string[];
}

/** The rows of some outcomes: the first ones by one statement, the rest of an outcome with more of them by its own. */
async function* groupOf(
  db: Queryable,
  request: ExportRequest,
  outcomes: readonly ExportedOutcome[],
): AsyncGenerator<ExportPage> {
  const { firstRows } = KINDS[request.kind];
  const found = await rowsOf(db, request, outcomes, firstRows);
  let [text, rows, done] = ['', 0, 0];
  for (const { place, lines, rows: count, keys } of found) {
    text += lines;
    rows += count;
    const outcome = outcomes[place - 1];
    if (count < firstRows || !outcome) continue;
    yield { text, rows, outcomes: place - 1 - done, place: { outcomeId: outcome.outcomeId, keys } };
    yield* restOf(db, request, outcome, keys);
    [text, rows, done] = ['', 0, place];
  }
  const last = outcomes.at(-1);
  if (last && done < outcomes.length)
    yield { text, rows, outcomes: outcomes.length - done, place: { outcomeId: last.outcomeId, keys: null } };
}

/** The rows of one outcome behind these keys, until its last one. */
async function* restOf(
  db: Queryable,
  request: ExportRequest,
  outcome: ExportedOutcome,
  after: string[],
): AsyncGenerator<ExportPage> {
  const { pageRows } = KINDS[request.kind];
  for (let keys = after; ; ) {
    const [page] = await rowsOf(db, request, [outcome], pageRows, keys);
    const isLast = page === undefined || page.rows < pageRows;
    keys = page?.keys ?? keys;
    const place = { outcomeId: outcome.outcomeId, keys: isLast ? null : keys };
    yield { text: page?.lines ?? '', rows: page?.rows ?? 0, outcomes: isLast ? 1 : 0, place };
    if (isLast) return;
  }
}

function rowsOf(
  db: Queryable,
  request: ExportRequest,
  outcomes: readonly ExportedOutcome[],
  limit: number,
  after?: readonly string[],
): Promise<OutcomeRows[]> {
  const { kind, format, decimalFormat, venue, range, intervals } = request;
  const statement = STATEMENTS[keyOf(kind, format, decimalFormat, after !== undefined)] as Statement;
  return db.query<OutcomeRows>(statement, [
    outcomes.map(({ tokenId }) => tokenId),
    outcomes.map(({ marketId, outcomeId }) =>
      FORMATS[format].head([venue, marketId, outcomeId].map((value) => JSON.stringify(value))),
    ),
    range.start,
    range.end,
    limit,
    ...(KINDS[kind].hasIntervals ? [intervals.map((interval) => INTERVAL_SECONDS[interval])] : []),
    ...(after ?? []),
  ]);
}
