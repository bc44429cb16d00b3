import { type Database, type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { insertMarksSql, minuteOf } from '../marks/detail.ts';
import { CLOSE_PRICE, OPEN_PRICE } from './trade-order.ts';

/*
 * Migration 0008 changes the order of trades with one timestamp, so minutes that were folded before may have another open or close. Two
 * passes walk all stored trades by outcome and minute, and mark minutes with a different stored candle for `fold-candles`. The first
 * pass begins at once. The second begins a day after the migration: until then an aggregator of the previous version may fold a minute
 * in the old order behind the first pass. A database without candles at the migration has no pass.
 */

/** Trades per piece. A piece is one transaction and ends with its last minute. */
const PIECE_TRADES = 20_000;

const UNFINISHED = `pass = (SELECT min(pass) FROM candle_refold WHERE finished_at IS NULL)
  AND finished_at IS NULL AND due_at <= clock_timestamp()`;

const IS_DUE = sql('is_refold_due', `SELECT EXISTS (SELECT FROM candle_refold WHERE ${UNFINISHED}) AS due`);

/** Whether a pass has pending work. */
export async function isRefoldDue(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ due: boolean }>(IS_DUE);
  return row?.due ?? false;
}

const CLAIM = sql(
  'claim_refold',
  `SELECT pass, next_token, next_ts::text AS next_ts FROM candle_refold WHERE ${UNFINISHED} FOR UPDATE SKIP LOCKED`,
);

const FIND_END = sqlPlannedPerCall(
  'find_refold_end',
  `SELECT token_id, (date_bin('1 minute', ts, timestamptz 'epoch') + interval '1 minute')::text AS ts FROM (
     SELECT token_id, ts FROM trade WHERE (token_id, ts) >= ($1::bigint, $2::timestamptz)
     ORDER BY token_id, ts OFFSET $3 LIMIT 1) r`,
);

/** The position after the last piece, behind every trade. */
const END = { tokenId: '9223372036854775807', ts: 'infinity' };

const MARK_DIFFERENT = sqlPlannedPerCall(
  'mark_different_minutes',
  `WITH folded AS MATERIALIZED (
     SELECT token_id, ${minuteOf('ts')} AS minute, count(*) AS trades,
       ${OPEN_PRICE} AS open, ${CLOSE_PRICE} AS close
     FROM trade WHERE (token_id, ts) >= ($1::bigint, $2::timestamptz) AND (token_id, ts) < ($3::bigint, $4::timestamptz)
     GROUP BY 1, 2),
   marked AS (
     ${insertMarksSql(
       'fold-candles',
       `SELECT f.token_id, f.minute
        FROM folded f JOIN candle c ON c.token_id = f.token_id AND c.interval_seconds = 60 AND c.bucket = f.minute
        WHERE (c.open, c.close) IS DISTINCT FROM (f.open, f.close)`,
     )}
     RETURNING shard)
   SELECT (SELECT coalesce(sum(trades), 0)::int FROM folded) AS trades, (SELECT count(*)::int FROM marked) AS minutes,
     ARRAY (SELECT DISTINCT shard::int FROM marked ORDER BY 1) AS shards`,
);

const ADVANCE = sql(
  'advance_refold',
  `UPDATE candle_refold SET next_token = $2, next_ts = $3::timestamptz, trades = trades + $4, minutes = minutes + $5,
     finished_at = CASE WHEN $6::boolean THEN clock_timestamp() END
   WHERE pass = $1`,
);

interface RefoldPiece {
  pass: number;
  /** The number of trades read. */
  trades: number;
  /** The number of marked minutes. */
  minutes: number;
  /** Shards of their marks, for the wake-ups. */
  shards: number[];
  /** Whether the pass is finished. */
  isLast: boolean;
}

/**
 * Marks the differing minutes of the next piece and advances the position of the pass, in one transaction. Null when no pass is due or
 * another process is processing a piece.
 */
export function refoldPiece(db: Database, pieceTrades: number = PIECE_TRADES): Promise<RefoldPiece | null> {
  return db.transaction(async (tx) => {
    const [claimed] = await tx.query<{ pass: number; nextToken: bigint; nextTs: string }>(CLAIM);
    if (!claimed) return null;
    const { pass, nextToken, nextTs } = claimed;
    const [found] = await tx.query<typeof END>(FIND_END, [nextToken, nextTs, pieceTrades - 1]);
    const end = found ?? END;
    const [marked] = await tx.query<Pick<RefoldPiece, 'trades' | 'minutes' | 'shards'>>(MARK_DIFFERENT, [
      nextToken,
      nextTs,
      end.tokenId,
      end.ts,
    ]);
    const { trades = 0, minutes = 0, shards = [] } = marked ?? {};
    const isLast = found === undefined;
    await tx.query(ADVANCE, [pass, end.tokenId, end.ts, trades, minutes, isLast]);
    return { pass, trades, minutes, shards, isLast };
  });
}

const PROGRESS = sql(
  'refold_progress',
  `SELECT pass, finished_at IS NOT NULL AS is_finished, trades::float8 AS trades, minutes::float8 AS minutes,
     CASE WHEN finished_at IS NULL THEN greatest(0, least(next_token - 1, t.last)) ELSE t.last END::float8 AS outcomes_done,
     t.last::float8 AS outcomes
   FROM candle_refold CROSS JOIN (SELECT coalesce(max(id), 0) AS last FROM token) t ORDER BY pass`,
);

export interface RefoldProgress {
  pass: number;
  isFinished: boolean;
  /** The numbers of trades read and of marked minutes. */
  trades: number;
  minutes: number;
  /** Outcomes by their running key: processed ones, and all. */
  outcomesDone: number;
  outcomes: number;
}

/** How far each pass is; none on a database that needs none. */
export function refoldProgress(db: Queryable): Promise<RefoldProgress[]> {
  return db.query(PROGRESS);
}

/** The finished share of a pass, 0 to 1. */
export function refoldShare({ isFinished, outcomesDone, outcomes }: RefoldProgress): number {
  if (isFinished) return 1;
  return outcomes === 0 ? 0 : outcomesDone / outcomes;
}

const WAITING = sql(
  'count_waiting_folds',
  `SELECT count(*)::int AS waiting FROM (SELECT FROM mark WHERE stage = 'fold-candles' LIMIT $1) m`,
);

/** Whether at least this many minutes have pending marks. */
export async function isFoldBacklog(db: Queryable, least: number): Promise<boolean> {
  const [row] = await db.query<{ waiting: number }>(WAITING, [least]);
  return (row?.waiting ?? 0) >= least;
}
