import { epochMs } from '../db/epoch-ms.ts';
import { type Queryable, sql } from '../db/tx.ts';

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
