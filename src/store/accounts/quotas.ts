import { AccountEntity, LIMIT_COLUMNS } from '../db/entities/account.ts';
import { type Repositories, type Statement, sql, type Tx } from '../db/tx.ts';

/** The counted objects: existing subscriptions and wallets, active alerts, keys that are neither revoked nor expired. */
const QUOTAS = ['webhooks', 'alerts', 'wallets', 'keys'] as const;
export type Quota = (typeof QUOTAS)[number];
/** `archiveMbPerDay`: megabytes per UTC day. */
export type QuotaDefaults = Readonly<Record<Quota | 'archiveMbPerDay', number>>;

/** The limits of one account; null means the default of the configuration. */
export type AccountQuotas = Readonly<Record<keyof typeof LIMIT_COLUMNS, number | null>>;

/** The columns of `AccountQuotas`, of `account`. */
export const QUOTA_COLUMNS = Object.entries(LIMIT_COLUMNS)
  .map(([field, column]) => `${column} AS "${field}"`)
  .join(', ');

/** The limits of the account with this name; null when it does not exist. */
export async function readAccountQuotas({ em }: Repositories, name: string): Promise<AccountQuotas | null> {
  const account = await em.getRepository(AccountEntity).findOneBy({ name });
  return account?.limits ?? null;
}

/**
 * Changes the given limits, whole numbers from 0 to 2147483647, null for the default. Omitted limits stay, and so do
 * existing objects beyond a lower limit. Returns all limits, or null when the account does not exist.
 */
export async function setAccountQuotas(
  db: Repositories,
  name: string,
  change: Partial<AccountQuotas>,
): Promise<AccountQuotas | null> {
  const accounts = db.em.getRepository(AccountEntity);
  if (Object.keys(change).length > 0) await accounts.update({ name }, { limits: change });
  return readAccountQuotas(db, name);
}

/*
 * Creations of one account lock its row until their commit, in all processes, which makes the quota exact. Counting ten thousand alerts
 * takes 1 to 7 ms, a million 0.1 to 0.4 s, each time under that lock; so the row keeps an upper bound. Creations raise the bound. Ended
 * objects (deleted, triggered, expired) do not lower it, so evaluators and deletions need no lock on the row. Only a bound that reaches
 * the quota is replaced by a count. Keys have no bound, because commands and operators create keys too: each creation counts them.
 */

interface QuotaStatements {
  /** Locks the account and raises the bound, if there is one. It reads the row as the previous holder of the lock committed it. */
  raise: Statement;
  /** A statement after the lock, so that it sees the creations of the previous holder. Counts no further than the quota. */
  count: Statement;
  /** Absent for objects without a bound. */
  setBound?: Statement;
}

function countOf(quota: Quota, existing: string): Statement {
  return sql(
    `count_${quota}`,
    `SELECT count(*)::int AS rows FROM (SELECT FROM ${existing} AND account_id = $1 LIMIT $2) AS existing`,
  );
}

function statementsOf(quota: Quota, existing: string): QuotaStatements {
  const bound = `${quota}_at_most`;
  return {
    raise: sql(
      `raise_${bound}`,
      `UPDATE account SET ${bound} = ${bound} + 1 WHERE id = $1 RETURNING ${LIMIT_COLUMNS[quota]} AS own, ${bound} AS at_most`,
    ),
    count: countOf(quota, existing),
    setBound: sql(`set_${bound}`, `UPDATE account SET ${bound} = $2 WHERE id = $1`),
  };
}

const STATEMENTS: Readonly<Record<Quota, QuotaStatements>> = {
  webhooks: statementsOf('webhooks', 'webhook_subscription WHERE deleted_at IS NULL'),
  alerts: statementsOf('alerts', `alert WHERE status = 'active'`),
  wallets: statementsOf('wallets', 'wallet WHERE deleted_at IS NULL'),
  keys: {
    raise: sql(
      'lock_account_for_key',
      `SELECT ${LIMIT_COLUMNS.keys} AS own, NULL::int AS at_most FROM account WHERE id = $1 FOR NO KEY UPDATE`,
    ),
    count: countOf(
      'keys',
      'api_key WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())',
    ),
  },
};

interface QuotaDecision {
  /** Whether the transaction may create one more object. If not, it must roll back. */
  isGranted: boolean;
  limit: number;
}

/**
 * Decides whether the account may have one more object, for the transaction that then creates it. Call it directly after an idempotency
 * claim, before any lock on objects of the account. Concurrent creations never exceed the quota.
 */
export async function takeQuota(tx: Tx, accountId: bigint, quota: Quota, defaultLimit: number): Promise<QuotaDecision> {
  const { raise, count, setBound } = STATEMENTS[quota];
  const [account] = await tx.query<{ own: number | null; atMost: number | null }>(raise, [accountId]);
  const limit = account?.own ?? defaultLimit;
  const atMost = account?.atMost ?? null;
  if (atMost !== null && atMost <= limit) return { isGranted: true, limit };
  const [existing] = await tx.query<{ rows: number }>(count, [accountId, limit]);
  const rows = existing?.rows ?? 0;
  if (rows >= limit) return { isGranted: false, limit };
  if (setBound) await tx.query(setBound, [accountId, rows + 1]);
  return { isGranted: true, limit };
}
