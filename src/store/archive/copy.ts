import type { Socket } from 'node:net';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { escapeLiteral, type PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { CsvRows, type RowsSummary } from '../../domain/archive/csv-rows.ts';
import type { ArchiveDay, ArchiveFile, DayWitness } from '../../domain/archive/file.ts';
import {
  ARCHIVE_KINDS,
  ARCHIVED_INTERVALS,
  type ArchiveKind,
  type ColumnType,
  fileColumns,
} from '../../domain/archive/kinds.ts';
import { asError, OddswireError } from '../../domain/values/errors.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import { NEWEST_HEAD } from '../journal/read-journal.ts';

/** The rows of a day in Postgres, at one snapshot. */
export interface DaySummary extends RowsSummary {
  snapshot: string;
  journalSeq: string | null;
  witness: NonNullable<ArchiveFile['witness']>;
  /** The changes of the day whose rows this snapshot has; see migration 0049. */
  changes: bigint[];
  /** Of corrections: the outcomes whose rows were copied. */
  tokenIds: bigint[];
}

/** One snapshot for all statements of a transaction. */
export const ISOLATE = sql('isolate_archive_read', 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
const READ_PLACE = sql(
  'read_archive_place',
  `SELECT pg_current_snapshot()::text AS snapshot, (SELECT seq::text FROM (${NEWEST_HEAD}) h) AS journal_seq`,
);
const READ_CHANGES = sql(
  'read_archive_changes',
  `SELECT c.id FROM archive_change c LEFT JOIN outcome o ON o.token_id = c.token_id LEFT JOIN market m ON m.id = o.market_id
   WHERE c.kind = $1 AND c.date = $3::date AND coalesce(c.venue, m.venue) = $2`,
);

/** Writes the rows of a day to `target` as CSV, and returns their summary of the same snapshot. Ends `target`. */
export function copyDay(
  db: Database,
  day: ArchiveDay,
  target: () => Writable,
  signal: AbortSignal,
  trades: TradeTable = 'trade',
): Promise<DaySummary> {
  return db.transaction(async (tx) => {
    await tx.query(ISOLATE);
    const [place] = await tx.query<Pick<DaySummary, 'snapshot' | 'journalSeq'>>(READ_PLACE);
    const changes = await readChanges(tx, day);
    const witness = await readWitness(tx, day);
    const tokenIds = trades === 'trade' ? [] : await readCorrected(tx, day);
    if (place === undefined) throw new OddswireError('no_archive_summary', 'Postgres returned no place of the day');
    const rows = new CsvRows(fileColumns(day.kind), TIME_COLUMN[day.kind]);
    await copyRows(tx, copySql(day, trades), [summing(rows), target()], signal);
    return { ...rows.end(), ...place, changes, witness, tokenIds };
  });
}

/** Sends the answer of a COPY through the streams, and returns the number of its rows as Postgres states it. */
export async function copyRows(
  tx: Tx,
  statement: string,
  streams: [...Transform[], Writable],
  signal?: AbortSignal,
): Promise<number> {
  const client: PoolClient | undefined = await tx.em.queryRunner?.connect();
  if (client === undefined) throw new OddswireError('no_query_runner', 'a transaction has no connection');
  const rows = client.query(copyTo(statement));
  try {
    await pipeline([rows, ...streams], signal === undefined ? {} : { signal });
    return rows.rowCount;
  } catch (error) {
    // The rest of the answer has no reader: Postgres and the roll-back behind it would wait without end.
    connectionOf(client).stream.destroy();
    throw error;
  }
}

/** Sums up the rows that Postgres sends, between it and the disk. */
function summing(rows: CsvRows): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        rows.add(chunk);
        done(null, chunk);
      } catch (error) {
        done(asError(error));
      }
    },
  });
}

/** The summary of a day alone. */
export function summarizeDay(db: Database, day: ArchiveDay, signal: AbortSignal): Promise<DaySummary> {
  return copyDay(db, day, () => new Writable({ write: (_chunk, _encoding, done) => done() }), signal);
}

const DAY_OF = (date: string) =>
  `c.ts >= ${date}::date::timestamp AT TIME ZONE 'UTC' AND c.ts < (${date}::date + 1)::timestamp AT TIME ZONE 'UTC'`;
