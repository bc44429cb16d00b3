import { setTimeout as delay } from 'node:timers/promises';
import { DAY_MS } from '../../domain/values/durations.ts';
import { readSeam } from './archive-seam.ts';
import type { Database, Queryable } from './tx.ts';
import { sql } from './tx.ts';

/** Tables that grow without limit, with the duration of one partition. */
const PARTITIONED = { trade: 'month', price_history: 'month', book_history: 'day', observation: 'day' } as const;
export type PartitionedTable = keyof typeof PARTITIONED;
export const PARTITIONED_TABLES = Object.keys(PARTITIONED) as PartitionedTable[];

/** Runs with the rights of the role that migrates; see migration 0017. */
const CREATE_PARTITION = sql('create_partition', 'SELECT create_partition($1, $2)');
/** Reads catalog rows, because name look-ups may use a cache that lacks another session's commit. */
const PARTITION_EXISTS = sql(
  'partition_exists',
  `SELECT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND c.relname = $2) AS exists`,
);

/**
 * A statement that was planned before a partition was attached does not read it, but its snapshot may be newer: it would show that a page
 * is stored, without the rows of the page. Nothing is known of a server that does not track its statements.
 */
const OLDER_STATEMENTS = sql(
  'statements_before_partition',
  `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.relation = $1::regclass AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND a.state = 'active' AND a.query_start < $2::timestamptz) AS exists`,
);
const NOW = sql('partition_made_at', 'SELECT clock_timestamp()::text AS at');
const LOOK_MS = 10;
/** A statement that has run for so long has been planned. */
const PLANNED_MS = 10_000;

interface Range {
  name: string;
  from: string;
  atMs: number;
}

function rangeOf(table: PartitionedTable, atMs: number): Range {
  const at = new Date(atMs);
  const year = at.getUTCFullYear();
  const month = at.getUTCMonth();
  const isMonthly = PARTITIONED[table] === 'month';
  const from = isMonthly ? Date.UTC(year, month) : Date.UTC(year, month, at.getUTCDate());
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const suffix = day(from)
    .slice(0, isMonthly ? 7 : 10)
    .replaceAll('-', '');
  return { name: `${table}_${suffix}`, from: `${day(from)}T00:00:00Z`, atMs };
}

/** The partition for the rows of a moment, epoch milliseconds. */
export function partitionName(table: PartitionedTable, atMs: number): string {
  return rangeOf(table, atMs).name;
}

/** Creates partitions before writes need them, and remembers existing ones so that frequent writes cost no query. */
export class Partitions {
  readonly #db: Database;
  readonly #known = new Set<string>();
  readonly #plannedMs: number;

  /** `plannedMs` is the longest wait for statements that began before a partition existed. */
  constructor(db: Database, plannedMs = PLANNED_MS) {
    this.#db = db;
    this.#plannedMs = plannedMs;
  }

  /**
   * Ensures partitions for rows of these moments (epoch milliseconds). Must run outside the writing transaction. Trades before the seam of the
   * archive get none: `writeTrades` stores them elsewhere.
   */
  async ensure(table: PartitionedTable, moments: Iterable<number>): Promise<void> {
    const missing = new Map<string, Range>();
    for (const moment of moments) {
      const range = rangeOf(table, moment);
      if (!this.#known.has(range.name)) missing.set(range.name, range);
    }
    for (const range of missing.values()) {
      await this.#create(table, range);
      this.#known.add(range.name);
    }
  }

  /** Ensures partitions for rows with a database timestamp: yesterday to the day after tomorrow covers any clock skew. */
  async ensureAroundNow(table: PartitionedTable): Promise<void> {
    const now = Date.now();
    await this.ensure(table, [now - DAY_MS, now, now + DAY_MS, now + 2 * DAY_MS]);
  }

  /** Clears the known partitions. Call it when a write found no partition, because another process dropped it. */
  forget(): void {
    this.#known.clear();
  }

  async #create(table: PartitionedTable, { name, from, atMs }: Range): Promise<void> {
    const [found] = await this.#db.query<{ exists: boolean }>(PARTITION_EXISTS, [table, name]);
    if (found?.exists) return;
    // The seam is the end of a partition, so no partition is on both sides of it.
    if (table === 'trade' && atMs < ((await readSeam(this.#db, 'trades')) ?? Number.NEGATIVE_INFINITY)) return;
    await this.#db.transaction((tx) => tx.query(CREATE_PARTITION, [table, from]));
    await this.#olderStatementsEnd(table);
  }

  async #olderStatementsEnd(table: PartitionedTable): Promise<void> {
    const [made] = await this.#db.query<{ at: string }>(NOW);
    const endsAtMs = performance.now() + this.#plannedMs;
    while (performance.now() < endsAtMs) {
      const [older] = await this.#db.query<{ exists: boolean }>(OLDER_STATEMENTS, [table, made?.at]);
      if (!older?.exists) return;
      await delay(LOOK_MS);
    }
  }
}

const LIST_PARTITIONS = sql(
  'list_partitions',
  `SELECT name, (bounds[1])::timestamptz AS "from", (bounds[2])::timestamptz AS until
   FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
     LATERAL (SELECT c.oid::regclass::text AS name,
       regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$FROM \\('([^']+)'\\) TO \\('([^']+)'\\)$re$) AS bounds) AS p
   WHERE i.inhparent = $1::regclass AND bounds IS NOT NULL ORDER BY 2`,
);

export interface Partition {
  /** Safe to write into a statement. */
  name: string;
  /** The partition holds rows of `[fromMs, untilMs)`, epoch milliseconds. */
  fromMs: number;
  untilMs: number;
}

/** The partitions of a table, oldest first; the list may omit one that another process is dropping. */
export async function listPartitions(db: Queryable, table: PartitionedTable): Promise<Partition[]> {
  const rows = await db.query<{ name: string; from: Date | null; until: Date | null }>(LIST_PARTITIONS, [table]);
  // Postgres looks up bounds and names row by row, so those of a concurrently dropped partition may be missing.
  return rows.flatMap(({ name, from, until }) =>
    from === null || until === null || /^\d+$/.test(name)
      ? []
      : [{ name, fromMs: from.getTime(), untilMs: until.getTime() }],
  );
}

/** The start of the partition for rows of this moment, epoch milliseconds. */
export function partitionStartMs(table: PartitionedTable, atMs: number): number {
  return Date.parse(rangeOf(table, atMs).from);
}
