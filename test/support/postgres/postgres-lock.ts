import { type Queryable, sql } from '../../../src/store/db/tx.ts';
import { eventually } from '../eventually.ts';

const WAITERS = sql(
  'test_waiters',
  `SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

const BLOCKED = sql(
  'test_blocked',
  `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
);

const EVERY_MS = 5;

/** Resolves when `count` backends of this database wait for an advisory lock: the test has reached its interleaving. */
export async function advisoryWaiters(db: Queryable, count: number): Promise<void> {
  await eventually(
    () => db.query<{ waiting: number }>(WAITERS),
    ([row]) => (row?.waiting ?? 0) >= count,
    { everyMs: EVERY_MS },
  );
}

/** The backends of this database that wait for a lock of any kind. */
export async function blockedSessions(db: Queryable): Promise<number> {
  const [row] = await db.query<{ waiting: number }>(BLOCKED);
  return row?.waiting ?? 0;
}

/** Resolves when `count` backends of this database wait for a lock: the test has reached its interleaving. */
export async function untilBlocked(db: Queryable, count = 1): Promise<void> {
  await eventually(
    () => blockedSessions(db),
    (blocked) => blocked >= count,
    { everyMs: EVERY_MS },
  );
}

const LANE_HELD = sql(
  'test_is_lane_held',
  `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND classid = ${0x6f_64_6c}
     AND objid = ((hashtext($1) # $2)::bigint & 4294967295)::oid
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS is_held`,
);

/** Whether a session holds the lane. A signal would show it too, but takes its lock for a moment, and keeps a job from taking it then. */
export async function isLaneHeld(db: Queryable, { job, lane }: { job: string; lane: number }): Promise<boolean> {
  const [row] = await db.query<{ isHeld: boolean }>(LANE_HELD, [job, lane]);
  return row?.isHeld ?? false;
}
