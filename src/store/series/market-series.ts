import type { FeeStatement } from '../../domain/markets/fee.ts';
import type { TimeRange } from '../../domain/values/time-range.ts';
import { feeKnownAt } from '../catalog/market-fees.ts';
import { type MarketTokens, ONE_MARKET } from '../catalog/market-reads.ts';
import { createBatcher, oncePerOwner } from '../db/batcher.ts';
import { candleSeam } from '../db/partitions.ts';
import { epochMs, isContentRefused, type Queryable, type Statement, sql } from '../db/tx.ts';
import { type JournalStamp, STAMP, toStamp } from '../journal/read-journal.ts';
import type { LatestBook } from './book-reads.ts';
import { type StoredCandle, type TradePlace, type TradeRow, tradePageSql, tradePageValues } from './reads.ts';
import { FACTS_COLUMNS, FACTS_PARTS, type FactsRow, type TradeFacts, toTradeFacts } from './trade-history.ts';

/*
 * Reads of a series with everything that its answer needs: the market, its outcomes, the coverage of its trades, and the place in the
 * journal. Each is in one statement, hence one round trip and one snapshot. Reads that wait for a statement share the next one, because a
 * statement of its own costs a read more than its rows.
 */

/** Statements of one kind at the same time. */
const LANES = 4;
/** Reads of one statement: few, because a long series delays the others. */
const MAX_READS = 32;

/** A market with a part of one of its series, as of one snapshot. */
export type SeriesRead<Part> = Part & { market: MarketTokens; facts: TradeFacts; stamp: JournalStamp };

/** Which outcome of which market; venues in order of preference. */
interface SeriesTarget {
  venues: readonly string[];
  marketId: string;
  /** Absent: the first outcome, or all outcomes of a series over all of them. */
  outcomeId?: string | undefined;
}

const OUTCOMES = `CROSS JOIN LATERAL (
     SELECT array_agg(o.token_id ORDER BY o.ordinal) AS token_ids, array_agg(t.mint ORDER BY o.ordinal) AS mints
     FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id) o`;

/** The key of the outcome $3, or of the first one; NULL when the market has no such outcome. */
const CHOSEN = 'CASE WHEN $3::text IS NULL THEN o.token_ids[1] ELSE o.token_ids[array_position(o.mints, $3)] END';
/** The keys of the outcome $3, or of all. */
const CHOSEN_ALL = `CASE WHEN $3::text IS NULL THEN o.token_ids ELSE ARRAY[o.token_ids[array_position(o.mints, $3)]] END`;

/**
 * The JSON of rows, column by column. An aggregate finds the conversion of its type once; a function over the columns of a row would find
 * all of them for each row, which costs more than to read the row.
 */
function columnsSql(...columns: readonly string[]): string {
  return `json_build_array(${columns.map((column) => `json_agg(${column})`).join(', ')})`;
}

type Columns<Cells extends readonly unknown[]> = { [Place in keyof Cells]: Cells[Place][] | null };

/** The rows of `columnsSql`, whose columns are null without rows. */
function rowsOf<Cells extends readonly unknown[]>(columns: Columns<Cells>): Cells[] {
  const all = columns as readonly (readonly unknown[] | null)[];
  return (all[0] ?? []).map((_, row) => all.map((column) => column?.[row]) as unknown as Cells);
}

/** A statement of several reads. The parameters of a read have these types behind venues, market and outcome. */
interface SeriesStatement extends Statement {
  readonly width: number;
}

/** `columns` and `parts` have the SQL of one read, whose parameters are $1, $2 ... */
function statement(name: string, types: readonly string[], columns: string, parts = ''): SeriesStatement {
  const all = ['text', 'text', 'text', ...types];
  // Subqueries hide the number of reads from the planner: it would plan again for each number, which costs more than the reads.
  const arrays = all.map((type, n) => `(SELECT $${n + 1}::${type}[])`);
  const ofRead = (text: string) => text.replace(/\$(\d+)/g, 'a.p$1');
  const text = `SELECT (a.n - 1)::int AS n, m.id AS pk, m.venue, m.venue_market_id AS market_id, m.status AS market_status, m.has_book,
       m.close_at, m.resolved_at, to_json(o.token_ids::text[]) AS token_ids, to_json(o.mints) AS mints, ${FACTS_COLUMNS}, ${STAMP}, ${ofRead(columns)}
     FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS a (${all.map((_, n) => `p${n + 1}`).join(', ')}, n)
     CROSS JOIN LATERAL (SELECT * FROM market m WHERE ${ofRead(ONE_MARKET)}) m ${OUTCOMES} ${FACTS_PARTS} ${ofRead(parts)}`;
  return { ...sql(name, text), width: all.length };
}

