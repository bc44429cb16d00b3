import { escapeLiteral } from 'pg';
import {
  EXPORT_KINDS,
  type ExportKind,
  headOf,
  LINE_FORMATS,
  type LineColumn,
  type LineFormat,
  type LinePart,
  linePartsOf,
} from '../../domain/archive/exported.ts';
import { ARCHIVED_INTERVALS } from '../../domain/archive/kinds.ts';
import { INTERVAL_SECONDS, type Interval } from '../../domain/markets/candle.ts';
import type { DecimalFormat } from '../../domain/values/api-json.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import type { TimeRange } from '../../domain/values/time-range.ts';
import { listPartitions, type PartitionedTable } from '../db/partitions.ts';
import { ORIGIN, type Queryable, type Statement, sql } from '../db/tx.ts';

interface Kind {
  table: string;
  /** Present for a table whose oldest partition says how far back it reaches. */
  partitioned?: PartitionedTable;
  /** SQL of the columns of `LINES` that are no column of the table. */
  values: Readonly<Record<string, string>>;
  /** The keys of the order inside an outcome, as the index has them. */
  order: readonly string[];
  /** The same keys as texts, and the condition of the rows behind given ones. */
  keys: readonly string[];
  behind(keys: readonly string[]): string;
  /** The condition of the rows in the range. `from` and `to` are epoch microseconds, `intervals` lengths in seconds. */
  within(from: string, to: string, intervals: string): string;
  hasIntervals?: true;
  /** Rows per page of one outcome. */
  pageRows: number;
  /** Rows of each outcome that one statement reads for several outcomes, most of which have few. */
  firstRows: number;
}

const isoTime = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const micros = (time: string) => `(extract(epoch FROM ${time}) * 1000000)::bigint`;
const fromMicros = (text: string) => `timestamptz 'epoch' + ${text}::bigint * interval '1 microsecond'`;
const timeWithin = (time: string) => (from: string, to: string) =>
  `${time} >= ${fromMicros(from)} AND ${time} < ${fromMicros(to)}`;

