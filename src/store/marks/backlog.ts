import { SHARDS } from '../../domain/values/shard.ts';
import { hasPartitionSql, PARTITIONED_TABLES, type PartitionedTable } from '../db/partitions.ts';
import { type Queryable, sql } from '../db/tx.ts';

/*
 * Backlog and health figures for metrics. Each scrape reads them, so each statement costs a few index probes, regardless of the amount
 * of data.
 */

/** The limit of each count. */
const MAX_COUNTED = 100_000;

const STAGE_BACKLOG = sql(
  'stage_backlog',
  `SELECT s.stage,
     (SELECT count(*)::int FROM (SELECT FROM mark m WHERE m.stage = s.stage LIMIT ${MAX_COUNTED}) counted) AS waiting,
     (SELECT count(*)::int FROM parked_mark p WHERE p.stage = s.stage) AS dead_letters,
     (SELECT min(o.id) FROM generate_series(0, ${SHARDS - 1}) shard
      CROSS JOIN LATERAL (SELECT id FROM mark m WHERE m.stage = s.stage AND m.shard = shard ORDER BY id LIMIT 1) o) AS oldest_id,
     (SELECT last_value FROM mark_id_seq) AS newest_id
   FROM unnest($1::text[]) AS s (stage)`,
);

interface StageState {
  stage: string;
  /** At most MAX_COUNTED. */
  waiting: number;
  deadLetters: number;
  /** The key of the oldest mark; null without marks. Keys are assigned in time order. */
  oldestId: bigint | null;
  /** The last key assigned to any mark. */
  newestId: bigint;
}

/** The backlog of these stages. */
export function stageStates(db: Queryable, stages: readonly string[]): Promise<StageState[]> {
  return db.query(STAGE_BACKLOG, [stages]);
}

const DUE_DELIVERIES = sql(
  'count_due_deliveries',
  `SELECT count(*)::int AS due FROM (
     SELECT FROM delivery WHERE status = 'pending' AND next_attempt_at <= clock_timestamp() LIMIT ${MAX_COUNTED}) counted`,
);

/** Deliveries whose attempt is due or in flight, at most MAX_COUNTED. */
export async function countDueDeliveries(db: Queryable): Promise<number> {
  const [row] = await db.query<{ due: number }>(DUE_DELIVERIES);
  return row?.due ?? 0;
}

const POLL_AGES = sql(
  'poll_ages',
  `SELECT venue, kind, consecutive_failures AS failures_in_a_row,
     extract(epoch FROM clock_timestamp() - greatest(last_success_at, idle_at))::float AS since_success_seconds
   FROM poll_state WHERE venue = ANY ($1::text[])`,
);

interface PollAge {
  venue: string;
  kind: string;
  failuresInARow: number;
  /** Seconds since a page was last stored or there was nothing to request; null before the first. */
  sinceSuccessSeconds: number | null;
}

/** How the polls of these venues fare, by the database's clock. */
export function pollAges(db: Queryable, venues: readonly string[]): Promise<PollAge[]> {
  return db.query(POLL_AGES, [venues]);
}

/** The claim of the last poll that the venue answered: a claim alone says nothing about a host that refuses. */
const LAST_ANSWER = `coalesce(greatest((d.balance_position->>'readAt')::timestamptz, (d.balance_position->>'answeredAt')::timestamptz),
  d.created_at)`;

const WALLET_AGES = sql(
  'wallet_ages',
  `SELECT d.venue, extract(epoch FROM clock_timestamp() - min(${LAST_ANSWER}))::float AS seconds FROM watched_wallet d
   WHERE d.venue = ANY ($1::text[]) AND d.failures = 0 AND EXISTS (
     SELECT FROM wallet a WHERE a.watched_pk = d.pk AND a.deleted_at IS NULL)
   GROUP BY d.venue`,
);

/**
 * Seconds since the venue last answered for the longest waiting wallet, or since its start before the first answer, for venues with readable
 * wallets.
 */
export async function walletAges(db: Queryable, venues: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.query<{ venue: string; seconds: number }>(WALLET_AGES, [venues]);
  return new Map(rows.map(({ venue, seconds }) => [venue, seconds]));
}

const STORAGE = sql(
  'storage_state',
  `SELECT pg_database_size(current_database())::float AS bytes,
     ARRAY(SELECT t.name FROM unnest($1::text[]) AS t (name) WHERE ${hasPartitionSql('t.name', '$2::timestamptz')}) AS found`,
);

interface StorageState {
  bytes: number;
  /** Whether the partition of each table for the given moment exists. */
  isReady: Map<PartitionedTable, boolean>;
}

/** The size of the database, and whether writes of a moment (epoch milliseconds) will find their partitions. */
export async function storageState(db: Queryable, atMs: number): Promise<StorageState> {
  const at = new Date(atMs).toISOString();
  const [row] = await db.query<{ bytes: number; found: string[] }>(STORAGE, [PARTITIONED_TABLES, at]);
  const found = new Set(row?.found);
  return {
    bytes: row?.bytes ?? 0,
    isReady: new Map(PARTITIONED_TABLES.map((table) => [table, found.has(table)])),
  };
}
