import { type Queryable, type Statement, sql, type Tx } from '../db/tx.ts';

/** What an account may have at once: subscriptions and wallets that exist, alerts that are active. */
const QUOTAS = ['webhooks', 'alerts', 'wallets'] as const;
export type Quota = (typeof QUOTAS)[number];
export type QuotaDefaults = Readonly<Record<Quota, number>>;

/** The limits of one account; null: the default of the configuration. */
export interface AccountQuotas extends Readonly<Record<Quota, number | null>> {
  /** Requests per minute. */
  readonly ratePerMinute: number | null;
  /** Reads per minute that make us ask a venue. */
  readonly coldReadsPerMinute: number | null;
}

const COLUMNS = {
  webhooks: 'quota_webhooks',
  alerts: 'quota_alerts',
  wallets: 'quota_wallets',
  ratePerMinute: 'rate_per_minute',
  coldReadsPerMinute: 'cold_reads_per_minute',
} as const satisfies Record<keyof AccountQuotas, string>;
const FIELDS = Object.keys(COLUMNS) as (keyof AccountQuotas)[];
/** The columns of `AccountQuotas`, of `account`. */
export const QUOTA_COLUMNS = FIELDS.map((field) => `${COLUMNS[field]} AS "${field}"`).join(', ');

const READ_QUOTAS = sql('read_account_quotas', `SELECT ${QUOTA_COLUMNS} FROM account WHERE name = $1`);
const SET_QUOTAS = sql(
  'set_account_quotas',
  `UPDATE account SET ${FIELDS.map((field, i) => {
    const column = COLUMNS[field];
    return `${column} = CASE WHEN $${2 * i + 2}::boolean THEN $${2 * i + 3}::int ELSE ${column} END`;
  }).join(', ')} WHERE name = $1 RETURNING ${QUOTA_COLUMNS}`,
);

/** The limits of the account of this name; null when there is none. */
export async function readAccountQuotas(db: Queryable, accountName: string): Promise<AccountQuotas | null> {
  const [row] = await db.query<AccountQuotas>(READ_QUOTAS, [accountName]);
  return row ?? null;
}

/**
 * Changes the limits that are given, whole numbers from 0 to 2147483647, null for the default; others stay. What an account has
 * beyond a lower limit stays too. Returns all limits, or null when there is no account of this name.
 */
export async function setAccountQuotas(
  db: Queryable,
  accountName: string,
  change: Partial<AccountQuotas>,
): Promise<AccountQuotas | null> {
  const values = FIELDS.flatMap((field) => [change[field] !== undefined, change[field] ?? null]);
  const [row] = await db.query<AccountQuotas>(SET_QUOTAS, [accountName, ...values]);
  return row ?? null;
}

/*
 * Creations of one account wait for each other at its row, from here to their commit, whatever process they are in: that makes
 * the quota exact. Counting ten thousand alerts takes 1 to 7 ms, a million 0.1 to 0.4 s, each time under that lock; so the row
 * keeps an upper bound. Creations raise it; what ends (deleted, triggered, expired) need not touch the row, so evaluators and
 * deletions wait for nobody. Only a bound that reaches the quota is replaced by a count.
 */

interface QuotaStatements {
  /** Locks the account and raises the bound. Reads the row as the last holder of the lock left it. */
  raise: Statement;
  /** A statement of its own, after the lock: it sees what the last holder created. Counts no further than the quota. */
  count: Statement;
  setBound: Statement;
}

function statementsOf(quota: Quota, existing: string): QuotaStatements {
  const bound = `${quota}_at_most`;
  return {
    raise: sql(
      `raise_${bound}`,
      `UPDATE account SET ${bound} = ${bound} + 1 WHERE id = $1 RETURNING ${COLUMNS[quota]} AS own, ${bound} AS at_most`,
    ),
    count: sql(
      `count_${quota}`,
      `SELECT count(*)::int AS rows FROM (SELECT FROM ${existing} AND account_id = $1 LIMIT $2) AS existing`,
    ),
    setBound: sql(`set_${bound}`, `UPDATE account SET ${bound} = $2 WHERE id = $1`),
  };
}

const STATEMENTS: Readonly<Record<Quota, QuotaStatements>> = {
  webhooks: statementsOf('webhooks', 'webhook_subscription WHERE deleted_at IS NULL'),
  alerts: statementsOf('alerts', `alert WHERE status = 'active'`),
  wallets: statementsOf('wallets', 'wallet WHERE deleted_at IS NULL'),
};

interface QuotaDecision {
  /** Whether the transaction may create one more. When it may not, it must be rolled back. */
  isGranted: boolean;
  limit: number;
}

/**
 * Decides whether the account may have one more, for the transaction that then creates it: first thing after an idempotency
 * claim, before any lock on what the account owns. However many do so at once, the quota is never exceeded.
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
  await tx.query(setBound, [accountId, rows + 1]);
  return { isGranted: true, limit };
}
