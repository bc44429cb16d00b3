import type { UsageEntry } from '../../domain/values/usage.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** Upserts rows in key order, so that two API processes cannot deadlock when they add at once. */
const ADD_USAGE = sql(
  'add_rate_usage',
  `INSERT INTO rate_usage AS u (account_id, kind, window_start_ms, used)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS a (account_id, kind, window_start_ms, used)
   ORDER BY a.account_id, a.kind
   ON CONFLICT (account_id, kind) DO UPDATE SET
     used = CASE WHEN excluded.window_start_ms > u.window_start_ms THEN excluded.used
                 WHEN excluded.window_start_ms = u.window_start_ms THEN u.used + excluded.used
                 ELSE u.used END,
     window_start_ms = greatest(u.window_start_ms, excluded.window_start_ms)
   RETURNING account_id, kind, window_start_ms, used`,
);

interface UsageRow {
  /** The subject: the column has the name of its first use. */
  accountId: bigint;
  kind: string;
  windowStartMs: bigint;
  used: bigint;
}

/** `AddUsage` on Postgres: one statement for all subjects. */
export async function addRateUsage(db: Queryable, entries: readonly UsageEntry[]): Promise<(number | null)[]> {
  if (entries.length === 0) return [];
  const rows = await db.query<UsageRow>(ADD_USAGE, [
    entries.map(({ subject }) => subject),
    entries.map(({ kind }) => kind),
    entries.map(({ windowStartMs }) => windowStartMs),
    entries.map(({ used }) => used),
  ]);
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(`${row.kind} ${row.accountId} ${row.windowStartMs}`, Number(row.used));
  return entries.map(({ kind, subject, windowStartMs }) => totals.get(`${kind} ${subject} ${windowStartMs}`) ?? null);
}

/** Skips rows under a lock, because it locks in no order: it cannot deadlock with processes that add. */
const PRUNE_USAGE = sql(
  'prune_rate_usage',
  `DELETE FROM rate_usage u USING (SELECT account_id, kind FROM rate_usage WHERE window_start_ms < $1 FOR UPDATE SKIP LOCKED) old
   WHERE u.account_id = old.account_id AND u.kind = old.kind RETURNING 1`,
);

/** Deletes the rows of windows that began before `beforeMs` (epoch milliseconds); returns their number. */
export async function pruneRateUsage(db: Queryable, beforeMs: number): Promise<number> {
  return (await db.query(PRUNE_USAGE, [beforeMs])).length;
}