/** A history of quotes or books: in the order of the receipt, which its range selects. */
function history(table: 'price_history' | 'book_history') {
  return {
    table,
    partitioned: table,
    values: {},
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
    values: { side: `CASE side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END` },
    order: ['ts', 'trade_id'],
    keys: [micros('ts'), 'trade_id'],
    // The condition on `ts` alone selects partitions.
    behind: ([at = '', id]) => `ts >= ${fromMicros(at)} AND (ts, trade_id) > (${fromMicros(at)}, ${id}::text)`,
    within: timeWithin('ts'),
    pageRows: 10_000,
    firstRows: 500,
  },
  candles: {
    table: 'candle',
    values: {
      interval_seconds: `CASE interval_seconds ${Object.entries(INTERVAL_SECONDS)
        .map(([name, seconds]) => `WHEN ${seconds} THEN '${name}'`)
        .join(' ')} END`,
      start: 'to_timestamp(bucket)',
    },
    order: ['interval_seconds', 'bucket'],
    keys: ['interval_seconds', 'bucket'],
    behind: ([interval, bucket]) => `(interval_seconds, bucket) > (${interval}::int, ${bucket}::bigint)`,
    within: (from, to, intervals) =>
      `interval_seconds = ANY (${intervals}::int[]) AND bucket >= ${from}::bigint / 1000000 AND bucket < ${to}::bigint / 1000000`,
    hasIntervals: true,
    pageRows: 10_000,
    firstRows: 500,
  },
  prices: {
    ...history('price_history'),
    pageRows: 10_000,
    firstRows: 500,
  },
  // A book may have hundreds of levels.
  books: {
    ...history('book_history'),
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

const quoted = (text: string) => `'"' || ${text} || '"'`;

/** SQL of a value as text. Decimals have no superfluous zeros, as in answers of the API. */
function textOf(kind: Kind, { type, of }: LineColumn): string {
  const value = kind.values[of] ?? of;
  if (type === 'iso') return isoTime(value);
  // It has six digits behind its point.
  if (type === 'epoch') return `extract(epoch FROM ${value})::text`;
  if (type === 'decimal') return `trim_scale(${value})::text`;
  return type === 'integer' || type === 'json' ? `(${value})::text` : value;
}

function partSql(kind: Kind, part: LinePart): string {
  if (typeof part === 'string') return escapeLiteral(part);
  const { column, quoting, whenNull } = part;
  const text = textOf(kind, column);
  if (quoting === 'none') return `coalesce(${text}, '${whenNull}')`;
  if (quoting === 'json') return `coalesce(to_json(${text})::text, '${whenNull}')`;
  if (quoting === 'json_word') return `coalesce(${quoted(text)}, '${whenNull}')`;
  const escaped = quoted(`replace(${text}, '"', '""')`);
  if (quoting === 'csv_always') return `coalesce(${escaped}, '${whenNull}')`;
  return `CASE WHEN ${text} = '' OR ${text} ~ '[",\\r\\n]|^\\s|\\s$' THEN ${escaped} ELSE coalesce(${text}, '') END`;
}

/**
 * Rows of several outcomes: per outcome the text of at most `$5` rows, their number, and the keys of the last one, with the seam of the same
 * snapshot. Without rows it returns the seam alone. The scan of the materialized page keeps its order, so that the aggregate needs no
 * second sort.
 */
function rowsStatement(
  kindName: ExportKind,
  format: LineFormat,
  decimalFormat: DecimalFormat,
  isContinued: boolean,
): Statement {
  const kind = KINDS[kindName];
  const line = linePartsOf(kindName, format, decimalFormat).map((part) => partSql(kind, part));
  const order = kind.order.join(', ');
  const reversed = kind.order.map((key) => `${key} DESC`).join(', ');
  const firstKey = kind.hasIntervals ? 7 : 6;
  const seamOfIntervals = kind.hasIntervals ? `AND $6::int[] && '{${ARCHIVED_INTERVALS}}'` : '';
  const behind = isContinued ? `AND ${kind.behind(kind.keys.map((_, index) => `$${firstKey + index}`))}` : '';
  return sql(
    `export_${kindName}_${format}_${decimalFormat}${isContinued ? '_behind' : ''}`,
    `SELECT (SELECT ${micros('until')}::text FROM archive_seam WHERE kind = '${kindName}' ${seamOfIntervals}) AS seam, f.place, f.rows, f.lines, f.keys
     FROM (VALUES (0)) one LEFT JOIN (
       SELECT k.place::int AS place, r.rows, r.lines, r.keys
       FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (token_id, head, place)
       CROSS JOIN LATERAL (
         WITH page AS MATERIALIZED (
           SELECT ${order}, ${line.join(' || ')} AS line FROM ${kind.table}
           WHERE token_id = k.token_id AND ${kind.within('$3', '$4', '$6')} ${behind} ORDER BY ${order} LIMIT $5)
         SELECT s.rows, s.lines, l.keys FROM
           (SELECT count(*)::int AS rows, string_agg(k.head || line, '') AS lines FROM page) s
           CROSS JOIN (SELECT ARRAY[${kind.keys.map((key) => `${key}::text`).join(', ')}] AS keys FROM page ORDER BY ${reversed} LIMIT 1) l) r
       ) f ON true
     ORDER BY f.place`,
  );
}

const STATEMENTS = Object.fromEntries(
  EXPORT_KINDS.flatMap((kind) =>
    LINE_FORMATS.flatMap((format) =>
      (['number', 'string'] as const).flatMap((decimalFormat) =>
        [false, true].map((isContinued) => [
          keyOf(kind, format, decimalFormat, isContinued),
          rowsStatement(kind, format, decimalFormat, isContinued),
        ]),
      ),
    ),
  ),
) as Readonly<Record<string, Statement>>;

function keyOf(kind: ExportKind, format: LineFormat, decimalFormat: DecimalFormat, isContinued: boolean): string {
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
const FIRST_FILE = sql(
  'export_first_file',
  `SELECT extract(epoch FROM min(date))::bigint AS since FROM archive_file
   WHERE kind = $1 AND venue = $2 AND superseded_at IS NULL AND file IS NOT NULL AND EXISTS (SELECT FROM archive_seam WHERE kind = $1)`,
);

const OUTCOMES_PER_PAGE = 1_000;
const OUTCOMES_PER_STATEMENT = 100;
/** Outcomes that are read while the page of another one is written. */
const OUTCOMES_AHEAD = 2;
/** Rows of files in a page: a page has the rows of several outcomes while they are fewer. */
const PAST_ROWS_PER_PAGE = 5_000;

/** The part of the history that an export contains. */
export interface ExportSelection {
  kind: ExportKind;
  venue: string;
  /** Absent: every market of the venue. */
  marketId?: string;
  /** Of candles: the start of a bucket. Of prices and books: the receipt. Of trades: the venue's time. */
  range: TimeRange;
  /** Of candles only. */
  intervals: readonly Interval[];
}

/** What an export with a line for each row contains. */
export interface ExportRequest extends ExportSelection {
  format: LineFormat;
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

/** Lines of one outcome without their heads: each follows a character NUL, which no line contains. */
interface PastLines {
  lines: string;
  rows: number;
  /** Of the last one. */
  keys: string[];
}

/** The rows of files behind a position, as of one seam. */
export interface PastRows {
  /** The seam, epoch microseconds. */
  readonly seam: string;
  /** Postgres has the rows from here on, epoch microseconds. */
  readonly presentFrom: bigint;
  /** The next lines of an outcome; undefined when no more follow. Outcomes are asked in their order. */
  next(outcomeId: string): Promise<PastLines | undefined>;
  close(): Promise<void>;
}

/** Opens the rows of files of a request behind a position; undefined when the range begins behind the seam. */
type OpenPast = (after: ExportPlace | null) => Promise<PastRows | undefined>;

/** Rows moved from Postgres to files, or a file moved, after the rows of files were opened: they are opened again. */
export class HistoryMoved extends OddswireError {
  constructor(cause?: unknown) {
    super('history_moved', 'rows moved to files during the export', { retryable: true, cause });
  }
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
export async function storedSince(
  db: Queryable,
  { kind, venue }: Pick<ExportRequest, 'kind' | 'venue'>,
): Promise<number | undefined> {
  const { partitioned } = KINDS[kind];
  if (partitioned === undefined) return undefined;
  const [oldest] = await listPartitions(db, partitioned);
  const [file] = await db.query<{ since: bigint | null }>(FIRST_FILE, [kind, venue]);
  const moments = [
    ...(oldest ? [oldest.fromMs / 1_000] : []),
    ...(typeof file?.since === 'bigint' ? [Number(file.since)] : []),
  ];
  return moments.length === 0 ? undefined : Math.min(...moments);
}

/** The identity of the database: another one continues no export. */
export async function exportOrigin(db: Queryable): Promise<string> {
  const [row] = await db.query<{ origin: string }>(READ_ORIGIN);
  return row?.origin ?? '';
}

/**
 * The rows in the order (outcome id, keys of the kind), in pages behind `after`: of files, and of Postgres. Each page is a statement of its
 * own, so an export holds no snapshot: rows that are stored meanwhile may be in it or not. When rows move to files between two pages, the
 * rows of files are opened again behind the last page.
 */
export async function* exportPages(
  db: Queryable,
  request: ExportRequest,
  after: ExportPlace | null = null,
  openPast?: OpenPast,
): AsyncGenerator<ExportPage> {
  let place = after;
  for (;;) {
    let past: PastRows | undefined;
    try {
      past = await openPast?.(place);
      for await (const page of ahead(pagesBehind({ db, request, past }, place))) {
        place = page.place;
        yield page;
      }
      return;
    } catch (error) {
      if (!(error instanceof HistoryMoved) || openPast === undefined) throw error;
    } finally {
      await past?.close();
    }
  }
}

/** The same values, in their order. The first `count` are read at once, and each other one while the caller uses earlier ones. */
function ahead<T>(values: AsyncGenerator<T>, count = 1): AsyncGenerator<T> {
  const read = () => {
    const next = values.next();
    // Reported when the caller asks for this value.
    next.catch(() => undefined);
    return next;
  };
  const reads = Array.from({ length: count }, read);
  return (async function* () {
    try {
      for (;;) {
        const found = await reads.shift();
        if (found === undefined || found.done) return;
        reads.push(read());
        yield found.value;
      }
    } finally {
      await values.return(undefined);
    }
  })();
}

/** Both sources of a request. */
interface Sources {
  readonly db: Queryable;
  readonly request: ExportRequest;
  readonly past: PastRows | undefined;
}

async function* pagesBehind(sources: Sources, after: ExportPlace | null): AsyncGenerator<ExportPage> {
  const { db, request } = sources;
  const { venue, marketId = null } = request;
  if (after?.keys) {
    const [outcome] = await db.query<ExportedOutcome>(ONE_OUTCOME, [venue, marketId, after.outcomeId]);
    if (outcome) yield* restOf(sources, outcome, after.keys);
  }
  for await (const group of ahead(groupsBehind(sources, after?.outcomeId ?? ''))) yield* pagesOf(sources, group);
}

/** Some outcomes, and their first rows in Postgres, which may be in flight. */
interface OutcomeGroup {
  readonly outcomes: readonly ExportedOutcome[];
  readonly first: Promise<OutcomeRows[]>;
}

async function* groupsBehind(sources: Sources, after: string): AsyncGenerator<OutcomeGroup> {
  const { db, request } = sources;
  const { kind, venue, marketId = null } = request;
  for (let last = after; ; ) {
    const page = await db.query<ExportedOutcome>(OUTCOME_PAGE, [venue, marketId, last, OUTCOMES_PER_PAGE]);
    for (let at = 0; at < page.length; at += OUTCOMES_PER_STATEMENT) {
      const outcomes = page.slice(at, at + OUTCOMES_PER_STATEMENT);
      const first = rowsOf(sources, outcomes, KINDS[kind].firstRows);
      // Reported when the caller uses the group.
      first.catch(() => undefined);
      yield { outcomes, first };
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

/**
 * The rows of a group: the first ones by one statement, the rest of an outcome with more of them by its own. Two outcomes are read at once,
 * because a statement uses one core of Postgres.
 */
async function* pagesOf(sources: Sources, { outcomes, first }: OutcomeGroup): AsyncGenerator<ExportPage> {
  const { firstRows } = KINDS[sources.request.kind];
  const found = new Map((await first).map((each) => [each.place, each]));
  const rests = ahead(restsOf(sources, outcomes, found), OUTCOMES_AHEAD);
  let [text, rows, done] = ['', 0, 0];
  for (const [index, outcome] of outcomes.entries()) {
    const { outcomeId } = outcome;
    for await (const { text: lines, rows: count, keys } of pastOf(sources, outcome)) {
      text += lines;
      rows += count;
      if (rows < PAST_ROWS_PER_PAGE) continue;
      yield { text, rows, outcomes: index - done, place: { outcomeId, keys } };
      [text, rows, done] = ['', 0, index];
    }
    const present = found.get(index + 1);
    if (present === undefined) continue;
    text += present.lines;
    rows += present.rows;
    if (present.rows < firstRows) continue;
    yield { text, rows, outcomes: index - done, place: { outcomeId, keys: present.keys } };
    const { value: rest } = await rests.next();
    yield* rest.pages;
    [text, rows, done] = ['', 0, index + 1];
  }
  const last = outcomes.at(-1);
  if (last && done < outcomes.length)
    yield { text, rows, outcomes: outcomes.length - done, place: { outcomeId: last.outcomeId, keys: null } };
}

/** The rest of each outcome with more rows than its first ones; its first page is in flight. */
async function* restsOf(
  sources: Sources,
  outcomes: readonly ExportedOutcome[],
  found: ReadonlyMap<number, OutcomeRows>,
): AsyncGenerator<{ pages: AsyncGenerator<ExportPage> }> {
  for (const [index, outcome] of outcomes.entries()) {
    const first = found.get(index + 1);
    if (first === undefined || first.rows < KINDS[sources.request.kind].firstRows) continue;
    yield { pages: ahead(presentOf(sources, outcome, first.keys)) };
  }
}

/** The rows of one outcome behind these keys, until its last one. */
async function* restOf(sources: Sources, outcome: ExportedOutcome, after: string[]): AsyncGenerator<ExportPage> {
  let last = after;
  for await (const { text, rows, keys } of pastOf(sources, outcome)) {
    last = keys;
    yield { text, rows, outcomes: 0, place: { outcomeId: outcome.outcomeId, keys } };
  }
  yield* presentOf(sources, outcome, last);
}

/** The rows of one outcome in Postgres behind these keys, until its last one. */
async function* presentOf(sources: Sources, outcome: ExportedOutcome, after: string[]): AsyncGenerator<ExportPage> {
  const { pageRows } = KINDS[sources.request.kind];
  for (let keys = after; ; ) {
    const [page] = await rowsOf(sources, [outcome], pageRows, keys);
    const isLast = page === undefined || page.rows < pageRows;
    keys = page?.keys ?? keys;
    const place = { outcomeId: outcome.outcomeId, keys: isLast ? null : keys };
    yield { text: page?.lines ?? '', rows: page?.rows ?? 0, outcomes: isLast ? 1 : 0, place };
    if (isLast) return;
  }
}

/** The rows of one outcome in files. */
async function* pastOf(
  { request, past }: Sources,
  outcome: ExportedOutcome,
): AsyncGenerator<{ text: string; rows: number; keys: string[] }> {
  if (past === undefined) return;
  const head = headOf(request.format, [request.venue, outcome.marketId, outcome.outcomeId]);
  for (;;) {
    const found = await past.next(outcome.outcomeId);
    if (found === undefined) return;
    yield { text: found.lines.split('\0').join(head), rows: found.rows, keys: found.keys };
  }
}

/** @throws HistoryMoved when the seam is not that of the rows of files */
async function rowsOf(
  { db, request, past }: Sources,
  outcomes: readonly ExportedOutcome[],
  limit: number,
  after?: readonly string[],
): Promise<OutcomeRows[]> {
  const { kind, format, decimalFormat, venue, range, intervals } = request;
  const [start, end] = [BigInt(range.start) * 1_000_000n, BigInt(range.end) * 1_000_000n];
  const statement = STATEMENTS[keyOf(kind, format, decimalFormat, after !== undefined)] as Statement;
  const found = await db.query<{ seam: string | null } & (OutcomeRows | { place: null })>(statement, [
    outcomes.map(({ tokenId }) => tokenId),
    outcomes.map(({ marketId, outcomeId }) => headOf(format, [venue, marketId, outcomeId])),
    past !== undefined && past.presentFrom > start ? past.presentFrom : start,
    end,
    limit,
    ...(KINDS[kind].hasIntervals ? [intervals.map((interval) => INTERVAL_SECONDS[interval])] : []),
    ...(after ?? []),
  ]);
  const seam = found[0]?.seam ?? null;
  const isOther =
    past === undefined ? seam !== null && BigInt(seam) >= start : past.seam !== seam && past.presentFrom < end;
  if (isOther) throw new HistoryMoved();
  return found.filter((row): row is OutcomeRows & { seam: string | null } => row.place !== null);
}
