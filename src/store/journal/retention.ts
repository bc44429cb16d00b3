import { type Queryable, sql, sqlPlannedPerCall, sqlState } from '../db/tx.ts';
import { NEWEST_HEAD } from './read-journal.ts';

/** The partition of now, and the next one. Runs with the rights of the role that migrates; see migration 0020. */
const KEEP_PARTITIONS = sql(
  'keep_journal_partitions',
  `SELECT create_journal_partition(moment) FROM unnest(ARRAY[
     (SELECT greatest(h.at, clock_timestamp()) FROM (${NEWEST_HEAD}) h), clock_timestamp() + interval '10 minutes']) AS m (moment)`,
);

/** Makes the partitions of the next minutes. */
export async function keepPartitions(db: Queryable): Promise<void> {
  await db.query(KEEP_PARTITIONS);
}

const LIST = sql(
  'list_journal_partitions',
  `SELECT quote_ident(c.relname) AS name, pg_total_relation_size(c.oid)::float8 AS bytes,
     (extract(epoch FROM clock_timestamp()
       - (regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$TO \\('([^']+)'\\)$re$))[1]::timestamptz) / 60)::float8 AS ended_minutes
   FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'journal'::regclass ORDER BY 1`,
);

interface JournalPartition {
  name: string;
  bytes: number;
  /** Minutes since its end; negative before. */
  endedMinutes: number;
}

/** The partitions of the journal, oldest first. */
export function journalPartitions(db: Queryable): Promise<JournalPartition[]> {
  return db.query(LIST);
}

/** Advances the head behind a partition before it is dropped, so that no reader takes the hole for the whole. */
const ADVANCE = (partition: string) =>
  sqlPlannedPerCall(
    'advance_oldest_seq',
    `INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published, target, target_at,
       after_xid, after_id)
     SELECT turn + 1, epoch, origin, h.seq, greatest(oldest_seq, least(l.seq, h.seq) + 1), at, checked_at, closed_until, published, target,
       target_at, after_xid, after_id
     FROM (${NEWEST_HEAD}) h, (SELECT max(seq) AS seq FROM ${partition}) l WHERE l.seq >= oldest_seq RETURNING turn`,
  );
const DROP = sql('drop_journal_partition', 'SELECT drop_journal_partition($1)');
const PRUNE_HEADS = sql(
  'prune_journal_heads',
  `DELETE FROM journal_head WHERE turn < (SELECT h.turn FROM (${NEWEST_HEAD}) h) - 1000`,
);
const PRUNE_CANDLES = sql(
  'prune_open_candles',
  `DELETE FROM open_candle WHERE bucket < (SELECT h.closed_until FROM (${NEWEST_HEAD}) h)`,
);

/** Slots before the current one that hold marks. */
const USED_SLOTS = sql(
  'used_mark_slots',
  `SELECT s AS slot FROM generate_series(0, 3) s
   WHERE s <> extract(epoch FROM clock_timestamp())::bigint / 600 % 4 AND EXISTS (SELECT FROM publish_mark m WHERE m.slot = s)`,
);
const EMPTY_SLOT = sql('empty_mark_slot', 'SELECT empty_published_marks($1)');

/** Dropping and emptying wait for readers, and other readers wait behind them: they give up soon, and the next run tries again. */
const LOCK_TIMEOUT = sql('journal_lock_timeout', `SELECT set_config('lock_timeout', $1, false)`);
const LOCK_TIMEOUT_MS = 50;
const LOCK_NOT_AVAILABLE = '55P03';

interface Pruned {
  /** Names of partitions. */
  dropped: string[];
  /** The head that advanced the oldest number. */
  turn?: bigint;
}

/**
 * Drops partitions that ended more than `retentionMinutes` ago, and the oldest ended ones while the journal is larger than `maxBytes`.
 * Empties published marks and prunes old heads. `db` is one session: its `lock_timeout` changes.
 * @throws 23505 when another process published at the same moment
 */
export async function pruneJournal(
  db: Queryable,
  { retentionMinutes, maxBytes }: { retentionMinutes: number; maxBytes: number },
): Promise<Pruned> {
  await db.query(PRUNE_HEADS);
  await db.query(PRUNE_CANDLES);
  await db.query(LOCK_TIMEOUT, [`${LOCK_TIMEOUT_MS}ms`]);
  const pruned: Pruned = { dropped: [] };
  try {
    for (const { slot } of await db.query<{ slot: number }>(USED_SLOTS))
      await unlessLocked(db.query(EMPTY_SLOT, [slot]));
    const partitions = await journalPartitions(db);
    let bytes = partitions.reduce((sum, one) => sum + one.bytes, 0);
    for (const { name, bytes: own, endedMinutes } of partitions) {
      if (endedMinutes <= 0 || (endedMinutes < retentionMinutes && bytes <= maxBytes)) break;
      const [head] = await db.query<{ turn: bigint }>(ADVANCE(name));
      if (head) pruned.turn = head.turn;
      if (!(await unlessLocked(db.query(DROP, [name])))) break;
      bytes -= own;
      pruned.dropped.push(name);
    }
  } finally {
    await db.query(LOCK_TIMEOUT, ['0']);
  }
  return pruned;
}

/** False when another session held the lock for too long. */
async function unlessLocked(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    return false;
  }
}