const READ_CORRECTED = sql(
  'read_corrected_tokens',
  `SELECT DISTINCT c.token_id FROM archive_correction c JOIN outcome o ON o.token_id = c.token_id JOIN market m ON m.id = o.market_id
   WHERE m.venue = $1 AND ${DAY_OF('$2')}`,
);
/** A market that was stored after the snapshot has rows that were not copied. */
const DELETE_CORRECTIONS = sql(
  'delete_archive_corrections',
  `DELETE FROM archive_correction c
   WHERE c.token_id = ANY ($1::bigint[]) AND ${DAY_OF('$2')} AND pg_visible_in_snapshot(c.xid, $3::pg_snapshot)`,
);

async function readCorrected(db: Queryable, { venue, date }: ArchiveDay): Promise<bigint[]> {
  return (await db.query<{ tokenId: bigint }>(READ_CORRECTED, [venue, date])).map(({ tokenId }) => tokenId);
}

/** Removes the corrections of a day that were copied. */
export async function deleteCorrections(
  tx: Queryable,
  { date }: ArchiveDay,
  { tokenIds, snapshot }: Pick<DaySummary, 'tokenIds' | 'snapshot'>,
): Promise<void> {
  await tx.query(DELETE_CORRECTIONS, [tokenIds, date, snapshot]);
}

/** The driver has no call that ends a connection in the middle of an answer. */
function connectionOf(client: PoolClient): { stream: Socket } {
  return (client as unknown as { connection: { stream: Socket } }).connection;
}

