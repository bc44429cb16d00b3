import { setTimeout as delay } from 'node:timers/promises';
import {
  listPartitions,
  type Partition,
  type PartitionedTable,
  type Partitions,
  partitionStartMs,
} from '../db/partitions.ts';
import { type Database, type Queryable, sql, sqlState, type Tx } from '../db/tx.ts';
import { insertPublishSql } from '../marks/publish-marks.ts';

/** Point-in-time reads need the last row before their moment, of any age: these columns of it outlive a dropped partition. */
const CARRIED = {
  price_history: 'as_of, price, bid, ask',
  book_history: 'as_of, bids, asks',
} as const;
const isCarried = (table: PartitionedTable): table is keyof typeof CARRIED => table in CARRIED;

/** Lets one process at a time retire partitions ("reti" in ASCII). */
const RETIRE_LOCK = 0x72_65_74_69;
const TRY_LOCK = sql('try_lock_retirement', `SELECT pg_try_advisory_xact_lock(${RETIRE_LOCK}) AS is_ours`);
const LOCK_NOT_AVAILABLE = '55P03';
/** Runs with the rights of the role that migrates; see migration 0017. */
const DROP_PARTITION = sql('drop_partition', 'SELECT drop_partition($1, $2)');

/**
 * Dropping a partition takes an exclusive lock on its table, and a pending request for that lock blocks all later ones. So the request
 * waits only this long, gives up, and a later attempt follows.
 */
const LOCK_TIMEOUT_MS = 200;
const PAUSE_MS = 500;
const TRIES = 5;

/** The files that keep the rows of a dropped partition. */
interface PartitionArchive {
  /** Whether the files have all rows of a partition. False keeps it, and all later ones. */
  has(db: Queryable, partition: Partition): Promise<boolean>;
  /** Whether no row was written since. It is asked while no process writes into the partition, and costs little. */
  isUnchanged(tx: Tx, partition: Partition): Promise<boolean>;
  /** Reads of times before this moment use the files, from the commit of this transaction on. */
  moveSeam(tx: Queryable, untilMs: number): Promise<void>;
}

interface RetireOptions {
  db: Database;
  partitions: Partitions;
  table: PartitionedTable;
  /** Drops partitions that ended by then, epoch milliseconds. */
  beforeMs: number;
  /** Absent: partitions are dropped with their rows. */
  archive?: PartitionArchive;
  /** Drops no further partition after its abort. */
  signal?: AbortSignal;
  lockTimeoutMs?: number;
  pauseMs?: number;
  tries?: number;
}

interface Retired {
  dropped: string[];
  /** The number of last rows that were carried into a younger partition. */
  carried: number;
  /** Old partitions that still exist, because a read lasted too long or another process is retiring partitions. */
  postponed: string[];
}

/**
 * Drops the partitions that ended before `beforeMs`, oldest first, each in its own transaction. For a history table it first carries the
 * last row of each token to the start of the next partition, so that an `as_of` read at any later moment still finds it; it skips tokens
 * whose market was known to be over by then. A crash repeats at most the carrying, which writes each row once.
 */
export async function retirePartitions(options: RetireOptions): Promise<Retired> {
  const { db, partitions, table, beforeMs, signal } = options;
  const retired: Retired = { dropped: [], carried: 0, postponed: [] };
  for (;;) {
    const all = await listPartitions(db, table);
    const [oldest, next] = all;
    if (oldest === undefined || oldest.untilMs > beforeMs) return retired;
    if (options.archive && !(await options.archive.has(db, oldest))) {
      retired.postponed = all.filter(({ untilMs }) => untilMs <= beforeMs).map(({ name }) => name);
      return retired;
    }
    let carryToMs: number | undefined;
    if (isCarried(table)) {
      const retainedFromMs = partitionStartMs(table, beforeMs);
      carryToMs = Math.min(next?.fromMs ?? retainedFromMs, retainedFromMs);
      await partitions.ensure(table, [carryToMs]);
    }
    const result = signal?.aborted ? BUSY : await retire(oldest, carryToMs, options);
    retired.carried += result.carried;
    if (result.outcome === 'busy') {
      retired.postponed = all.filter(({ untilMs }) => untilMs <= beforeMs).map(({ name }) => name);
      return retired;
    }
    if (result.outcome === 'dropped') retired.dropped.push(oldest.name);
    partitions.forget();
  }
}

