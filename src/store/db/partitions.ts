import { setTimeout as delay } from 'node:timers/promises';
import type { ArchiveKind } from '../../domain/archive/kinds.ts';
import { DAY_MS } from '../../domain/values/durations.ts';
import { type Database, type Queryable, sql } from './tx.ts';

/** SQL of the moment before which the rows of a kind are in files alone; `-infinity` without one. See migration 0055. */
export function seamOf(kind: ArchiveKind): string {
  return `coalesce((SELECT s.until FROM archive_seam s WHERE s.kind = '${kind}'), '-infinity')`;
}

const READ = sql('read_archive_seam', 'SELECT until FROM archive_seam WHERE kind = $1');

/** The moment before which the rows of a kind are in files alone, epoch milliseconds; undefined without one. */
export async function readSeam(db: Queryable, kind: ArchiveKind): Promise<number | undefined> {
  const [row] = await db.query<{ until: Date }>(READ, [kind]);
  return row?.until.getTime();
}

const MOVE = sql(
  'move_archive_seam',
  `INSERT INTO archive_seam AS s (kind, until) VALUES ($1, to_timestamp($2::float8 / 1000))
   ON CONFLICT (kind) DO UPDATE SET until = greatest(s.until, excluded.until)`,
);

/** Moves the seam, in the transaction that drops the rows before it. */
export async function moveSeam(tx: Queryable, kind: ArchiveKind, untilMs: number): Promise<void> {
  await tx.query(MOVE, [kind, untilMs]);
}

const MOVE_CANDLES = sql(
  'move_candle_seam',
  `UPDATE archive_seam s SET until = n.until
   FROM (SELECT least(t.until, date_trunc('day', to_timestamp($1::float8 / 1000), 'UTC')) AS until FROM archive_seam t WHERE t.kind = 'trades') n
   WHERE s.kind = 'candles' AND n.until > s.until AND s.moves_at <= clock_timestamp()`,
);

/**
 * Moves the seam of candles to the start of a UTC day, at most to the seam of trades: then only `archive-day` folds the minutes before it.
 * Postgres drops these candles later, one by one, each of them when the file of its day has the same values.
 */
export async function moveCandleSeam(db: Queryable, untilMs: number): Promise<void> {
  await db.query(MOVE_CANDLES, [untilMs]);
}

const HOLD = sql('hold_archive_seam', 'SELECT until FROM archive_seam WHERE kind = $1 FOR SHARE');

/** The seam of a kind, epoch milliseconds; 0 without one. A seam stays until the transaction ends. */
export async function holdSeam(tx: Queryable, kind: ArchiveKind): Promise<number> {
  const [row] = await tx.query<{ until: Date }>(HOLD, [kind]);
  return row?.until.getTime() ?? 0;
}

/** Epoch seconds of the seam of candles as SQL, when candles of this length, as SQL, are before it in files; 0 otherwise. */
export const candleSeam = (seconds: string) =>
  `CASE WHEN ${seconds} < 900 THEN (SELECT extract(epoch FROM s.until)::bigint FROM archive_seam s WHERE s.kind = 'candles') ELSE 0 END`;

/**
 * Tables that grow without limit, with the shortest duration of one partition. A month of `trade` has one partition, or one for each of its
 * weeks, which begin on the days 1, 8, 15, 22 and 29: `create_partition` decides; see migration 0057.
 */
const PARTITIONED = { trade: 'week', price_history: 'month', book_history: 'day', observation: 'day' } as const;
export type PartitionedTable = keyof typeof PARTITIONED;
export const PARTITIONED_TABLES = Object.keys(PARTITIONED) as PartitionedTable[];

/** Runs with the rights of the role that migrates; see migrations 0017 and 0057. */
const CREATE_PARTITION = sql('create_partition', 'SELECT create_partition($1, $2)');
/**
 * SQL of the partitions of a table: (name, bounds). Reads catalog rows, because name look-ups may use a cache that lacks another session's
 * commit.
 */
const partitionsSql = (table: string) => `pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
     LATERAL (SELECT c.oid::regclass::text AS name,
       regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$FROM \\('([^']+)'\\) TO \\('([^']+)'\\)$re$) AS bounds) AS p
   WHERE i.inhparent = ${table}::regclass AND bounds IS NOT NULL`;

/** SQL of the condition that a table has a partition for the rows of a moment. */
export const hasPartitionSql = (table: string, moment: string) =>
  `EXISTS (SELECT FROM ${partitionsSql(table)} AND bounds[1]::timestamptz <= ${moment} AND bounds[2]::timestamptz > ${moment})`;

const PARTITION_EXISTS = sql('partition_exists', `SELECT ${hasPartitionSql('$1', '$2::timestamptz')} AS exists`);

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

const WEEK_DAYS = 7;

/** The start of the shortest partition for rows of this moment. Times are epoch milliseconds. */
function startOf(table: PartitionedTable, atMs: number): number {
  const at = new Date(atMs);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  if (PARTITIONED[table] === 'month') return Date.UTC(year, month);
  if (PARTITIONED[table] === 'week') return Date.UTC(year, month, day - ((day - 1) % WEEK_DAYS));
  return Date.UTC(year, month, day);
}

/** Creates partitions before writes need them, and remembers existing ones so that frequent writes cost no query. */
export class Partitions {
  readonly #db: Database;
  /** Tables with the starts of partitions. */
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
    for (const startMs of new Set([...moments].map((moment) => startOf(table, moment)))) {
      const key = `${table} ${startMs}`;
      if (this.#known.has(key)) continue;
      await this.#create(table, startMs);
      this.#known.add(key);
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

  async #create(table: PartitionedTable, startMs: number): Promise<void> {
    const start = new Date(startMs).toISOString();
    const [found] = await this.#db.query<{ exists: boolean }>(PARTITION_EXISTS, [table, start]);
    if (found?.exists) return;
    // The seam is the end of a partition, so no partition is on both sides of it.
    if (table === 'trade' && startMs < ((await readSeam(this.#db, 'trades')) ?? Number.NEGATIVE_INFINITY)) return;
    await this.#db.transaction((tx) => tx.query(CREATE_PARTITION, [table, start]));
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
  `SELECT name, (bounds[1])::timestamptz AS "from", (bounds[2])::timestamptz AS until FROM ${partitionsSql('$1')} ORDER BY 2`,
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

/** The start of the partition for rows of a history at this moment, epoch milliseconds. */
export function partitionStartMs(table: Exclude<PartitionedTable, 'trade'>, atMs: number): number {
  return startOf(table, atMs);
}
