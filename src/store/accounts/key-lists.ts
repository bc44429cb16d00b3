import { type Queryable, sql } from '../db/tx.ts';

/** The operator's view of a key: neither the key nor its hash. */
export interface ListedApiKey {
  id: string;
  /** Name of its account. */
  account: string;
  name: string;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
}

/** The fields of a `ListedApiKey`, of `api_key AS k` and its `account AS a`. */
export const KEY_FIELDS = `k.id, a.name AS account, k.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at`;

const LIST_KEYS = sql(
  'list_api_keys',
  `SELECT ${KEY_FIELDS}
   FROM api_key k JOIN account a ON a.id = k.account_id
   WHERE $1::text IS NULL OR a.name = $1
   ORDER BY a.name, k.created_at, k.id`,
);

/** The keys of the account of this name, or of all, by account and age. */
export function listApiKeys(db: Queryable, accountName?: string): Promise<ListedApiKey[]> {
  return db.query(LIST_KEYS, [accountName ?? null]);
}

/** An account with its counts. */
export interface ListedAccount {
  name: string;
  createdAt: Date;
  /** Keys that are neither revoked nor expired. */
  keys: number;
  webhooks: number;
  /** Active alerts. */
  alerts: number;
  wallets: number;
}

const LIST_ACCOUNTS = sql(
  'list_accounts',
  `SELECT a.name, a.created_at,
     (SELECT count(*)::int FROM api_key k WHERE k.account_id = a.id AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now())) AS keys,
     (SELECT count(*)::int FROM webhook_subscription s WHERE s.account_id = a.id AND s.deleted_at IS NULL) AS webhooks,
     (SELECT count(*)::int FROM alert t WHERE t.account_id = a.id AND t.status = 'active') AS alerts,
     (SELECT count(*)::int FROM wallet w WHERE w.account_id = a.id AND w.deleted_at IS NULL) AS wallets
   FROM account a ORDER BY a.name`,
);

/** Every account, by name. */
export function listAccounts(db: Queryable): Promise<ListedAccount[]> {
  return db.query(LIST_ACCOUNTS);
}
