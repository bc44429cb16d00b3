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
  accountId: bigint;
  kind: string;
  windowStartMs: bigint;
  used: bigint;
}

/** `AddUsage` on Postgres: one statement for all accounts. */
export async function addRateUsage(db: Queryable, entries: readonly UsageEntry[]): Promise<(number | null)[]> {
  if (entries.length === 0) return [];
  const rows = await db.query<UsageRow>(ADD_USAGE, [
    entries.map(({ accountId }) => accountId),
    entries.map(({ kind }) => kind),
    entries.map(({ windowStartMs }) => windowStartMs),
    entries.map(({ used }) => used),
  ]);
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(`${row.kind} ${row.accountId} ${row.windowStartMs}`, Number(row.used));
  return entries.map(
    ({ kind, accountId, windowStartMs }) => totals.get(`${kind} ${accountId} ${windowStartMs}`) ?? null,
  );
}