type MarketRow = Omit<MarketTokens, 'outcomes' | 'status'> &
  FactsRow & {
    marketStatus: MarketTokens['status'];
    tokenIds: string[] | null;
    mints: string[] | null;
    stamp: string;
  };

type Values = readonly unknown[];
type Lane = (values: Values) => Promise<unknown>;

/** The rows of several reads, in their order; undefined for an unknown market. */
async function readRows(db: Queryable, { width, ...statement }: SeriesStatement, reads: readonly Values[]) {
  const columns = Array.from({ length: width }, (_, column) => reads.map((values) => values[column] ?? null));
  const rows = await db.query<{ n: number }>(statement, columns);
  const byRead = new Map(rows.map((row) => [row.n, row]));
  return reads.map((_, n) => byRead.get(n));
}

const lanesOf = oncePerOwner((_db: Queryable) => new Map<SeriesStatement, { lanes: Lane[]; turn: number }>());

function readRow(db: Queryable, statement: SeriesStatement, values: Values): Promise<unknown> {
  const known = lanesOf(db).get(statement);
  const made = known ?? {
    lanes: Array.from({ length: LANES }, () =>
      createBatcher({
        run: (reads: readonly Values[]) => readRows(db, statement, reads),
        maxItems: MAX_READS,
        isWorthSplitting: isContentRefused,
      }),
    ),
    turn: 0,
  };
  lanesOf(db).set(statement, made);
  made.turn += 1;
  const lane = made.lanes[made.turn % LANES] as Lane;
  return lane(values);
}

async function read<Found, Part>(
  db: Queryable,
  statement: SeriesStatement,
  { venues, marketId, outcomeId }: SeriesTarget,
  values: Values,
  toPart: (found: Found) => Part,
): Promise<SeriesRead<Part> | null> {
  const venueList = `{${venues.join(',')}}`;
  const row = (await readRow(db, statement, [venueList, marketId, outcomeId ?? null, ...values])) as
    | (MarketRow & Found)
    | undefined;
  if (!row) return null;
  const { pk, venue, marketId: id, marketStatus: status, hasBook, closeAt, resolvedAt, stamp } = row;
  const outcomes = rowsOf<[tokenId: string, mint: string]>([row.tokenIds, row.mints]).map(([tokenId, mint]) => {
    return { tokenId: BigInt(tokenId), outcomeId: mint };
  });
  const market = { pk, venue, marketId: id, status, hasBook, closeAt, resolvedAt, outcomes };
  return { ...toPart(row), market, facts: toTradeFacts(row), stamp: toStamp(stamp) };
}

/** Postgres has candles of this length for ever, also those of days whose finer ones are in files. */
const COARSER = 900;
const DAY_OF = (second: string) => `${second} / 86400 * 86400`;

type CandleCells = [bucket: number, o: string, h: string, l: string, c: string, v: string, n: string, trades: number];

const CANDLES = statement(
  'read_market_candles',
  ['int', 'bigint', 'bigint', 'bool'],
  `k.candles, c.seam::float8 AS seam, CASE WHEN $7 THEN coalesce((
     SELECT close FROM candle b WHERE b.token_id = c.token_id AND b.interval_seconds = $4 AND b.bucket < $5 AND b.bucket >= c.seam
     ORDER BY b.bucket DESC LIMIT 1), (
     SELECT close FROM candle b WHERE b.token_id = c.token_id AND b.interval_seconds = ${COARSER} AND b.bucket < least(c.seam, ${DAY_OF('$5')})
     ORDER BY b.bucket DESC LIMIT 1)) END AS close_before`,
  `CROSS JOIN LATERAL (SELECT ${CHOSEN} AS token_id, ${candleSeam('$4')} AS seam) c
   LEFT JOIN LATERAL (
     SELECT ${columnsSql('bucket', 'open::text', 'high::text', 'low::text', 'close::text', 'volume::text', 'notional::text', 'trades')} AS candles
     FROM (
       SELECT * FROM candle k WHERE k.token_id = c.token_id AND k.interval_seconds = $4 AND k.bucket >= greatest($5, c.seam) AND k.bucket < $6
       ORDER BY k.bucket) k) k ON true`,
);

