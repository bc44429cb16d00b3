import { IsNull } from 'typeorm';
import { newId } from '../../domain/values/ids.ts';
import { WalletEntity } from '../db/entities/wallet.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';

/** The view of a wallet for the account that watches it. */
export interface Wallet {
  id: string;
  address: string;
  venue: string;
  label: string | null;
  createdAt: Date;
}

interface NewWallet {
  venue: string;
  /** Normalized by `readWalletAddress`. */
  address: string;
  label?: string;
}

/** Locks the row, new or existing, and so waits for a poll that is writing the wallet. */
const WATCH = sql(
  'watch_wallet',
  `INSERT INTO watched_wallet AS w (venue, address) VALUES ($1, $2)
   ON CONFLICT (venue, address) DO UPDATE SET address = w.address RETURNING pk`,
);

/** Uses the clock after the lock, so that an earlier write of a poll is older than the watch. */
const INSERT_WALLET = sql(
  'insert_wallet',
  `INSERT INTO wallet (id, account_id, watched_pk, label, created_at) VALUES ($1, $2, $3, $4, clock_timestamp())
   ON CONFLICT (account_id, watched_pk) WHERE deleted_at IS NULL DO NOTHING RETURNING created_at`,
);

/** Watches a wallet for an account. Null when the account already watches it. */
export async function createWallet(tx: Tx, accountId: bigint, request: NewWallet): Promise<Wallet | null> {
  const { venue, address, label = null } = request;
  const [watched] = await tx.query<{ pk: bigint }>(WATCH, [venue, address]);
  const id = newId('wal');
  const [made] = await tx.query<{ createdAt: Date }>(INSERT_WALLET, [id, accountId, watched?.pk, label]);
  return made ? { id, address, venue, label, createdAt: made.createdAt } : null;
}

const SELECT_WALLETS = `SELECT a.pk, a.id, w.address, w.venue, a.label, a.created_at
  FROM wallet a JOIN watched_wallet w ON w.pk = a.watched_pk WHERE a.account_id = $1 AND a.deleted_at IS NULL`;
const FIND_WALLET = sql('find_wallet', `${SELECT_WALLETS} AND a.id = $2`);
const LIST_WALLETS = sql(
  'list_wallets',
  `${SELECT_WALLETS} AND ($2::bigint IS NULL OR a.pk < $2) ORDER BY a.pk DESC LIMIT $3`,
);

/** A page of an account's wallets, newest first; `next` is the key to go on behind when more follow. */
export async function listWallets(
  db: Queryable,
  accountId: bigint,
  limit: number,
  after: bigint | undefined,
): Promise<{ wallets: Wallet[]; next?: bigint }> {
  const rows = await db.query<Wallet & { pk: bigint }>(LIST_WALLETS, [accountId, after ?? null, limit + 1]);
  const wallets = rows.slice(0, limit);
  const last = wallets.at(-1);
  return { wallets, ...(rows.length > limit && last && { next: last.pk }) };
}

/** One wallet of an account; null when it is unknown, deleted or of another account. */
export async function findWallet(db: Queryable, accountId: bigint, id: string): Promise<Wallet | null> {
  const [wallet] = await db.query<Wallet>(FIND_WALLET, [accountId, id]);
  return wallet ?? null;
}

/** Locks the watched wallet before its watchers, in the order of all writers, so that two deletions cannot deadlock. */
const LOCK_WATCHED = sql(
  'lock_watched_wallet',
  `SELECT w.pk FROM watched_wallet w WHERE w.pk = (
     SELECT watched_pk FROM wallet WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL) FOR UPDATE`,
);
/** Clears the lease too, so that a poll in flight writes nothing. */
const FORGET_UNWATCHED = sql(
  'forget_unwatched_wallet',
  `UPDATE watched_wallet w SET activity_position = NULL, balance_position = NULL, baseline_at = NULL, polled_at = NULL,
     failures = 0, last_error = NULL, lease_token = NULL, lease_until = NULL
   WHERE w.pk = $1 AND NOT EXISTS (SELECT FROM wallet a WHERE a.watched_pk = w.pk AND a.deleted_at IS NULL)
   RETURNING w.pk`,
);
const FORGET_BALANCES = sql('forget_wallet_balances', `DELETE FROM wallet_balance WHERE watched_pk = $1`);
const FORGET_TRANSACTIONS = sql('forget_wallet_transactions', `DELETE FROM wallet_transaction WHERE watched_pk = $1`);

/**
 * Ends an account's watch. The end of the last watch deletes all data of the wallet: polling stops, and a later watch starts anew. False
 * when the account has no such wallet.
 */
export async function deleteWallet(db: Pick<Database, 'transaction'>, accountId: bigint, id: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const [watched] = await tx.query<{ pk: bigint }>(LOCK_WATCHED, [accountId, id]);
    if (!watched) return false;
    const deletedAt = () => 'clock_timestamp()';
    const ended = await tx.em.getRepository(WalletEntity).update({ accountId, id, deletedAt: IsNull() }, { deletedAt });
    if (ended.affected === 0) return false;
    const forgotten = await tx.query(FORGET_UNWATCHED, [watched.pk]);
    if (forgotten.length === 0) return true;
    await tx.query(FORGET_BALANCES, [watched.pk]);
    await tx.query(FORGET_TRANSACTIONS, [watched.pk]);
    return true;
  });
}
