import { CONDITIONS } from '../../domain/alerts/conditions.ts';
import type { HostMeasures } from '../../observe/host-measures.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A heartbeat of an ended process is forgotten after this time. */
const KEPT = `interval '1 day'`;
/** The write needs no flush: a crash of the server loses at most one beat. */
const UNFLUSHED = `SELECT set_config('synchronous_commit', 'off', true)`;

interface ProcessIdentity {
  /** `api`, `poller` and so on. */
  process: string;
  /** The name of the machine or container. */
  host: string;
  pid: number;
  version: string;
}

const BEGIN = sql(
  'begin_heartbeat',
  `WITH forgotten AS (DELETE FROM process_heartbeat WHERE seen_at < clock_timestamp() - ${KEPT})
   INSERT INTO process_heartbeat (process, host, pid, version, proves_journal, conditions) VALUES ($1, $2, $3, $4, true, $5) RETURNING id`,
);

/** Stores the first heartbeat of a process; returns its key. */
export async function beginHeartbeat(db: Queryable, { process, host, pid, version }: ProcessIdentity): Promise<number> {
  const [row] = await db.query<{ id: number }>(BEGIN, [process, host, pid, version, CONDITIONS]);
  if (!row) throw new TypeError('the insert of a heartbeat returned no row');
  return row.id;
}

const BEAT = sql(
  'beat',
  `WITH unflushed AS (${UNFLUSHED})
   UPDATE process_heartbeat SET seen_at = clock_timestamp(), late_share = $2, measured = $3 FROM unflushed WHERE id = $1 RETURNING id`,
);

/** Stores a heartbeat with the part of the last seconds in which the process ran late, 0..1; false when the row is gone. */
export async function beat(
  db: Queryable,
  id: number,
  lateShare: number,
  measured: HostMeasures | null = null,
): Promise<boolean> {
  return (await db.query(BEAT, [id, lateShare, measured === null ? null : JSON.stringify(measured)])).length > 0;
}

const END = sql('end_heartbeat', 'DELETE FROM process_heartbeat WHERE id = $1');

/** Removes the row of a process that stops in an orderly way. */
export async function endHeartbeat(db: Queryable, id: number): Promise<void> {
  await db.query(END, [id]);
}

/** A process by its row, which remains after a crash. */
export interface ProcessHeartbeat extends ProcessIdentity {
  startedAt: Date;
  seenAt: Date;
  /** Milliseconds since the last heartbeat, by the database's clock. */
  silentMs: number;
  /** The part of the ten seconds before the last heartbeat in which the process ran late, 0..1; null when it did not measure it. */
  lateShare: number | null;
  /** Null before the second heartbeat, and for a process of an earlier release. */
  measured: HostMeasures | null;
  /** Whether a process of the same kind began after the last heartbeat of this one. */
  isReplaced: boolean;
}

/** A handful of rows: one per process of the last day. */
const LIST = sql(
  'list_heartbeats',
  `SELECT process, host, pid, version, started_at, seen_at, late_share, measured,
     greatest(0, 1000 * extract(epoch FROM clock_timestamp() - seen_at))::float AS silent_ms,
     EXISTS (SELECT FROM process_heartbeat n WHERE n.process = h.process AND n.started_at > h.seen_at) AS is_replaced
   FROM process_heartbeat h ORDER BY process, started_at`,
);

/** The processes of the last day that did not stop in an orderly way, and the running ones. */
export function listHeartbeats(db: Queryable): Promise<ProcessHeartbeat[]> {
  return db.query(LIST);
}