/**
 * Candles of one outcome, oldest first; buckets without a trade have none. `seam`, epoch seconds: those before it are in files of the archive
 * and not in this answer. `withCloseBefore` adds the last close before the range, or before the day of its start when that is before the seam.
 */
export function readMarketCandles(
  db: Queryable,
  target: SeriesTarget,
  { seconds, range, withCloseBefore }: { seconds: number; range: TimeRange; withCloseBefore: boolean },
): Promise<SeriesRead<{ candles: StoredCandle[]; seam: number; closeBefore: string | null }> | null> {
  type Found = { candles: Columns<CandleCells>; seam: number; closeBefore: string | null };
  return read(db, CANDLES, target, [seconds, range.start, range.end, withCloseBefore], (found: Found) => ({
    candles: rowsOf<CandleCells>(found.candles).map(([bucket, open, high, low, close, volume, notional, trades]) => {
      return { bucket, open, high, low, close, volume, notional, trades };
    }),
    seam: found.seam,
    closeBefore: found.closeBefore,
  }));
}

const VOLUME = statement(
  'read_market_volume',
  ['int', 'bigint', 'bigint'],
  'k.windows, s.seam::float8 AS seam',
  `CROSS JOIN LATERAL (SELECT ${candleSeam('$4')} AS seam) s
   CROSS JOIN LATERAL (
     SELECT ${columnsSql('bucket', 'volume::text', 'notional::text', 'trades')} AS windows
     FROM (
       SELECT bucket, sum(volume) AS volume, sum(notional) AS notional, sum(trades) AS trades FROM candle
       WHERE token_id = ANY (${CHOSEN_ALL}) AND interval_seconds = $4 AND bucket >= greatest($5, s.seam) AND bucket < $6
       GROUP BY bucket ORDER BY bucket) w) k`,
);

export interface VolumeWindow {
  bucket: number;
  volume: string;
  notional: string;
  trades: number;
}

/** Volume per window of one outcome or of all together, oldest first; windows without a trade, and those before `seam`, are omitted. */
export function readMarketVolume(
  db: Queryable,
  target: SeriesTarget,
  { seconds, range }: { seconds: number; range: TimeRange },
): Promise<SeriesRead<{ windows: VolumeWindow[]; seam: number }> | null> {
  type Cells = [bucket: number, volume: string, notional: string, trades: number];
  return read(
    db,
    VOLUME,
    target,
    [seconds, range.start, range.end],
    (found: { windows: Columns<Cells>; seam: number }) => ({
      seam: found.seam,
      windows: rowsOf<Cells>(found.windows).map(([bucket, volume, notional, trades]) => ({
        bucket,
        volume,
        notional,
        trades,
      })),
    }),
  );
}

type TradeCells = [
  tokenId: string,
  atMicros: string,
  tradeId: string,
  price: string,
  size: string,
  side: number | null,
  ordinal: number,
  signedPrice: string,
  receivedSeconds: number | null,
];

function tradesStatement(direction: 'asc' | 'desc', isContinued: boolean): SeriesStatement {
  const page = tradePageSql(CHOSEN_ALL, { direction, isContinued, first: 4 });
  return statement(
    `read_market_trades_${direction}${isContinued ? '_after' : ''}`,
    ['float8', 'float8', 'int', ...(isContinued ? ['bigint', 'int', 'numeric', 'text', 'bigint'] : [])],
    `p2.trades_page, (SELECT ${epochMs('s.until')} FROM archive_seam s WHERE s.kind = 'trades') AS seam_ms`,
    `CROSS JOIN LATERAL (
       SELECT ${columnsSql('token_id::text', 'at_micros', 'trade_id', 'price::text', 'size::text', 'side', 'ordinal', 'signed_price::text', 'received_seconds')}
         AS trades_page FROM (${page}) t) p2`,
  );
}

