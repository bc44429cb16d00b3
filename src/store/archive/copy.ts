import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { ArchiveDay } from '../../domain/archive/file.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { type Database, type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { NEWEST_HEAD } from '../journal/read-journal.ts';
import { copySql, summarySql } from './rows.ts';

/** The state of a day in Postgres, at one snapshot. */
export interface DaySummary {
  rows: number;
  inEffect: number;
  /** Epoch milliseconds; null without rows. */
  startMs: number | null;
  endMs: number | null;
  checksum: string;
  snapshot: string;
  journalSeq: string | null;
  /** The changes of the day whose rows this snapshot has; see migration 0049. */
  changes: bigint[];
}

const ISOLATE = sql('isolate_archive_read', 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
const READ_PLACE = sql(
  'read_archive_place',
  `SELECT pg_current_snapshot()::text AS snapshot, (SELECT seq::text FROM (${NEWEST_HEAD}) h) AS journal_seq`,
);
const READ_CHANGES = sql(
  'read_archive_changes',
  `SELECT c.id FROM archive_change c LEFT JOIN outcome o ON o.token_id = c.token_id LEFT JOIN market m ON m.id = o.market_id
   WHERE c.kind = $1 AND c.date = $3::date AND m.venue = $2`,
);

/** Writes the rows of a day to `target` as CSV, and returns their summary of the same snapshot. Ends `target`. */
export function copyDay(
  db: Database,
  day: ArchiveDay,
  target: () => Writable,
  signal: AbortSignal,
): Promise<DaySummary> {
  return readSnapshot(db, day, async (client) => {
    try {
      await pipeline(client.query(copyTo(copySql(day))), target(), { signal });
    } catch (error) {
      // The rest of the answer has no reader: Postgres and the roll-back behind it would wait without end.
      connectionOf(client).stream.destroy();
      throw error;
    }
  });
}

/** The summary of a day alone. */
export function summarizeDay(db: Database, day: ArchiveDay): Promise<DaySummary> {
  return readSnapshot(db, day, async () => undefined);
}

/** The driver has no call that ends a connection in the middle of an answer. */
function connectionOf(client: PoolClient): { stream: Socket } {
  return (client as unknown as { connection: { stream: Socket } }).connection;
}

function readSnapshot(db: Database, day: ArchiveDay, read: (client: PoolClient) => Promise<void>): Promise<DaySummary> {
  return db.transaction(async (tx) => {
    await tx.query(ISOLATE);
    const [place] = await tx.query<Pick<DaySummary, 'snapshot' | 'journalSeq'>>(READ_PLACE);
    const changes = await readChanges(tx, day);
    type Counted = Omit<DaySummary, 'snapshot' | 'journalSeq' | 'changes'>;
    const [counted] = await tx.query<Counted>(sqlPlannedPerCall('summarize_archive_day', summarySql(day)));
    const client: PoolClient | undefined = await tx.em.queryRunner?.connect();
    if (place === undefined || counted === undefined || client === undefined) {
      throw new OddswireError('no_archive_summary', 'Postgres returned no summary of the day');
    }
    if (counted.rows > 0) await read(client);
    return { ...counted, ...place, changes };
  });
}

async function readChanges(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<bigint[]> {
  const rows = await db.query<{ id: bigint }>(READ_CHANGES, [kind, venue, date]);
  return rows.map(({ id }) => id);
}