interface Retirement {
  outcome: 'dropped' | 'busy' | 'gone';
  carried: number;
}

const BUSY: Retirement = { outcome: 'busy', carried: 0 };

function retire(oldest: Partition, carryToMs: number | undefined, options: RetireOptions): Promise<Retirement> {
  const { db, table, beforeMs } = options;
  const { name, fromMs, untilMs } = oldest;
  return db.transaction(async (tx) => {
    const [lock] = await tx.query<{ isOurs: boolean }>(TRY_LOCK);
    if (!lock?.isOurs) return BUSY;
    // Between the listing and the lock another process may have dropped it.
    const isThere = (await listPartitions(tx, table)).some((partition) => partition.name === name);
    if (!isThere) return { outcome: 'gone', carried: 0 };
    // Rows are carried before the table lock, because it may take seconds. No process writes into the past, so no row is missed.
    const carried =
      carryToMs !== undefined && isCarried(table)
        ? await carry(tx, table, { partition: name, carryToMs, beforeMs })
        : 0;
    const losers = table === 'trade' && !options.archive ? await losersOf(tx, name) : [];
    if (!(await drop(tx, oldest, options))) return { outcome: 'busy', carried };
    if (losers.length > 0) await tx.query(PUBLISH_LOSS, [losers, fromMs / 1000, untilMs / 1000]);
    return { outcome: 'dropped', carried };
  });
}

async function carry(
  tx: Tx,
  table: keyof typeof CARRIED,
  { partition, carryToMs, beforeMs }: { partition: string; carryToMs: number; beforeMs: number },
): Promise<number> {
  const columns = CARRIED[table];
  const [result]: { rows: number }[] = await tx.em.query(
    `WITH carried AS (
       INSERT INTO ${table} (token_id, received_at, ${columns})
       SELECT t.id, $1, ${columns}
       FROM token t LEFT JOIN outcome o ON o.token_id = t.id LEFT JOIN market m ON m.id = o.market_id
       CROSS JOIN LATERAL (
         SELECT ${columns} FROM ${partition} p WHERE p.token_id = t.id ORDER BY p.received_at DESC LIMIT 1) AS last
       WHERE ((m.status IN ('resolved', 'settled') AND m.updated_at < $2) OR m.gone_at < $2) IS NOT TRUE
       ORDER BY t.id
       ON CONFLICT (token_id, received_at) DO NOTHING RETURNING 1)
     SELECT count(*)::int AS rows FROM carried`,
    [new Date(carryToMs).toISOString(), new Date(beforeMs).toISOString()],
  );
  return result?.rows ?? 0;
}

/** The outcomes that lose trades with a partition. */
async function losersOf(tx: Tx, partition: string): Promise<string[]> {
  const rows: { id: string }[] = await tx.em.query(
    `SELECT t.id FROM token t WHERE EXISTS (SELECT FROM ${partition} p WHERE p.token_id = t.id) ORDER BY t.id`,
  );
  return rows.map(({ id }) => id);
}

const PUBLISH_LOSS = sql(
  'publish_lost_trades',
  insertPublishSql('late-trades', 'SELECT unnest($1::bigint[]), $2::bigint, $3::bigint'),
);

/** False when other sessions held the table during all attempts, or wrote rows that the files do not have. */
async function drop(tx: Tx, partition: Partition, options: RetireOptions): Promise<boolean> {
  const { archive, table, lockTimeoutMs = LOCK_TIMEOUT_MS, pauseMs = PAUSE_MS, tries = TRIES, signal } = options;
  for (let attempt = 1; ; attempt++) {
    await tx.em.query('SAVEPOINT before_drop');
    try {
      await tx.em.query(`SET LOCAL lock_timeout = ${Math.ceil(lockTimeoutMs)}`);
      if (archive) {
        // Writers of this partition end before, and find the seam afterwards.
        await tx.em.query(`LOCK TABLE ${partition.name} IN SHARE MODE`);
        await archive.moveSeam(tx, partition.untilMs);
        if (!(await archive.isUnchanged(tx, partition))) {
          await tx.em.query('ROLLBACK TO SAVEPOINT before_drop');
          return false;
        }
      }
      await tx.query(DROP_PARTITION, [table, partition.name]);
      return true;
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      await tx.em.query('ROLLBACK TO SAVEPOINT before_drop');
      if (attempt >= tries || signal?.aborted) return false;
      await delay(pauseMs * (0.5 + Math.random()));
    }
  }
}
