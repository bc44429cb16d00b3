import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { ArchiveDay } from '../../domain/archive/file.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { type Database, type Queryable, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { NEWEST_HEAD } from '../journal/read-journal.ts';
import { copyCorrectionsSql, copySql, summarySql } from './rows.ts';

/** What Postgres has of a day, at one snapshot. */
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
    await copyOut(client, copySql(day), target(), signal);
  });
}

async function copyOut(client: PoolClient, text: string, target: Writable, signal: AbortSignal): Promise<void> {
  try {
    await pipeline(client.query(copyTo(text)), target, { signal });
  } catch (error) {
    // The rest of the answer has no reader: Postgres and the roll-back behind it would wait without end.
    connectionOf(client).stream.destroy();
    throw error;
  }
}

/**
 * Writes the trades that the file of a day may lack to `target` as CSV: the columns of the file and the digest of each row. Returns the
 * snapshot that has them, with its noted changes. Ends `target`.
 */
export function copyCorrections(
  db: Database,
  day: ArchiveDay,
  target: () => Writable,
  signal: AbortSignal,
): Promise<Pick<DaySummary, 'snapshot' | 'journalSeq' | 'changes'>> {
  return db.transaction(async (tx) => {
    const place = await beginSnapshot(tx, day);
    await copyOut(await clientOf(tx), copyCorrectionsSql(day), target(), signal);
    return place;
  });
}

const DELETE_CORRECTIONS = sql(
  'delete_archive_corrections',
  `DELETE FROM archive_correction c USING outcome o, market m
   WHERE c.ts >= $2::date::timestamp AT TIME ZONE 'UTC' AND c.ts < ($2::date + 1)::timestamp AT TIME ZONE 'UTC'
     AND o.token_id = c.token_id AND m.id = o.market_id AND m.venue = $1 AND pg_visible_in_snapshot(c.xid, $3::pg_snapshot)`,
);

/** Removes the corrections of a day that a snapshot had. */
export async function deleteCorrections(tx: Queryable, { venue, date }: ArchiveDay, snapshot: string): Promise<void> {
  await tx.query(DELETE_CORRECTIONS, [venue, date, snapshot]);
}

/** The driver has no call that ends a connection in the middle of an answer. */
function connectionOf(client: PoolClient): { stream: Socket } {
  return (client as unknown as { connection: { stream: Socket } }).connection;
}

function readSnapshot(db: Database, day: ArchiveDay, read: (client: PoolClient) => Promise<void>): Promise<DaySummary> {
  return db.transaction(async (tx) => {
    const place = await beginSnapshot(tx, day);
    type Counted = Omit<DaySummary, 'snapshot' | 'journalSeq' | 'changes'>;
    const [counted] = await tx.query<Counted>(sqlPlannedPerCall('summarize_archive_day', summarySql(day)));
    if (counted === undefined) throw new OddswireError('no_archive_summary', 'Postgres returned no summary of the day');
    if (counted.rows > 0) await read(await clientOf(tx));
    return { ...counted, ...place };
  });
}

/** The first statements of a transaction, whose later ones read the same snapshot. */
async function beginSnapshot(
  tx: Tx,
  day: ArchiveDay,
): Promise<Pick<DaySummary, 'snapshot' | 'journalSeq' | 'changes'>> {
  await tx.query(ISOLATE);
  const [place] = await tx.query<Pick<DaySummary, 'snapshot' | 'journalSeq'>>(READ_PLACE);
  if (place === undefined) throw new OddswireError('no_archive_summary', 'Postgres returned no snapshot');
  return { ...place, changes: await readChanges(tx, day) };
}

async function clientOf(tx: Tx): Promise<PoolClient> {
  const client: PoolClient | undefined = await tx.em.queryRunner?.connect();
  if (client === undefined) throw new OddswireError('no_archive_summary', 'the transaction has no connection');
  return client;
}

async function readChanges(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<bigint[]> {
  const rows = await db.query<{ id: bigint }>(READ_CHANGES, [kind, venue, date]);
  return rows.map(({ id }) => id);
}