const TRADES = {
  asc: { first: tradesStatement('asc', false), after: tradesStatement('asc', true) },
  desc: { first: tradesStatement('desc', false), after: tradesStatement('desc', true) },
};

interface TradesQuery {
  range: Partial<TimeRange>;
  direction: 'asc' | 'desc';
  limit: number;
  after?: TradePlace;
}

/**
 * The rows of a page of the tape of one outcome or of all, in the order of trades: one more than the page has when more follow. `seamMs`: the
 * moment before which files of the archive alone have trades, epoch milliseconds; null without one.
 */
export function readMarketTrades(
  db: Queryable,
  target: SeriesTarget,
  query: TradesQuery,
): Promise<SeriesRead<{ rows: TradeRow[]; seamMs: number | null }> | null> {
  const chosen = TRADES[query.direction][query.after ? 'after' : 'first'];
  type Found = { tradesPage: Columns<TradeCells>; seamMs: number | null };
  return read(db, chosen, target, tradePageValues(query), ({ tradesPage, seamMs }: Found) => ({
    rows: rowsOf<TradeCells>(tradesPage).map(toRow),
    seamMs,
  }));
}

function toRow(cells: TradeCells): TradeRow {
  const [tokenId, atMicros, tradeId, price, size, side, ordinal, signedPrice, receivedSeconds] = cells;
  return { tokenId: BigInt(tokenId), atMicros, tradeId, price, size, side, ordinal, signedPrice, receivedSeconds };
}

const BOOK = statement(
  'read_market_book',
  [],
  `b.as_of AS book_as_of, b.bids, b.asks, b.received_at,
   (extract(epoch FROM clock_timestamp() - b.received_at) * 1000)::float8 AS unseen_ms, g.gaps, f.statement AS fee`,
  `LEFT JOIN book_latest b ON b.token_id = ${CHOSEN}
   LEFT JOIN LATERAL ${feeKnownAt('m.id', `'infinity'`)} f ON true
   LEFT JOIN LATERAL (
     SELECT json_agg(json_build_array(g.reason, ${msOf('g.from_at')}, ${msOf('g.to_at')}) ORDER BY g.from_at, g.id) AS gaps
     FROM feed_gap g WHERE g.market_id = m.id AND g.affected = 'books' AND (g.to_at IS NULL OR g.to_at > b.received_at)) g ON true`,
);

function msOf(moment: string): string {
  return `(extract(epoch FROM ${moment}) * 1000)::float8`;
}

/** An interval in which the venue's feed may have lost changes of a book. */
export interface BookGap {
  reason: string;
  fromAt: Date;
  /** Null while it lasts. */
  toAt: Date | null;
}

export type BookRead = SeriesRead<{
  book: LatestBook | null;
  gaps: BookGap[];
  /** The last statement about the fee of the market; null before the first. */
  fee: FeeStatement | null;
}>;

type GapCells = [reason: string, fromMs: number, toMs: number | null];
type BookColumns = ((Omit<LatestBook, 'asOf'> & { bookAsOf: Date }) | { bookAsOf: null }) & {
  gaps: GapCells[] | null;
  fee: FeeStatement | null;
};

/** The latest book of one outcome, null before the first, the fee of its market, and the gaps of its market since the book was last seen. */
export function readMarketBook(db: Queryable, target: SeriesTarget): Promise<BookRead | null> {
  return read(db, BOOK, target, [], ({ gaps: cells, fee, ...columns }: BookColumns) => {
    const gaps = (cells ?? []).map(([reason, fromMs, toMs]) => {
      return { reason, fromAt: new Date(fromMs), toAt: toMs === null ? null : new Date(toMs) };
    });
    if (columns.bookAsOf === null) return { book: null, gaps, fee };
    const { bookAsOf: asOf, bids, asks, receivedAt, unseenMs } = columns;
    return { book: { asOf, bids, asks, receivedAt, unseenMs }, gaps, fee };
  });
}
