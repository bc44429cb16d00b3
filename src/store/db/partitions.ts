import { DAY_MS } from '../../domain/values/durations.ts';
import type { Database, Queryable } from './tx.ts';
import { sql } from './tx.ts';

/** Tables that grow for ever, and how long one partition lasts. */
const PARTITIONED = { trade: 'month', price_history: 'month', book_history: 'day', observation: 'day' } as const;
export type PartitionedTable = keyof typeof PARTITIONED;
export const PARTITIONED_TABLES = Object.keys(PARTITIONED) as PartitionedTable[];

/** One process at a time makes partitions ("part" in ASCII). */
const PARTITION_LOCK = 0x70_61_72_74;
const LOCK_PARTITIONS = sql('lock_partitions', `SELECT pg_advisory_xact_lock(${PARTITION_LOCK})`);
/** Read from the catalog's rows: name look-ups may answer from a cache that has not heard of another's commit yet. */
const PARTITION_EXISTS = sql(
  'partition_exists',
  `SELECT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND c.relname = $2) AS exists`,
);

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

/** The partition that holds the rows of a moment, epoch milliseconds. */
export function partitionName(table: PartitionedTable, atMs: number): string {
  return rangeOf(table, atMs).name;
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

  /** Made apart and then attached: unlike `PARTITION OF`, that neither waits for readers and writers nor holds them up. */
  async #create(table: PartitionedTable, { name, from, to }: Range): Promise<void> {
    const [found] = await this.#db.query<{ exists: boolean }>(PARTITION_EXISTS, [table, name]);
    if (found?.exists) return;
    await this.#db.transaction(async (tx) => {
      await tx.query(LOCK_PARTITIONS);
      const [meanwhile] = await tx.query<{ exists: boolean }>(PARTITION_EXISTS, [table, name]);
      if (meanwhile?.exists) return;
      await tx.em.query(`CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
      await tx.em.query(`ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`);
    });
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
  /** As it can be written into a statement. */
  name: string;
  /** Rows of `[fromMs, untilMs)`, epoch milliseconds. */
  fromMs: number;
  untilMs: number;
}

/** The partitions a table has, oldest first; one that another process is dropping may be missing. */
export async function listPartitions(db: Queryable, table: PartitionedTable): Promise<Partition[]> {
  const rows = await db.query<{ name: string; from: Date | null; until: Date | null }>(LIST_PARTITIONS, [table]);
  // Bounds and names are looked up as each is printed: of a partition that is dropped meanwhile they may be gone.
  return rows.flatMap(({ name, from, until }) =>
    from === null || until === null || /^\d+$/.test(name)
      ? []
      : [{ name, fromMs: from.getTime(), untilMs: until.getTime() }],
  );
}

/** Where the partition begins that a row of this moment lies in, epoch milliseconds. */
export function partitionStartMs(table: PartitionedTable, atMs: number): number {
  return Date.parse(rangeOf(table, atMs).from);
}
