import { type Queryable, sql } from '../db/tx.ts';
import { stageStates } from '../marks/backlog.ts';
import { STAGES } from '../marks/detail.ts';

/*
 * Queries of the operator overview. The page refreshes every few seconds, so each statement costs some index probes, regardless of the
 * amount of data. Throughput comes from the row counters that Postgres keeps per table anyway.
 */

/** The limit of each count. */
export const MAX_COUNTED_DUE = 10_000;
/** The limit of the counts of a sample. */
export const MAX_COUNTED_BACKLOG = 100_000;
/** Minutes on the overview. */
export const THROUGHPUT_MINUTES = 60;
/** Samples further apart than this give no rate for single minutes. */
const MAX_GAP_MINUTES = 3;

const SAMPLE = sql(
  'sample_ops_throughput',
  `INSERT INTO ops_throughput (minute, at, trades, price_changes, events, attempts, last_mark_id, marks_waiting, deliveries_due)
   SELECT date_trunc('minute', clock_timestamp()), clock_timestamp(),
     coalesce(sum(s.n_tup_ins) FILTER (WHERE t.name = 'trade'), 0),
     coalesce(sum(s.n_tup_ins) FILTER (WHERE t.name = 'price_history'), 0),
     coalesce(sum(s.n_tup_ins) FILTER (WHERE t.name = 'event'), 0),
     coalesce(sum(s.n_tup_ins) FILTER (WHERE t.name = 'delivery_attempt'), 0),
     (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM mark_id_seq),
     (SELECT count(*) FROM (SELECT FROM mark LIMIT ${MAX_COUNTED_BACKLOG}) m),
     (SELECT count(*) FROM (
        SELECT FROM delivery WHERE status = 'pending' AND next_attempt_at <= clock_timestamp() LIMIT ${MAX_COUNTED_BACKLOG}) d)
   FROM pg_stat_user_tables s
   LEFT JOIN pg_inherits i ON i.inhrelid = s.relid
   LEFT JOIN pg_class p ON p.oid = i.inhparent
   CROSS JOIN LATERAL (SELECT coalesce(p.relname, s.relname)::text AS name) t
   WHERE s.schemaname = current_schema()
     AND NOT EXISTS (SELECT FROM ops_throughput o WHERE o.minute = date_trunc('minute', clock_timestamp()))
   ON CONFLICT (minute) DO NOTHING RETURNING minute`,
);
const PRUNE = sql(
  'prune_ops_throughput',
  `DELETE FROM ops_throughput WHERE minute < clock_timestamp() - interval '1 day'`,
);

/** Samples the row counters once a minute, in the first process that asks. Returns whether this call did it. */
export async function sampleThroughput(db: Queryable): Promise<boolean> {
  const isFirst = (await db.query(SAMPLE)).length > 0;
  if (isFirst) await db.query(PRUNE);
  return isFirst;
}

const THROUGHPUT_KINDS = ['trades', 'priceChanges', 'events', 'attempts'] as const;
export type ThroughputKind = (typeof THROUGHPUT_KINDS)[number];

/** Rows per minute of each of the last 60 minutes, oldest first; null when unknown. */
export type Throughput = Readonly<Record<ThroughputKind, readonly (number | null)[]>>;

const READ_SAMPLES = sql(
  'read_ops_throughput',
  `SELECT (extract(epoch FROM date_trunc('minute', clock_timestamp()) - minute) / 60)::int AS age,
     extract(epoch FROM at)::float AS at, trades::float, price_changes::float, events::float, attempts::float
   FROM ops_throughput WHERE minute >= clock_timestamp() - interval '${THROUGHPUT_MINUTES + MAX_GAP_MINUTES} minutes'
   ORDER BY minute`,
);

interface SampleRow extends Record<ThroughputKind, number> {
  /** Whole minutes before this one. */
  age: number;
  /** Epoch seconds. */
  at: number;
}

