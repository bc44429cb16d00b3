import { KEY_FIELDS, type ListedApiKey } from '../accounts/key-lists.ts';
import { type AccountQuotas, QUOTA_COLUMNS } from '../accounts/quotas.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A key with its account. */
export interface OpsKey extends ListedApiKey {
  accountId: bigint;
}

/** The cursor of a list of keys: the next page starts after this key. */
interface OpsKeyCursor {
  /** Epoch microseconds, the precision of Postgres. */
  createdMicros: string;
  id: string;
}

const MICROS = '(extract(epoch FROM k.created_at) * 1000000)::bigint';
const LIST_KEYS = sql(
  'ops_list_keys',
  `SELECT ${KEY_FIELDS}, k.account_id, ${MICROS}::text AS created_micros
   FROM api_key k JOIN account a ON a.id = k.account_id
   WHERE ($1::text IS NULL OR a.name = $1) AND ($2::boolean OR k.revoked_at IS NULL)
     AND ($3::bigint IS NULL OR (${MICROS}, k.id) < ($3::bigint, $4::text))
   ORDER BY k.created_at DESC, k.id DESC LIMIT $5`,
);

/** Keys, newest first; `next` is set when more follow. */
export async function listOpsKeys(
  db: Queryable,
  filter: { account?: string; isRevokedShown: boolean },
  page: { limit: number; after?: OpsKeyCursor },
): Promise<{ keys: OpsKey[]; next?: OpsKeyCursor }> {
  const rows = await db.query<OpsKey & { createdMicros: string }>(LIST_KEYS, [
    filter.account ?? null,
    filter.isRevokedShown,
    page.after?.createdMicros ?? null,
    page.after?.id ?? null,
    page.limit + 1,
  ]);
  const shown = rows.slice(0, page.limit);
  const keys = shown.map(({ createdMicros: _, ...key }) => key);
  const last = shown.at(-1);
  return rows.length > page.limit && last
    ? { keys, next: { createdMicros: last.createdMicros, id: last.id } }
    : { keys };
}

/** An account with its counts and limits. */
export interface OpsAccount extends AccountQuotas {
  id: bigint;
  name: string;
  createdAt: Date;
  /** Keys that are neither revoked nor expired. */
  liveKeys: number;
}

const LIST_ACCOUNTS = sql(
  'ops_list_accounts',
  `SELECT a.id, a.name, a.created_at, ${QUOTA_COLUMNS},
     (SELECT count(*)::int FROM api_key k WHERE k.account_id = a.id AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())) AS live_keys
   FROM account a WHERE ($1::bigint IS NULL OR a.id = $1) AND ($2::bigint IS NULL OR a.id > $2) ORDER BY a.id LIMIT $3`,
);

/** Accounts, oldest first; `next` is the id to go on behind when more follow. */
export async function listOpsAccounts(
  db: Queryable,
  limit: number,
  after?: bigint,
): Promise<{ accounts: OpsAccount[]; next?: bigint }> {
  const rows = await db.query<OpsAccount>(LIST_ACCOUNTS, [null, after ?? null, limit + 1]);
  const accounts = rows.slice(0, limit);
  const last = accounts.at(-1);
  return rows.length > limit && last ? { accounts, next: last.id } : { accounts };
}

/** One account, or null. */
export async function findOpsAccount(db: Queryable, id: bigint): Promise<OpsAccount | null> {
  const [account] = await db.query<OpsAccount>(LIST_ACCOUNTS, [id, null, 1]);
  return account ?? null;
}
