import { apiKeyId, generateApiKey, hashApiKey, isSameHash, SCOPES, type Scope } from '../../domain/values/api-key.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { AccountEntity } from '../db/entities/account.ts';
import { ApiKeyEntity } from '../db/entities/api-key.ts';
import { type Queryable, type Repositories, sql, type Tx } from '../db/tx.ts';

/** The account of BOOTSTRAP_API_KEY. */
const BOOTSTRAP_ACCOUNT = 'bootstrap';

/** The fields of a key that a request needs. */
export interface StoredApiKey {
  id: string;
  accountId: bigint;
  scopes: readonly string[];
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** Limits of the account, null for the default of the configuration. */
  ratePerMinute: number | null;
  coldReadsPerMinute: number | null;
}

const FIND_API_KEY = sql(
  'find_api_key',
  `SELECT k.id, k.account_id, k.secret_hash, k.scopes, k.expires_at, k.revoked_at, a.rate_per_minute, a.cold_reads_per_minute
   FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = ANY($1) OR k.secret_hash = ANY($2)`,
);

/** Compared when the offered id is unknown, so that known and unknown ids take the same time. */
const NO_HASH = Buffer.alloc(32);

/** The stored key that each of `keys` is, or null. Expiry and revocation are for the caller to judge. */
export async function findApiKeys(db: Queryable, keys: readonly string[]): Promise<(StoredApiKey | null)[]> {
  const offered = keys.map((key) => ({ id: apiKeyId(key), hash: hashApiKey(key) }));
  const rows = await db.query<StoredApiKey & { secretHash: Buffer }>(FIND_API_KEY, [
    offered.map(({ id }) => id),
    offered.map(({ hash }) => hash),
  ]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const byHash = new Map(rows.map((row) => [row.secretHash.toString('hex'), row]));
  return offered.map(({ id, hash }) => {
    const row = byHash.get(hash.toString('hex')) ?? byId.get(id);
    if (!isSameHash(row?.secretHash ?? NO_HASH, hash) || !row) return null;
    const { secretHash: _, ...stored } = row;
    return stored;
  });
}

const FIND_VALID_KEYS = sql(
  'find_valid_keys',
  `SELECT id, scopes FROM api_key
   WHERE id = ANY ($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
);

/** The scopes of those of these keys that are neither revoked nor expired, by the id of the key. */
export async function findValidKeys(db: Queryable, ids: readonly string[]): Promise<Map<string, readonly string[]>> {
  const rows = await db.query<{ id: string; scopes: readonly string[] }>(FIND_VALID_KEYS, [ids]);
  return new Map(rows.map(({ id, scopes }) => [id, scopes]));
}

/** Locks keys in order, so that two API processes cannot deadlock when they write at once. */
const TOUCH_API_KEYS = sql(
  'touch_api_keys',
  `WITH used AS (SELECT * FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)),
   locked AS (SELECT k.id, u.at FROM api_key k JOIN used u USING (id) ORDER BY k.id FOR NO KEY UPDATE OF k)
   UPDATE api_key k SET last_used_at = greatest(k.last_used_at, l.at) FROM locked l WHERE k.id = l.id`,
);

/** Stores when keys were last used: one statement per batch. */
export async function touchApiKeys(db: Queryable, usedAt: ReadonlyMap<string, Date>): Promise<void> {
  if (usedAt.size === 0) return;
  await db.query(TOUCH_API_KEYS, [[...usedAt.keys()], [...usedAt.values()].map((at) => at.toISOString())]);
}

/** The id of the account with this name; created when absent. */
export async function ensureAccount(tx: Tx, name: string): Promise<bigint> {
  const accounts = tx.em.getRepository(AccountEntity);
  await accounts.createQueryBuilder().insert().values({ name }).orIgnore().execute();
  const account = await accounts.findOneBy({ name });
  if (!account) throw new OddswireError('account_missing', 'an account disappeared during its creation');
  return account.id;
}

/**
 * Creates the key of BOOTSTRAP_API_KEY with every scope when it is absent. A revoked key stays revoked. Returns the id of the created key,
 * or null.
 */
export async function ensureBootstrapKey(tx: Tx, key: string): Promise<string | null> {
  const [found] = await findApiKeys(tx, [key]);
  if (found) return null;
  const accountId = await ensureAccount(tx, BOOTSTRAP_ACCOUNT);
  const id = apiKeyId(key);
  const inserted = await tx.em
    .getRepository(ApiKeyEntity)
    .createQueryBuilder()
    .insert()
    .values({ id, accountId, name: 'bootstrap', secretHash: hashApiKey(key), scopes: [...SCOPES] })
    .orIgnore()
    .returning('id')
    .execute();
  return inserted.raw.length === 1 ? id : null;
}

/** The fields of a new key. */
interface NewKeyFields {
  name: string;
  scopes: readonly Scope[];
  expiresAt?: Date;
}

export interface ApiKeyRequest extends NewKeyFields {
  /** Created when absent. */
  accountName: string;
}

/** A new key. Its text appears only here. */
interface MadeApiKey {
  id: string;
  key: string;
  accountId: bigint;
}

/** Creates a key for an account, and the account if it does not exist. Only this result contains the key itself. */
export async function createApiKey(tx: Tx, request: ApiKeyRequest): Promise<MadeApiKey> {
  return addApiKey(tx, await ensureAccount(tx, request.accountName), request);
}

/** The same for an account that exists. */
export async function addApiKey(
  tx: Repositories,
  accountId: bigint,
  { name, scopes, expiresAt }: NewKeyFields,
): Promise<MadeApiKey> {
  const { id, key, hash } = generateApiKey();
  const fields = { id, accountId, name, secretHash: hash, scopes: [...scopes] };
  await tx.em.getRepository(ApiKeyEntity).insert({ ...fields, ...(expiresAt !== undefined && { expiresAt }) });
  return { id, key, accountId };
}

const HOLD_API_KEY = sql(
  'hold_api_key',
  `SELECT scopes, expires_at FROM api_key
   WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) FOR SHARE`,
);

/**
 * The present scopes and the end of a key, or null when it is not valid now. The key stays valid until the end of the transaction: a revocation waits for
 * it.
 */
export async function holdApiKey(tx: Tx, id: string, nowMs: number): Promise<HeldKey | null> {
  const [key] = await tx.query<HeldKey>(HOLD_API_KEY, [id, new Date(nowMs).toISOString()]);
  return key ?? null;
}

export interface HeldKey {
  scopes: readonly string[];
  expiresAt: Date | null;
}

/**
 * Revokes a key, of one account if it is given. All processes reject it within the second for which they cache look-ups. False when the id
 * is unknown.
 */
export async function revokeApiKey({ em }: Repositories, id: string, accountId?: bigint): Promise<boolean> {
  const revokedAt = () => 'coalesce(revoked_at, now())';
  const which = { id, ...(accountId !== undefined && { accountId }) };
  return (await em.getRepository(ApiKeyEntity).update(which, { revokedAt })).affected === 1;
}

/** Keys per statement. */
const BATCH = 1_000;
/** Active keys have a quota; an account with the scope `keys` can make and revoke any number of keys. */
const MAX_ENDED_PER_ACCOUNT = 1_000;

/** A revoked key of BOOTSTRAP_API_KEY stays: without its row the next start would create it again. */
const PRUNE = sql(
  'prune_ended_keys',
  `WITH surplus AS MATERIALIZED (
     SELECT f.id FROM account a CROSS JOIN LATERAL (
       SELECT id FROM api_key WHERE account_id = a.id AND (revoked_at < $2 OR expires_at < $2) AND NOT starts_with(id, 'chosen-')
       ORDER BY created_at DESC, id DESC OFFSET $1) f LIMIT ${BATCH})
   DELETE FROM api_key k USING surplus WHERE k.id = surplus.id RETURNING 1`,
);

/** Deletes the oldest keys of each account that ended before `beforeMs`, beyond the newest `perAccount`; returns their number. */
export async function pruneEndedKeys(
  db: Queryable,
  beforeMs: number,
  { signal, perAccount = MAX_ENDED_PER_ACCOUNT }: { signal?: AbortSignal; perAccount?: number } = {},
): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE, [perAccount, new Date(beforeMs).toISOString()])).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}
