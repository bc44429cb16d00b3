import { type Queryable, sql } from '../db/tx.ts';

/** Keys that the overview names. */
const MAX_NAMED = 3;
/** The keys of sign-in links end with their session. */
const LONG_LIVED = `k.expires_at - k.created_at > interval '2 days'`;

const EXPIRING = sql(
  'ops_expiring_keys',
  `SELECT k.id, k.name, a.name AS account, k.expires_at, count(*) OVER ()::int AS total
   FROM api_key k JOIN account a ON a.id = k.account_id
   WHERE k.revoked_at IS NULL AND k.expires_at > clock_timestamp() AND k.expires_at < clock_timestamp() + interval '3 days'
     AND k.last_used_at > clock_timestamp() - interval '7 days' AND ${LONG_LIVED}
     AND ($1::bigint IS NULL OR k.account_id = $1)
   ORDER BY k.expires_at LIMIT ${MAX_NAMED}`,
);

/** Keys of all accounts, or of one, that were used in the last seven days and expire within three days: the first ones, and their number. */
export interface ExpiringKeys {
  keys: readonly { id: string; name: string; account: string; expiresAt: Date }[];
  total: number;
}

export async function readExpiringKeys(db: Queryable, accountId?: bigint): Promise<ExpiringKeys> {
  const rows = await db.query<ExpiringKeys['keys'][number] & { total: number }>(EXPIRING, [accountId ?? null]);
  return { keys: rows.map(({ total: _, ...key }) => key), total: rows[0]?.total ?? 0 };
}

/** Rows of the audit trail that are searched, the newest ones. */
const MAX_SCANNED = 10_000;

const UNFINISHED = sql(
  'ops_unfinished_actions',
  `SELECT t.at, t.action, t.target, count(*) OVER ()::int AS total
   FROM (SELECT pk, at, action, target, status FROM audit_trail ORDER BY pk DESC LIMIT ${MAX_SCANNED}) t
   WHERE t.status = 'started' AND t.at > clock_timestamp() - interval '1 day' AND t.at < clock_timestamp() - interval '10 minutes'
     AND NOT EXISTS (SELECT FROM audit_trail f WHERE f.finishes = t.pk)
   ORDER BY t.at LIMIT 1`,
);

/** Actions of the last day that began more than ten minutes ago and have no end: the oldest one, and their number. */
export interface UnfinishedActions {
  first: { at: Date; action: string; target: string } | null;
  total: number;
}

export async function readUnfinishedActions(db: Queryable): Promise<UnfinishedActions> {
  const [row] = await db.query<{ at: Date; action: string; target: string; total: number }>(UNFINISHED);
  if (row === undefined) return { first: null, total: 0 };
  const { total, ...first } = row;
  return { first, total };
}
