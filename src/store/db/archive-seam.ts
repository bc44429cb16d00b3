import type { ArchiveKind } from '../../domain/archive/kinds.ts';
import { type Queryable, sql } from './tx.ts';

/** SQL of the moment before which the rows of a kind are in files alone; `-infinity` without one. See migration 0055. */
export function seamOf(kind: ArchiveKind): string {
  return `coalesce((SELECT s.until FROM archive_seam s WHERE s.kind = '${kind}'), '-infinity')`;
}

const READ = sql('read_archive_seam', 'SELECT until FROM archive_seam WHERE kind = $1');

/** The moment before which the rows of a kind are in files alone, epoch milliseconds; undefined without one. */
export async function readSeam(db: Queryable, kind: ArchiveKind): Promise<number | undefined> {
  const [row] = await db.query<{ until: Date }>(READ, [kind]);
  return row?.until.getTime();
}

const MOVE = sql(
  'move_archive_seam',
  `INSERT INTO archive_seam AS s (kind, until) VALUES ($1, to_timestamp($2::float8 / 1000))
   ON CONFLICT (kind) DO UPDATE SET until = greatest(s.until, excluded.until)`,
);

/** Moves the seam, in the transaction that drops the rows before it. */
export async function moveSeam(tx: Queryable, kind: ArchiveKind, untilMs: number): Promise<void> {
  await tx.query(MOVE, [kind, untilMs]);
}

const MOVE_CANDLES = sql(
  'move_candle_seam',
  `UPDATE archive_seam s SET until = n.until
   FROM (SELECT least(t.until, date_trunc('day', to_timestamp($1::float8 / 1000), 'UTC')) AS until FROM archive_seam t WHERE t.kind = 'trades') n
   WHERE s.kind = 'candles' AND n.until > s.until AND s.moves_at <= clock_timestamp()`,
);

/**
 * Moves the seam of candles to the start of a UTC day, at most to the seam of trades: then only `archive-day` folds the minutes before it.
 * Postgres drops these candles later, one by one, each of them when the file of its day has the same values.
 */
export async function moveCandleSeam(db: Queryable, untilMs: number): Promise<void> {
  await db.query(MOVE_CANDLES, [untilMs]);
}

const HOLD = sql('hold_candle_seam', `SELECT until FROM archive_seam WHERE kind = 'candles' FOR SHARE`);

/** The seam of candles, epoch milliseconds. It stays until the transaction ends. */
export async function holdCandleSeam(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ until: Date }>(HOLD);
  return row?.until.getTime() ?? 0;
}

/** Epoch seconds of the seam of candles as SQL, when candles of this length, as SQL, are before it in files; 0 otherwise. */
export const candleSeam = (seconds: string) =>
  `CASE WHEN ${seconds} < 900 THEN (SELECT extract(epoch FROM s.until)::bigint FROM archive_seam s WHERE s.kind = 'candles') ELSE 0 END`;