/** The rates of the last hour by minute, from the differences between samples, up to the latest sample. */
export async function readThroughput(db: Queryable): Promise<Throughput> {
  const rows = await db.query<SampleRow>(READ_SAMPLES);
  const throughput = Object.fromEntries(
    THROUGHPUT_KINDS.map((kind) => [kind, Array.from({ length: THROUGHPUT_MINUTES }, (): number | null => null)]),
  ) as Record<ThroughputKind, (number | null)[]>;
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (!before || before.age - row.age > MAX_GAP_MINUTES) continue;
    const minutes = (row.at - before.at) / 60;
    for (const kind of THROUGHPUT_KINDS) {
      const gained = row[kind] - before[kind];
      // The counts began anew, after a crash, or went down with a partition that was dropped.
      if (gained < 0 || minutes <= 0) continue;
      // A difference spreads evenly over the minutes between its two samples.
      for (let age = row.age + 1; age <= before.age; age++) {
        if (age <= THROUGHPUT_MINUTES) throughput[kind][THROUGHPUT_MINUTES - age] = gained / minutes;
      }
    }
  }
  return throughput;
}

export interface StageBacklog {
  stage: string;
  /** Counted up to MAX_COUNTED of backlog.ts. */
  waiting: number;
  deadLetters: number;
  /** The time of the oldest dead letter; null without one. */
  deadSince: Date | null;
  /**
   * The minimum age of the oldest mark, milliseconds, to the two minutes between samples; null without a mark. Unknown for a mark that is
   * newer than the last sample while no new sample comes.
   */
  oldestMs: number | 'unknown' | null;
}

/** Two intervals of the samples: a mark that is newer than a sample of this age may wait for as long. */
const SAMPLED_WITHIN_SECONDS = 120;

/**
 * Keys are assigned in time order, so a mark is as old as the first sample whose last key is not below its own. Without such a sample it is
 * newer than the last one, whose age says nothing when the samples stopped: null.
 */
const MARK_SEEN = sql(
  'ops_marks_seen',
  `SELECT o.id, coalesce(
     extract(epoch FROM clock_timestamp() - (SELECT min(t.at) FROM ops_throughput t WHERE t.last_mark_id >= o.id)),
     CASE WHEN (SELECT max(t.at) FROM ops_throughput t) > clock_timestamp() - interval '${SAMPLED_WITHIN_SECONDS} seconds'
       THEN 0 END)::float AS seconds
   FROM unnest($1::bigint[]) AS o (id)`,
);

const DEAD_SINCE = sql('ops_dead_since', 'SELECT stage, min(parked_at) AS since FROM parked_mark GROUP BY stage');

/** The backlog of each stage with its age. */
export async function readStageBacklogs(db: Queryable): Promise<StageBacklog[]> {
  const states = await stageStates(db, STAGES);
  const ids = states.flatMap(({ oldestId }) => (oldestId === null ? [] : [oldestId]));
  const seen = ids.length === 0 ? [] : await db.query<{ id: bigint; seconds: number | null }>(MARK_SEEN, [ids]);
  const hasDead = states.some(({ deadLetters }) => deadLetters > 0);
  const dead = hasDead ? await db.query<{ stage: string; since: Date }>(DEAD_SINCE) : [];
  const deadSinceOf = new Map(dead.map(({ stage, since }) => [stage, since]));
  const ageOf = new Map(seen.map(({ id, seconds }) => [id, seconds === null ? 'unknown' : seconds * 1000] as const));
  return states.map(({ stage, waiting, deadLetters, oldestId }) => ({
    stage,
    waiting,
    deadLetters,
    deadSince: deadSinceOf.get(stage) ?? null,
    oldestMs: oldestId === null ? null : (ageOf.get(oldestId) ?? 'unknown'),
  }));
}

