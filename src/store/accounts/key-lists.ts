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

/** The states of a key. A revoked key that has expired too is revoked. */
export const KEY_STATUSES = ['active', 'expired', 'revoked'] as const;
type KeyStatus = (typeof KEY_STATUSES)[number];

/** A key as its account sees it. */
export interface OwnApiKey extends Omit<ListedApiKey, 'account'> {
  status: KeyStatus;
}

/** The place of a key in the list of its account. */
interface KeyPlace {
  /** Epoch microseconds, the precision of Postgres. */
  createdMicros: string;
  id: string;
}

const STATUS = `CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= $2 THEN 'expired' ELSE 'active' END`;
const OWN_FIELDS = `k.id, k.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, ${STATUS} AS status`;

const LIST_OWN = sql(
  'list_keys_of_account',
  `SELECT ${OWN_FIELDS}, (extract(epoch FROM k.created_at) * 1000000)::bigint::text AS created_micros
   FROM api_key k
   WHERE k.account_id = $1 AND ($3::text[] IS NULL OR ${STATUS} = ANY ($3))
     AND ($4::bigint IS NULL
       OR (k.created_at, k.id) < (timestamptz 'epoch' + $4::bigint * interval '1 microsecond', $5::text))
   ORDER BY k.created_at DESC, k.id DESC LIMIT $6`,
);

/** The keys of an account, newest first; `next` is set when more follow. */
export async function listKeysOfAccount(
  db: Queryable,
  accountId: bigint,
  { nowMs, statuses }: { nowMs: number; statuses?: readonly KeyStatus[] | undefined },
  { limit, after }: { limit: number; after?: KeyPlace | undefined },
): Promise<{ keys: OwnApiKey[]; next?: KeyPlace }> {
  const rows = await db.query<OwnApiKey & { createdMicros: string }>(LIST_OWN, [
    accountId,
    new Date(nowMs).toISOString(),
    statuses ?? null,
    after?.createdMicros ?? null,
    after?.id ?? null,
    limit + 1,
  ]);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const keys = shown.map(({ createdMicros: _, ...key }) => key);
  return rows.length > limit && last ? { keys, next: { createdMicros: last.createdMicros, id: last.id } } : { keys };
}

const FIND_OWN = sql(
  'find_key_of_account',
  `SELECT ${OWN_FIELDS} FROM api_key k WHERE k.account_id = $1 AND k.id = $3`,
);

/** One key of an account, or null. */
export async function findKeyOfAccount(
  db: Queryable,
  accountId: bigint,
  id: string,
  nowMs: number,
): Promise<OwnApiKey | null> {
  const [key] = await db.query<OwnApiKey>(FIND_OWN, [accountId, new Date(nowMs).toISOString(), id]);
  return key ?? null;
}

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
