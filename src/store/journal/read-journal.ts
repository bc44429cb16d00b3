import type { Change, ChangeBody, ChangeKind } from '../../domain/live/change.ts';
import { ORIGIN, type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';

/** The Postgres channel of the publisher; the payload is the new `seq`. */
export const JOURNAL_CHANNEL = 'oddswire_journal';

/**
 * Settings of a session of the publisher or of a reader. Its statements are planned once, and their tables may be empty then: later they hold
 * many rows, with many dead ones. So every scan must use an index.
 */
export const SETTINGS = sql(
  'journal_settings',
  `SELECT set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false), set_config('jit', 'off', false),
     set_config('plan_cache_mode', 'force_generic_plan', false)`,
);

/** How far the journal is. */
export interface JournalHead {
  /** Numbers of different epochs are not comparable: a restored database begins another epoch. */
  epoch: string;
  /** The last number; every change up to it is visible. */
  seq: number;
  /**
   * By the database clock: the journal holds every change that was committed by then. While no mark waits, this is the time of the read.
   */
  checkedAt: Date;
  /** The oldest number that is still stored; `seq + 1` when none is. */
  oldestSeq: number;
  /** The database clock of this read. */
  readAt: Date;
}

/** The newest row of `journal_head` is the head. Rows are added instead of updated; see migration 0020. */
export const NEWEST_HEAD = 'SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1';

/**
 * Whether the head `h` can be continued: this database wrote it, and its time is within the limit of `create_journal_partition`. A clock
 * that was set back leaves a later head, behind which no partition can be made before the clock is there again.
 */
export const IS_CONTINUED = `(h.origin = ${ORIGIN} AND h.at <= clock_timestamp() + interval '2 hours')`;

/** The beginning of the current minute, epoch seconds. */
export const MINUTE = `floor(extract(epoch FROM statement_timestamp()) / 60)::bigint * 60`;

/**
 * Whether visible changes are not in the journal: marks of transactions in progress at the snapshot of the head `h`, or of later ones, and
 * candles whose minute ended. The order makes each probe use the index, also with a plan from the time of an empty table.
 */
export const IS_BEHIND = `(h.target IS NOT NULL OR h.closed_until < ${MINUTE}
  OR EXISTS (SELECT FROM (SELECT FROM publish_mark m WHERE m.xid >= pg_snapshot_xmax(h.published) ORDER BY m.xid, m.id LIMIT 1) w)
  OR EXISTS (SELECT FROM pg_snapshot_xip(h.published) AS x (xid)
    CROSS JOIN LATERAL (SELECT FROM publish_mark m WHERE m.xid = x.xid ORDER BY m.id LIMIT 1) w))`;

/**
 * The snapshot of the statement is later than the begin of its transaction, `now()`. So when nothing that it sees waits, the journal holds
 * every change that was committed by then, and no publisher has to say so. Marks of another database, and a head of a later clock, prove
 * nothing.
 */
const HEAD = `SELECT epoch::text AS epoch, seq::float8 AS seq, clock_timestamp() AS read_at, oldest_seq::float8 AS oldest_seq,
     CASE WHEN h.checked_at < now() AND NOT ${IS_BEHIND} AND ${IS_CONTINUED} THEN now() ELSE h.checked_at END AS checked_at
   FROM (${NEWEST_HEAD}) h`;
const READ_HEAD = sql('read_journal_head', HEAD);

/** The head of the journal, in one statement. */
export async function readJournalHead(db: Queryable): Promise<JournalHead> {
  const [head] = await db.query<JournalHead>(READ_HEAD);
  if (!head) throw new TypeError('the journal has no head');
  return head;
}

/** Changes with `after < seq <= upTo`. */
interface ChangeRange {
  after: number;
  upTo: number;
  limit: number;
  /** Absent: every venue. */
  venue?: string;
  /** Absent: every market. */
  marketIds?: readonly string[];
  /** No change of the range is older than this moment; spares a look into older partitions. */
  notBefore?: Date;
}

const CHANGE = 'seq::float8 AS seq, at, kind, venue, market_id, outcome_id, body';

/** Planned per call, because the newest partition grows from nothing to a million rows between two analyses. */
const READ_CHANGES = sqlPlannedPerCall(
  'read_changes',
  `SELECT ${CHANGE} FROM journal
   WHERE seq > $1 AND seq <= $2 AND at >= coalesce($6::timestamptz, '-infinity')
     AND ($4::text IS NULL OR venue = $4) AND ($5::text[] IS NULL OR market_id = ANY ($5))
   ORDER BY seq LIMIT $3`,
);

interface ChangeRow {
  seq: number;
  at: Date;
  kind: ChangeKind;
  venue: string;
  marketId: string;
  outcomeId: string | null;
  /** Without the ids, which have their own columns. */
  body: ChangeBody;
}

/**
 * The stored changes of a range in the order of `seq`. Changes below `oldestSeq` of a head that is read afterwards may be absent, because
 * the head advances before they are dropped.
 */
export async function readChanges(db: Queryable, range: ChangeRange): Promise<Change[]> {
  const { after, upTo, limit, venue = null, marketIds = null, notBefore = null } = range;
  const rows = await db.query<ChangeRow>(READ_CHANGES, [
    after,
    upTo,
    limit,
    venue,
    marketIds,
    notBefore?.toISOString() ?? null,
  ]);
  return rows.map(changeOf);
}

/** One snapshot has the head and its changes. Planned once, for a session with `SETTINGS`: planning takes three times as long as reading. */
const READ_JOURNAL = sql(
  'read_journal',
  `SELECT h.epoch, h.seq AS head_seq, h.read_at, h.oldest_seq, h.checked_at, c.*
   FROM (${HEAD}) h LEFT JOIN LATERAL (
     SELECT ${CHANGE} FROM journal
     WHERE journal.seq > $1 AND journal.seq <= h.seq::bigint AND at >= coalesce($3::timestamptz, '-infinity') ORDER BY journal.seq LIMIT $2) c ON true
   ORDER BY c.seq`,
);

interface JournalRow extends Omit<JournalHead, 'seq'>, Omit<ChangeRow, 'seq'> {
  headSeq: number;
  /** Null in the only row of a head without later changes. */
  seq: number | null;
}

/**
 * The head of the journal, and the changes behind a position in the order of `seq`. See `readChanges` for dropped ones.
 * @param session A session with `SETTINGS`.
 */
export async function readJournal(
  session: Queryable,
  { after, limit, notBefore }: Pick<ChangeRange, 'after' | 'limit' | 'notBefore'>,
): Promise<{ head: JournalHead; changes: Change[] }> {
  const rows = await session.query<JournalRow>(READ_JOURNAL, [after, limit, notBefore?.toISOString() ?? null]);
  const [first] = rows;
  if (!first) throw new TypeError('the journal has no head');
  const { epoch, headSeq, checkedAt, oldestSeq, readAt } = first;
  const changes = rows.flatMap(({ seq, at, kind, venue, marketId, outcomeId, body }) =>
    seq === null ? [] : changeOf({ seq, at, kind, venue, marketId, outcomeId, body }),
  );
  return { head: { epoch, seq: headSeq, checkedAt, oldestSeq, readAt }, changes };
}

function changeOf(stored: ChangeRow): Change {
  const { outcomeId, body, ...row } = withStoredKind(stored);
  return outcomeId === null
    ? { ...row, body: { market_id: row.marketId, ...body } }
    : { ...row, outcomeId, body: { market_id: row.marketId, outcome_id: outcomeId, ...body } };
}

/** The inverse of `STORED_KIND` of `claim.ts`. */
function withStoredKind(change: ChangeRow): ChangeRow {
  const { kind, body } = change;
  return kind === 'facts' && body['about'] === 'resolution'
    ? { ...change, kind: 'resolution', body: body['row'] as ChangeBody }
    : change;
}

/** The place in the journal of a read: every change up to `seq` of this epoch was visible to it. */
export interface JournalStamp {
  epoch: string;
  seq: number;
}

/**
 * A column with the stamp of its statement, for `toStamp`. One statement has one snapshot, on one server: a change that it does not see
 * has a later number.
 */
export const STAMP = `(SELECT h.epoch || ' ' || h.seq FROM (${NEWEST_HEAD}) h) AS stamp`;

export function toStamp(text: string): JournalStamp {
  const [epoch = '', seq = ''] = text.split(' ');
  return { epoch, seq: Number(seq) };
}
