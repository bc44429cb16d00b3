import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { CATALOG_FILE_JSON } from './file-list.ts';
import type { PastFile } from './past.ts';

/** A candle of a file, or one that stands in for it; decimals are `numeric` text. */
export interface ArchivedCandle {
  readonly outcomeId: string;
  /** Epoch seconds. */
  readonly bucket: number;
  readonly open: string;
  readonly high: string;
  readonly low: string;
  readonly close: string;
  readonly volume: string;
  readonly notional: string;
  readonly trades: number;
}

/** What the archive has of the candles of a time, as of one snapshot. */
interface PastCandles {
  /** Oldest first. Days without a trade of these outcomes are omitted. */
  readonly files: readonly PastFile[];
  /** Candles that Postgres still has, or has again: they count, and not those of a file. */
  readonly present: readonly ArchivedCandle[];
}

const DAY_SECONDS = 86_400;

/** Candles of a day say whether it has trades. $1 venue, $2 token keys, $3 seconds of a candle, $4 and $5 epoch seconds. */
const PAST_CANDLES = sql(
  'read_past_candles',
  `WITH day AS MATERIALIZED (
     SELECT DISTINCT (to_timestamp(c.bucket) AT TIME ZONE 'UTC')::date AS date FROM candle c
     WHERE c.token_id = ANY ($2::bigint[]) AND c.interval_seconds = ${DAY_SECONDS} AND c.bucket > $4::bigint - ${DAY_SECONDS} AND c.bucket < $5::bigint)
   SELECT
     (SELECT coalesce(json_agg(json_build_object(${CATALOG_FILE_JSON}) ORDER BY f.date), '[]')
      FROM archive_file f JOIN day d ON d.date = f.date
      WHERE f.kind = 'candles' AND f.venue = $1 AND f.superseded_at IS NULL AND f.file IS NOT NULL) AS files,
     (SELECT coalesce(json_agg(json_build_object('outcomeId', t.mint, 'bucket', c.bucket, 'open', c.open::text, 'high', c.high::text,
          'low', c.low::text, 'close', c.close::text, 'volume', c.volume::text, 'notional', c.notional::text, 'trades', c.trades)), '[]')
      FROM candle c JOIN token t ON t.id = c.token_id
      WHERE c.token_id = ANY ($2::bigint[]) AND c.interval_seconds = $3 AND c.bucket >= $4 AND c.bucket < $5) AS present`,
);

interface PastQuery {
  readonly venue: string;
  readonly tokenIds: readonly bigint[];
  /** The length of a candle. */
  readonly seconds: number;
  /** Starts of candles are in `[from, until)`, epoch seconds, before the seam. */
  readonly from: number;
  readonly until: number;
}

/** The files with candles of these outcomes in a range, and the candles of the range that Postgres has. */
export async function readPastCandles(db: Queryable, query: PastQuery): Promise<PastCandles> {
  const { venue, tokenIds, seconds, from, until } = query;
  const [row] = await db.query<PastCandles>(PAST_CANDLES, [venue, tokenIds, seconds, from, until]);
  return row ?? { files: [], present: [] };
}

const LOCK = sql('lock_archived_candles', 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))');
const ALLOW = sql('allow_archived_candles', `SELECT set_config('oddswire.archived_candles', 'on', true)`);

/**
 * Lets a transaction write and drop candles of a day before the seam, as the only one: a fold needs all finer candles, and another transaction
 * drops those that the file has.
 */
export async function lockArchivedCandles(tx: Queryable, venue: string, date: string): Promise<void> {
  await tx.query(LOCK, [`archived candles ${venue} ${date}`]);
  await tx.query(ALLOW);
}

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'notional', 'trades'] as const;
const ROWS = `unnest($1::text[], $2::int[], $3::bigint[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[],
     $9::numeric[], $10::int[]) AS g (mint, interval_seconds, bucket, ${VALUES.join(', ')}) JOIN token t ON t.mint = g.mint`;

/** A candle with its length in seconds. */
export type ArchivedRow = ArchivedCandle & { readonly intervalSeconds: number };

function columnsOf(rows: readonly ArchivedRow[]): unknown[][] {
  return (['outcomeId', 'intervalSeconds', 'bucket', ...VALUES] as const).map((name) => rows.map((row) => row[name]));
}

/** A comparison with the totals of a venue that found missing trades adds up the minutes behind its start. */
const IS_COMPARED = `EXISTS (
     SELECT FROM outcome o JOIN trade_witness w ON w.market_id = o.market_id
     WHERE o.token_id = t.id AND w.missing_since IS NOT NULL
       AND g.bucket >= floor(extract(epoch FROM w.since) / 3600) * 3600 AND g.bucket < floor(extract(epoch FROM w.since) / 3600) * 3600 + 3600)`;

const DROP = sql(
  'drop_archived_candles',
  `DELETE FROM candle c USING ${ROWS}
   WHERE c.token_id = t.id AND c.interval_seconds = g.interval_seconds AND c.bucket = g.bucket
     AND (${VALUES.map((name) => `c.${name}`).join(', ')}) = (${VALUES.map((name) => `g.${name}`).join(', ')}) AND NOT ${IS_COMPARED}
   RETURNING 1`,
);

/** Drops candles whose file has the same values. Returns their number: others changed meanwhile, or a comparison reads them. */
export async function dropArchivedCandles(tx: Tx, rows: readonly ArchivedRow[]): Promise<number> {
  return (await tx.query(DROP, columnsOf(rows))).length;
}

const RESTORE = sql(
  'restore_archived_candles',
  `INSERT INTO candle (token_id, interval_seconds, bucket, ${VALUES.join(', ')})
   SELECT t.id, g.interval_seconds, g.bucket, ${VALUES.map((name) => `g.${name}`).join(', ')} FROM ${ROWS} ORDER BY 1, 2, 3
   ON CONFLICT DO NOTHING`,
);

/** Stores candles of a file again; those that Postgres has stay. */
export async function restoreArchivedCandles(tx: Tx, rows: readonly ArchivedRow[]): Promise<void> {
  await tx.query(RESTORE, columnsOf(rows));
}

const NOTE_DROPPED = sql(
  'note_dropped_candles',
  `UPDATE archive_file SET dropped_at = clock_timestamp()
   WHERE kind = 'candles' AND venue = $1 AND date = $2::date AND revision = $3`,
);

/** Postgres dropped the candles of a file: its day is due again when one of them changes. */
export async function noteDropped(db: Queryable, venue: string, date: string, revision: number): Promise<void> {
  await db.query(NOTE_DROPPED, [venue, date, revision]);
}
