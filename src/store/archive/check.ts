import type { ArchiveDay } from '../../domain/archive/file.ts';
import type { ArchiveKind } from '../../domain/archive/kinds.ts';
import { listPartitions, type Partition, readSeam } from '../db/partitions.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { TABLES } from './catalog.ts';

const CHANGED = sql(
  'read_changed_archive_days',
  `SELECT DISTINCT c.kind, coalesce(c.venue, m.venue) AS venue, c.date::text AS date FROM archive_change c
   LEFT JOIN outcome o ON o.token_id = c.token_id LEFT JOIN market m ON m.id = o.market_id
   WHERE coalesce(c.venue, m.venue) IS NOT NULL`,
);

/** Days with noted changes: their file does not have the present rows yet. */
export function readChangedDays(db: Queryable): Promise<ArchiveDay[]> {
  return db.query<ArchiveDay>(CHANGED);
}

/** The partitions with all rows of their days; null when one table has all rows. A partition before the seam was made again by a late row. */
export async function partitionsOf(db: Queryable, kind: ArchiveKind): Promise<readonly Partition[] | null> {
  const table = TABLES[kind];
  if (table === undefined) return null;
  const seamMs = (await readSeam(db, kind)) ?? Number.NEGATIVE_INFINITY;
  return (await listPartitions(db, table)).filter(({ fromMs }) => fromMs >= seamMs);
}

/** A file of a former revision that the catalog still has. */
export interface FormerFile extends ArchiveDay {
  readonly revision: number;
  readonly file: string;
  readonly sha256: string;
  readonly bytes: number;
  /** Hours since a later revision superseded it. */
  readonly hours: number;
}

const FORMER = sql(
  'read_former_archive_files',
  `SELECT kind, venue, date::text AS date, revision, file, sha256, bytes,
     floor(extract(epoch FROM clock_timestamp() - superseded_at) / 3600)::int AS hours
   FROM archive_file WHERE superseded_at IS NOT NULL AND file IS NOT NULL ORDER BY kind, venue, date, revision`,
);

/** The files of former revisions that are not removed yet. */
export async function readFormerFiles(db: Queryable): Promise<FormerFile[]> {
  const rows = await db.query<Omit<FormerFile, 'bytes'> & { bytes: bigint }>(FORMER);
  return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
}
