import { scrubText } from '../domain/text.ts';
import { type Queryable, sql } from './tx.ts';

/** A record that did not pass the door, as it is kept for the operator. */
export interface QuarantinedRecord {
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

/** Counts and keeps rejected records: one row per venue, kind, reason and record, however often it comes back. */
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
