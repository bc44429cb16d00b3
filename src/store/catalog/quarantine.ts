import { scrubText } from '../../domain/values/text.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';

/** The maximum number of rows per reason, so that a venue with only malformed records cannot fill the disk. */
const MAX_ROWS_PER_REASON = 1_000;
/** Records that were not seen for this long are deleted. */
const QUARANTINE_DAYS = 30;

/** A rejected record, stored for the operator. */
interface QuarantinedRecord {
  kind: string;
  reason: string;
  recordId?: string;
  detail: string;
  sample: string;
}

const UPSERT = sql(
  'upsert_quarantine',
  `INSERT INTO quarantine AS q (venue, kind, reason, record_id, detail, sample, times)
   SELECT $1, kind, reason, record_id, min(detail), min(sample), count(*)
   FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS r (kind, reason, record_id, detail, sample)
   GROUP BY kind, reason, record_id ORDER BY kind, reason, record_id
   ON CONFLICT (venue, kind, reason, record_id) DO UPDATE SET
     times = q.times + excluded.times, detail = excluded.detail, sample = excluded.sample, last_seen_at = now()`,
);

/** Counts and stores rejected records: one row per venue, kind, reason and record, regardless of repetitions. */
export async function quarantine(db: Queryable, venue: string, records: readonly QuarantinedRecord[]): Promise<void> {
  if (records.length === 0) return;
  await db.query(UPSERT, [
    venue,
    records.map((record) => record.kind),
    records.map((record) => record.reason.slice(0, 100)),
    records.map((record) => scrubText((record.recordId ?? '').slice(0, 200))),
    records.map((record) => scrubText(record.detail.slice(0, 500))),
    records.map((record) => scrubText(record.sample.slice(0, 4_096))),
  ]);
}

/** Locks in key order, like UPSERT, so that two polls cannot deadlock. */
const DELETE_RECOVERED = sql(
  'delete_recovered_quarantine',
  `WITH found AS (
     SELECT venue, kind, reason, record_id FROM quarantine
     WHERE venue = $1 AND kind = $2 AND reason = $3 AND record_id = ANY ($4::text[])
     ORDER BY venue, kind, reason, record_id FOR UPDATE),
   gone AS (DELETE FROM quarantine q USING found WHERE (q.venue, q.kind, q.reason, q.record_id)
     = (found.venue, found.kind, found.reason, found.record_id) RETURNING 1)
   SELECT count(*)::int AS rows FROM gone`,
);

/**
 * Deletes records that were rejected for this reason and are valid now, in the transaction that stores them. Returns their number.
 */
export async function removeRecovered(
  tx: Tx,
  group: { venue: string; kind: string; reason: string },
  recordIds: readonly string[],
): Promise<number> {
  if (recordIds.length === 0) return 0;
  const values = [group.venue, group.kind, group.reason, recordIds.map((id) => scrubText(id.slice(0, 200)))];
  const [removed] = await tx.query<{ rows: number }>(DELETE_RECOVERED, values);
  return removed?.rows ?? 0;
}

const DELETE_UNSEEN = sql(
  'delete_unseen_quarantine',
  `WITH old AS (
     SELECT venue, kind, reason, record_id FROM quarantine WHERE last_seen_at < now() - $1 * interval '1 day'
     ORDER BY venue, kind, reason, record_id FOR UPDATE),
   gone AS (DELETE FROM quarantine q USING old WHERE (q.venue, q.kind, q.reason, q.record_id)
     = (old.venue, old.kind, old.reason, old.record_id) RETURNING 1)
   SELECT count(*)::int AS rows FROM gone`,
);

/** Adds surplus rows to the row without an id of their reason, so that the counts stay correct. */
const FOLD_SURPLUS = sql(
  'fold_surplus_quarantine',
  `WITH ranked AS (
     SELECT venue, kind, reason, record_id,
       row_number() OVER (PARTITION BY venue, kind, reason ORDER BY last_seen_at DESC, record_id) AS place
     FROM quarantine WHERE record_id <> ''),
   surplus AS (
     SELECT q.* FROM quarantine q JOIN ranked r USING (venue, kind, reason, record_id) WHERE r.place > $1
     ORDER BY venue, kind, reason, record_id FOR UPDATE OF q),
   gone AS (
     DELETE FROM quarantine q USING surplus s WHERE (q.venue, q.kind, q.reason, q.record_id)
       = (s.venue, s.kind, s.reason, s.record_id) RETURNING q.*),
   folded AS (
     INSERT INTO quarantine AS q (venue, kind, reason, record_id, detail, sample, times, first_seen_at, last_seen_at)
     SELECT venue, kind, reason, '', (array_agg(detail ORDER BY last_seen_at DESC))[1],
       (array_agg(sample ORDER BY last_seen_at DESC))[1], sum(times), min(first_seen_at), max(last_seen_at)
     FROM gone GROUP BY venue, kind, reason ORDER BY venue, kind, reason
     ON CONFLICT (venue, kind, reason, record_id) DO UPDATE SET times = q.times + excluded.times,
       first_seen_at = least(q.first_seen_at, excluded.first_seen_at),
       last_seen_at = greatest(q.last_seen_at, excluded.last_seen_at))
   SELECT count(*)::int AS rows FROM gone`,
);

/**
 * Deletes records that were not seen for QUARANTINE_DAYS and, per venue, kind and reason, all but the newest MAX_ROWS_PER_REASON, whose
 * counts move to the row without an id. Returns the number of deleted rows.
 */
export async function pruneQuarantine(
  db: Database,
  { days = QUARANTINE_DAYS, rowsPerReason = MAX_ROWS_PER_REASON } = {},
): Promise<number> {
  const [unseen] = await db.query<{ rows: number }>(DELETE_UNSEEN, [days]);
  // In a transaction, because it may deadlock with a poll that rejects the same records, and transactions retry deadlocks.
  const [surplus] = await db.transaction((tx) => tx.query<{ rows: number }>(FOLD_SURPLUS, [rowsPerReason]));
  return (unseen?.rows ?? 0) + (surplus?.rows ?? 0);
}
