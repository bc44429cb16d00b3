import { scrubText } from '../../domain/values/text.ts';
import { type Database, epochMs, type Queryable, sql, type Tx } from '../db/tx.ts';

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

/** The filters of an operator; absent ones do not apply. */
interface QuarantineFilter {
  venue?: string;
  kind?: string;
  reason?: string;
  /** Seen at or after this moment, epoch milliseconds. */
  sinceMs?: number;
}

/** The rejected records of one venue, kind and reason. */
export interface QuarantineSummary {
  venue: string;
  kind: string;
  reason: string;
  /** Distinct records; records without a readable id, and surplus ones, count as one. */
  records: number;
  /** The number of rejections. */
  times: number;
  firstSeenMs: number;
  lastSeenMs: number;
}

export interface QuarantineEntry {
  venue: string;
  kind: string;
  reason: string;
  /** Empty when the id could not be read. */
  recordId: string;
  detail: string;
  /** The record as JSON text, cut to 4 KiB. */
  sample: string;
  times: number;
  firstSeenMs: number;
  lastSeenMs: number;
}

/** The cursor of a list: the last row of the page before. */
export interface QuarantineCursor {
  /** Epoch microseconds, the precision of Postgres. */
  lastSeenMicros: string;
  venue: string;
  kind: string;
  reason: string;
  recordId: string;
}

const MATCHES = `($1::text IS NULL OR venue = $1) AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR reason = $3)
     AND ($4::timestamptz IS NULL OR last_seen_at >= $4)`;

const SUMMARIZE = sql(
  'summarize_quarantine',
  `SELECT venue, kind, reason, count(*)::int AS records, sum(times)::float8 AS times,
     ${epochMs('min(first_seen_at)')} AS first_seen_ms, ${epochMs('max(last_seen_at)')} AS last_seen_ms
   FROM quarantine WHERE ${MATCHES}
   GROUP BY venue, kind, reason ORDER BY sum(times) DESC, venue, kind, reason`,
);

const LIST = sql(
  'list_quarantine',
  `SELECT venue, kind, reason, record_id, detail, sample, times::float8 AS times, ${epochMs('first_seen_at')} AS first_seen_ms,
     ${epochMs('last_seen_at')} AS last_seen_ms,
     (extract(epoch FROM last_seen_at) * 1000000)::bigint::text AS last_seen_micros
   FROM quarantine WHERE ${MATCHES} AND ($5::bigint IS NULL OR
     ((extract(epoch FROM last_seen_at) * 1000000)::bigint, venue, kind, reason, record_id) < ($5::bigint, $6, $7, $8, $9))
   ORDER BY last_seen_at DESC, venue DESC, kind DESC, reason DESC, record_id DESC LIMIT $10`,
);

function filterValues({ venue, kind, reason, sinceMs }: QuarantineFilter): unknown[] {
  const since = sinceMs === undefined ? null : new Date(sinceMs).toISOString();
  return [venue ?? null, kind ?? null, reason ?? null, since];
}

/** Rejected records counted per venue, kind and reason, the most frequent first. */
export function summarizeQuarantine(db: Queryable, filter: QuarantineFilter): Promise<QuarantineSummary[]> {
  return db.query(SUMMARIZE, filterValues(filter));
}

/**
 * Rejected records, last seen first. `next` is set when there may be more. A record that is rejected again during a walk moves to the
 * head of the list, so a walk may miss it, but never returns one twice.
 */
export async function listQuarantine(
  db: Queryable,
  filter: QuarantineFilter,
  page: { limit: number; after?: QuarantineCursor },
): Promise<{ entries: QuarantineEntry[]; next?: QuarantineCursor }> {
  const { limit, after } = page;
  const rows = await db.query<QuarantineEntry & { lastSeenMicros: string }>(LIST, [
    ...filterValues(filter),
    after?.lastSeenMicros ?? null,
    after?.venue ?? null,
    after?.kind ?? null,
    after?.reason ?? null,
    after?.recordId ?? null,
    limit,
  ]);
  const entries = rows.map(({ lastSeenMicros: _, ...entry }) => entry);
  const last = rows.at(-1);
  if (last === undefined || rows.length < limit) return { entries };
  const { venue, kind, reason, recordId, lastSeenMicros } = last;
  return { entries, next: { lastSeenMicros, venue, kind, reason, recordId } };
}