const DELIVERY_LOAD = sql(
  'ops_delivery_load',
  `SELECT count(*)::int AS due, (count(*) FILTER (WHERE locked_until > clock_timestamp()))::int AS in_flight,
     1000 * extract(epoch FROM clock_timestamp() - min(next_attempt_at) FILTER (
       WHERE locked_until IS NULL OR locked_until <= clock_timestamp()))::float AS oldest_overdue_ms
   FROM (SELECT next_attempt_at, locked_until FROM delivery
         WHERE status = 'pending' AND next_attempt_at <= clock_timestamp()
         ORDER BY next_attempt_at LIMIT ${MAX_COUNTED_DUE + 1}) d`,
);

export interface DeliveryLoad {
  /** Attempts that are due or in flight; MAX_COUNTED_DUE + 1 means more. */
  due: number;
  /** The part of them that a deliverer holds. */
  inFlight: number;
  /** How long the longest waiting unclaimed attempt has been due, milliseconds; null without one. */
  oldestOverdueMs: number | null;
}

/** The load of the deliverer. */
export async function readDeliveryLoad(db: Queryable): Promise<DeliveryLoad> {
  const [load] = await db.query<DeliveryLoad>(DELIVERY_LOAD);
  return load ?? { due: 0, inFlight: 0, oldestOverdueMs: null };
}

/** The number of deliveries searched for the reason of a failing endpoint. */
const LOOKED_THROUGH = 50;

const FAILING = sql(
  'ops_failing_endpoints',
  `SELECT w.id, w.url, w.status, w.failing_since, w.exhausted_count AS exhausted, a.name AS account,
     l.last_error, l.last_status_code
   FROM (SELECT * FROM webhook_subscription WHERE failing_since IS NOT NULL AND deleted_at IS NULL AND ($2::bigint IS NULL OR account_id = $2)
         ORDER BY failing_since LIMIT $1) w
   JOIN account a ON a.id = w.account_id
   LEFT JOIN LATERAL (
     SELECT d.last_error, d.last_status_code FROM (
       SELECT pk, last_error, last_status_code FROM delivery WHERE subscription_pk = w.pk ORDER BY pk DESC
       LIMIT ${LOOKED_THROUGH}) d
     WHERE d.last_error IS NOT NULL ORDER BY d.pk DESC LIMIT 1) l ON true
   ORDER BY w.failing_since, w.pk`,
);

export interface FailingEndpoint {
  id: string;
  url: string;
  account: string;
  status: 'active' | 'paused';
  failingSince: Date;
  /** Deliveries that exhausted their schedule since then. */
  exhausted: number;
  lastError: string | null;
  lastStatusCode: number | null;
}

/** Endpoints of all accounts, or of one, without a success since their first failure, longest failure first. */
export function listFailingEndpoints(db: Queryable, limit: number, accountId?: bigint): Promise<FailingEndpoint[]> {
  return db.query(FAILING, [limit, accountId ?? null]);
}

const COUNT_FAILING = sql(
  'ops_count_failing',
  `SELECT count(*)::int AS failing FROM webhook_subscription
   WHERE failing_since IS NOT NULL AND deleted_at IS NULL AND status = 'active' AND ($1::bigint IS NULL OR account_id = $1)`,
);

/** The number of active endpoints of all accounts, or of one, without a success since their first failure. */
export async function countFailingEndpoints(db: Queryable, accountId?: bigint): Promise<number> {
  const [row] = await db.query<{ failing: number }>(COUNT_FAILING, [accountId ?? null]);
  return row?.failing ?? 0;
}

/** The backlog of a minute, counted up to MAX_COUNTED_BACKLOG. */
export interface BacklogSample {
  at: Date;
  /** Marks of all stages. */
  marks: number;
  /** Deliveries that are due or in flight. */
  deliveries: number;
}

const READ_BACKLOG = sql(
  'read_ops_backlog',
  `SELECT at, marks_waiting AS marks, deliveries_due AS deliveries FROM ops_throughput
   WHERE minute >= clock_timestamp() - interval '30 minutes' AND marks_waiting IS NOT NULL ORDER BY minute`,
);

/** The backlog of the last half hour, oldest first, a sample per minute. */
export function readBacklogSamples(db: Queryable): Promise<BacklogSample[]> {
  return db.query(READ_BACKLOG);
}
