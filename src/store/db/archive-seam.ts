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
