import type { Quota } from '../accounts/quotas.ts';
import { WIDE_ALERT } from '../alerts/scopes.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** The limit of each count of one account. */
export const MAX_COUNTED_OF_ACCOUNT = 100_000;

const upTo = (rows: string) =>
  `(SELECT count(*)::int FROM (SELECT FROM ${rows} LIMIT ${MAX_COUNTED_OF_ACCOUNT}) AS rows)`;

const USAGE = sql(
  'account_usage',
  `SELECT
     ${upTo('webhook_subscription WHERE account_id = $1 AND deleted_at IS NULL')} AS webhooks,
     ${upTo(`alert WHERE account_id = $1 AND status = 'active'`)} AS alerts,
     ${upTo(`alert WHERE account_id = $1 AND ${WIDE_ALERT}`)} AS wide_alerts,
     ${upTo('wallet WHERE account_id = $1 AND deleted_at IS NULL')} AS wallets,
     ${upTo(`api_key WHERE account_id = $1 AND revoked_at IS NULL
       AND (expires_at IS NULL OR expires_at > clock_timestamp())`)} AS keys`,
);

/** The objects of an account that count against its quotas. */
export type AccountUsage = Readonly<Record<Quota | 'wideAlerts', number>>;

/** Each count goes up to MAX_COUNTED_OF_ACCOUNT. */
export async function readAccountUsage(db: Queryable, accountId: bigint): Promise<AccountUsage> {
  const [row] = await db.query<AccountUsage>(USAGE, [accountId]);
  return row ?? { webhooks: 0, alerts: 0, wideAlerts: 0, wallets: 0, keys: 0 };
}
