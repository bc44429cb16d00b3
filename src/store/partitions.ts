import type { Database } from './tx.ts';
import { sql } from './tx.ts';

/** Tables that grow for ever, and how long one partition lasts. */
const PARTITIONED = { trade: 'month', price_history: 'month', observation: 'day' } as const;
export type PartitionedTable = keyof typeof PARTITIONED;

const DAY_MS = 86_400_000;

/** Creating a partition takes a lock on the parent: one process at a time, and none when it exists ("part" in ASCII). */
const PARTITION_LOCK = 0x70_61_72_74;
const LOCK_PARTITIONS = sql('lock_partitions', `SELECT pg_advisory_xact_lock(${PARTITION_LOCK})`);
const PARTITION_EXISTS = sql('partition_exists', `SELECT to_regclass($1) IS NOT NULL AS exists`);

interface Range {
  name: string;
  from: string;
  to: string;
}

function rangeOf(table: PartitionedTable, atMs: number): Range {
  const at = new Date(atMs);
  const year = at.getUTCFullYear();
  const month = at.getUTCMonth();
  const isMonthly = PARTITIONED[table] === 'month';
  const from = isMonthly ? Date.UTC(year, month) : Date.UTC(year, month, at.getUTCDate());
  const to = isMonthly ? Date.UTC(year, month + 1) : from + DAY_MS;
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const suffix = day(from)
    .slice(0, isMonthly ? 7 : 10)
    .replaceAll('-', '');
  return { name: `${table}_${suffix}`, from: `${day(from)}T00:00:00Z`, to: `${day(to)}T00:00:00Z` };
}

/** Makes partitions before they are written to; remembers which exist so that a hot path asks nothing. */
export class Partitions {
  readonly #db: Database;
  readonly #known = new Set<string>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Ensures that rows of these moments (epoch milliseconds) find their partition. Must run outside the writing transaction. */
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

  /** Ensures the table for rows stamped by the database's clock: yesterday to the day after tomorrow covers any skew. */
  async ensureAroundNow(table: PartitionedTable): Promise<void> {
    const now = Date.now();
    await this.ensure(table, [now - DAY_MS, now, now + DAY_MS, now + 2 * DAY_MS]);
  }

  /** Forgets which partitions exist: after a write found none, because somebody dropped it. */
  forget(): void {
    this.#known.clear();
  }

  async #create(table: PartitionedTable, range: Range): Promise<void> {
    await this.#db.transaction(async (tx) => {
      const [before] = await tx.query<{ exists: boolean }>(PARTITION_EXISTS, [range.name]);
      if (before?.exists) return;
      await tx.query(LOCK_PARTITIONS);
      await tx.em.query(
        `CREATE TABLE IF NOT EXISTS ${range.name} PARTITION OF ${table} FOR VALUES FROM ('${range.from}') TO ('${range.to}')`,
      );
    });
  }
}

const LIST_PARTITIONS = sql(
  'list_partitions',
  `SELECT c.relname AS name, substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$TO \\('([^']+)'\\)$re$)::timestamptz AS until
   FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass`,
);

/** Drops whole partitions that ended before `beforeMs`; returns their names. */
export async function dropPartitionsBefore(db: Database, table: PartitionedTable, beforeMs: number): Promise<string[]> {
  // A partition that another process drops meanwhile has no bound any more.
  const partitions = await db.query<{ name: string; until: Date | null }>(LIST_PARTITIONS, [table]);
  const old = partitions.filter(({ until }) => until !== null && until.getTime() <= beforeMs).map(({ name }) => name);
  for (const name of old) {
    await db.transaction(async (tx) => {
      await tx.query(LOCK_PARTITIONS);
      await tx.em.query(`DROP TABLE IF EXISTS ${name}`);
    });
  }
  return old;
}