async function readChanges(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<bigint[]> {
  const rows = await db.query<{ id: bigint }>(READ_CHANGES, [kind, venue, date]);
  return rows.map(({ id }) => id);
}

/** The hours of a venue sum up its markets. */
const READ_WITNESS = sql(
  'read_day_witness',
  `SELECT EXISTS (SELECT FROM coverage_settled s WHERE s.venue = $1 AND s.kind = 'trades') AS has_totals,
     (SELECT unit FROM venue_completeness WHERE venue = $1) AS unit, trim_scale(coalesce(sum(c.stored), 0))::text AS stored,
     CASE WHEN count(c.total) = 24 THEN trim_scale(sum(c.total))::text END AS total, trim_scale(coalesce(sum(c.missing), 0))::text AS missing,
     (count(*) FILTER (WHERE c.class = 'complete'))::int AS complete, (count(*) FILTER (WHERE c.class = 'quiet'))::int AS quiet,
     (count(*) FILTER (WHERE c.class = 'gap'))::int AS gap, (count(*) FILTER (WHERE c.class = 'unknown'))::int AS unknown
   FROM coverage c
   WHERE c.venue = $1 AND c.kind = 'trades' AND c.market_id = 0 AND c.checked_at IS NOT NULL
     AND c.hour >= $2::date::timestamp AT TIME ZONE 'UTC' AND c.hour < ($2::date::timestamp AT TIME ZONE 'UTC') + interval '24 hours'`,
);

type WitnessRow = Omit<DayWitness, 'hours'> & Omit<DayWitness['hours'], 'open'> & { hasTotals: boolean };

/** The venue's totals of a day of trades, or the reason why there are none. */
async function readWitness(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<DaySummary['witness']> {
  if (kind !== 'trades') return { reason: 'not_trades' };
  const [row] = await db.query<WitnessRow>(READ_WITNESS, [venue, date]);
  if (!row?.hasTotals) return { reason: 'no_total' };
  const { unit, stored, total, missing, complete, quiet, gap, unknown } = row;
  const judged = complete + quiet + gap + unknown;
  if (judged === 0) return { reason: 'not_settled' };
  return { unit, stored, total, missing, hours: { complete, quiet, gap, unknown, open: 24 - judged } };
}

/** The part of the rows that each kind reads, as SQL: the venue, the first moment and the one behind the last, of a file those of its day. */
interface Place {
  readonly venue: string;
  /** One market only. */
  readonly marketId?: string;
  readonly hasOutsideMarkets: boolean;
  readonly from: string;
  readonly until: string;
  readonly trades: TradeTable;
  /** Lengths of candles, seconds. */
  readonly intervals: readonly number[];
  /** Whether histories begin with the values in effect at the first moment. */
  readonly hasInEffect: boolean;
}

/** Trades of days that Postgres has, and trades that a file of a day without rows in Postgres may lack. */
type TradeTable = 'trade' | 'archive_correction';

const OUTSIDE_MARKETS = `
  UNION ALL
  SELECT t.id, t.mint, NULL, false FROM token t WHERE NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id)`;

/**
 * Outcomes of a venue, as `k (id, mint, market_id, is_over)`. Solana has tokens without markets; without that part Postgres can read the
 * markets in their order, and sorts the rows of one market at a time.
 */
const tokensOf = ({ venue, marketId, from, hasOutsideMarkets }: Place) => `(
  SELECT t.id, t.mint, m.venue_market_id AS market_id,
    ((m.status IN ('resolved', 'settled') AND m.updated_at < ${from}) OR m.gone_at < ${from}) IS TRUE AS is_over
  FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id WHERE m.venue = ${venue}${
    marketId === undefined ? '' : ` AND m.venue_market_id = ${marketId}`
  }${hasOutsideMarkets ? OUTSIDE_MARKETS : ''}) k`;

/** The changes of a day, after the last one before it of each outcome that is not over. */
const historyOf = (table: string, columns: string) => (place: Place) =>
  `
  SELECT k.market_id, k.mint AS outcome_id, h.received_at, h.as_of, ${columns}, false AS in_effect
  FROM ${tokensOf(place)} JOIN ${table} h ON h.token_id = k.id AND h.received_at >= ${place.from} AND h.received_at < ${place.until}${
    place.hasInEffect
      ? `
  UNION ALL
  SELECT k.market_id, k.mint, h.received_at, h.as_of, ${columns}, true
  FROM ${tokensOf(place)} CROSS JOIN LATERAL (
    SELECT * FROM ${table} h WHERE h.token_id = k.id AND h.received_at < ${place.from} ORDER BY h.received_at DESC LIMIT 1) h
  WHERE NOT k.is_over`
      : ''
  }`;

/** The columns of each kind, in the order of `ARCHIVE_KINDS`. */
const ROWS: Record<ArchiveKind, (place: Place) => string> = {
  trades: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, t.ts, t.trade_id, t.price, t.size, t.price * t.size AS notional,
      CASE t.side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END AS side, t.ordinal, t.received_at
    FROM ${tokensOf(place)} JOIN ${place.trades} t ON t.token_id = k.id AND t.ts >= ${place.from} AND t.ts < ${place.until}`,
  candles: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, c.interval_seconds, to_timestamp(c.bucket) AS start,
      c.open, c.high, c.low, c.close, c.volume, c.notional, c.trades
    FROM ${tokensOf(place)} JOIN candle c ON c.token_id = k.id AND c.interval_seconds IN (${place.intervals.join(', ')})
      AND c.bucket >= extract(epoch FROM ${place.from})::bigint AND c.bucket < extract(epoch FROM ${place.until})::bigint`,
  prices: historyOf('price_history', 'h.price, h.bid, h.ask'),
  books: historyOf('book_history', 'h.bids, h.asks'),
  markets: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, v.known_from, v.facts ->> 'event_id' AS event_id, v.facts ->> 'title' AS title,
      v.facts ->> 'status' AS status, v.facts
    FROM market m CROSS JOIN LATERAL (
      SELECT v.known_from, v.facts FROM market_version v WHERE v.market_id = m.id
      UNION ALL
      SELECT m.updated_at, to_jsonb(m) - ARRAY['id', 'venue', 'venue_market_id', 'content_hash', 'updated_at', 'search', 'resolution_turn',
          'gone_at', 'fee_id']
        || jsonb_build_object('outcomes', coalesce((
             SELECT jsonb_agg(jsonb_build_array(t.mint, o.label) ORDER BY o.ordinal)
             FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id), '[]'),
           'payouts', coalesce((
             SELECT jsonb_agg(jsonb_build_array(t.mint, o.payout::text) ORDER BY o.ordinal)
             FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id AND o.payout IS NOT NULL), '[]'))) v
    WHERE m.venue = ${venue} AND v.known_from >= ${from} AND v.known_from < ${until}`,
  resolutions: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, r.n, r.transition, r.state, r.round, r.at AS venue_at, r.received_at, r.payouts, r.reason, r.source, r.facts
    FROM market_resolution r JOIN market m ON m.id = r.market_id
    WHERE m.venue = ${venue} AND r.received_at >= ${from} AND r.received_at < ${until}`,
  coverage: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, c.kind, c.hour AS start, c.class, c.stored, c.total, c.missing, c.tolerance, c.cause, c.reason,
      c.pause_ms::numeric / 1000 AS longest_pause, c.from_at, c.to_at, c.markets, c.markets_gap, c.markets_unknown, c.checked_at
    FROM coverage c LEFT JOIN market m ON m.id = c.market_id AND c.market_id > 0
    WHERE c.venue = ${venue} AND c.hour >= ${from} AND c.hour < ${until} AND c.checked_at IS NOT NULL AND (c.market_id = 0 OR m.id IS NOT NULL)`,
};

/** The column whose range a file states. */
const TIME_COLUMN: Record<ArchiveKind, string> = {
  trades: 'ts',
  candles: 'start',
  prices: 'received_at',
  books: 'received_at',
  markets: 'known_from',
  resolutions: 'received_at',
  coverage: 'start',
};

/** Whether a decimal has at most 20 digits before its point and 18 behind it. The scale decides nearly always, and costs least. */
const fits = (value: string) =>
  `${value} < 1e20 AND ${value} > -1e20 AND (scale(${value}) <= 18 OR ${value} = round(${value}, 18))`;

/** The values of a column of a file as SQL: of a decimal two, because its digits beyond the type of the file are text. */
function rendered(name: string, type: ColumnType): string[] {
  const value = `r.${name}`;
  // It has six digits behind its point.
  if (type === 'time') return [`extract(epoch FROM ${value})`];
  // COPY writes `t` and `f`; the text of a row has `true` and `false`.
  if (type === 'boolean') return [`${value}::text`];
  if (type !== 'decimal') return [value];
  return [
    `CASE WHEN ${fits(value)} THEN CASE WHEN scale(${value}) <= 18 THEN ${value} ELSE round(${value}, 18) END END`,
    `CASE WHEN ${fits(value)} THEN NULL ELSE trim_scale(${value}) END`,
  ];
}

/** SQL that copies the rows of a day as CSV in the order of its file, as `CsvRows` reads it. */
function copySql({ kind, venue, date }: ArchiveDay, trades: TradeTable): string {
  const from = `(${escapeLiteral(date)}::date::timestamp AT TIME ZONE 'UTC')`;
  const columns: readonly { name: string; type: ColumnType }[] = ARCHIVE_KINDS[kind].columns;
  const order = ARCHIVE_KINDS[kind].order.map((name) => {
    const isText = columns.some((column) => column.name === name && column.type === 'text');
    return `q.${name}${isText ? ' COLLATE "C"' : ''} NULLS FIRST`;
  });
  const rows = ROWS[kind]({
    venue: escapeLiteral(venue),
    hasOutsideMarkets: venue === 'solana',
    from,
    until: `(${from} + interval '24 hours')`,
    trades,
    intervals: ARCHIVED_INTERVALS,
    hasInEffect: true,
  });
  // OFFSET 0 keeps Postgres from computing a value again for each use of it.
  return copyOf(kind, `SELECT * FROM (${rows}) q ORDER BY ${order.join(', ')} OFFSET 0`);
}

/** Rows of a venue or a market of `[from, until)`, epoch microseconds. */
export interface CopiedSpan {
  readonly kind: ArchiveKind;
  readonly venue: string;
  readonly marketId?: string | undefined;
  readonly from: bigint;
  readonly until: bigint;
  readonly intervals?: readonly number[];
}

/** SQL that copies the rows of the markets of a venue as CSV with the columns of a file, in no order and without values in effect. */
export function copySpanSql(span: CopiedSpan, trades: TradeTable): string {
  const { kind, venue, marketId, from, until, intervals = ARCHIVED_INTERVALS } = span;
  const moment = (micros: bigint) => `(timestamptz 'epoch' + ${micros} * interval '1 microsecond')`;
  const rows = ROWS[kind]({
    venue: escapeLiteral(venue),
    hasOutsideMarkets: false,
    from: moment(from),
    until: moment(until),
    trades,
    intervals,
    hasInEffect: false,
    ...(marketId !== undefined && { marketId: escapeLiteral(marketId) }),
  });
  return copyOf(kind, `SELECT * FROM (${rows}) q OFFSET 0`);
}

function copyOf(kind: ArchiveKind, rows: string): string {
  const values = ARCHIVE_KINDS[kind].columns.flatMap(({ name, type }) => rendered(name, type));
  return `COPY (SELECT ${values.join(', ')} FROM (${rows}) r) TO STDOUT (FORMAT csv, FORCE_QUOTE *)`;
}
