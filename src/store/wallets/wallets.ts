import { IsNull } from 'typeorm';
import { newId } from '../../domain/values/ids.ts';
import { WalletEntity } from '../db/entities/wallet.ts';
import { type Lease, leaseEnd, leasesIn, positionText } from '../db/leases.ts';
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

const WALLET_LEASE_SECONDS = 30;
/** Concurrent polls of wallets of one venue, over all processes: the claim itself counts them. */
const MAX_WALLETS_IN_FLIGHT = 8;
/** Each consecutive failure doubles the interval of a wallet, up to this many times. */
const MAX_DOUBLINGS = 4;

/** While a poll holds this lease, no other poll of this wallet runs. */
export interface WalletLease extends Lease {
  pk: bigint;
  address: string;
  /** The time of the claim by the database clock, as text to keep microseconds. */
  claimedAt: string;
  /** The start of the oldest current watch, epoch milliseconds. */
  sinceMs: number;
  /** The adapter's own JSON, from which the walk over its transactions continues; null at first. */
  activityPosition: unknown;
  /** `claimedAt` of the latest complete read of its balances; null before the first. */
  balancesReadAt: string | null;
  failures: number;
}

export const WALLET_LEASES = leasesIn<WalletLease>({
  table: 'watched_wallet',
  name: 'wallet_lease',
  key: ['pk'],
  seconds: WALLET_LEASE_SECONDS,
  failuresColumn: 'failures',
  subject: ({ venue }) => `a wallet of ${venue}`,
});

/** The CTE is materialized: Postgres may run a subquery with a limit again for each row of an outer scan, and so lease more rows. */
const CLAIM = sql(
  'claim_wallets',
  `WITH due AS MATERIALIZED (
     SELECT d.pk FROM watched_wallet d
     WHERE d.venue = $1 AND (d.lease_until IS NULL OR d.lease_until < clock_timestamp())
       AND (d.polled_at IS NULL OR d.polled_at
         + $4 * (2 ^ least(d.failures, ${MAX_DOUBLINGS})) * interval '1 millisecond' <= clock_timestamp())
       AND EXISTS (SELECT FROM wallet a WHERE a.watched_pk = d.pk AND a.deleted_at IS NULL)
     ORDER BY d.polled_at NULLS FIRST, d.pk
     LIMIT least($3::bigint, greatest(0, ${MAX_WALLETS_IN_FLIGHT} - (
       SELECT count(*) FROM watched_wallet WHERE venue = $1 AND lease_until >= clock_timestamp())))
     FOR UPDATE SKIP LOCKED)
   UPDATE watched_wallet w SET lease_token = $2, polled_at = clock_timestamp(), lease_until = ${leaseEnd(WALLET_LEASE_SECONDS)}
   FROM due WHERE w.pk = due.pk
   RETURNING w.pk, w.address, w.activity_position, w.balance_position, w.failures, w.polled_at::text AS claimed_at,
     (SELECT min(a.created_at) FROM wallet a WHERE a.watched_pk = w.pk AND a.deleted_at IS NULL) AS since`,
);

interface ClaimRow {
  pk: bigint;
  address: string;
  activityPosition: unknown;
  balancePosition: { readAt?: string } | null;
  failures: number;
  claimedAt: string;
  since: Date | null;
}

/**
 * Claims up to `limit` watched wallets of a venue that no poll claimed for `everyMs`, longest waiting first, and skips leased ones. Each
 * wallet has one lease, regardless of the number of watching accounts.
 */
export async function claimWallets(
  db: Queryable,
  request: { venue: string; token: string; limit: number; everyMs: number },
): Promise<WalletLease[]> {
  const { venue, token, limit, everyMs } = request;
  const rows = await db.query<ClaimRow>(CLAIM, [venue, token, limit, everyMs]);
  return rows.map((row) => ({
    pk: row.pk,
    venue,
    address: row.address,
    token,
    claimedAt: row.claimedAt,
    sinceMs: row.since?.getTime() ?? Date.parse(row.claimedAt),
    activityPosition: row.activityPosition,
    balancesReadAt: row.balancePosition?.readAt ?? null,
    failures: row.failures,
  }));
}

const moveActivity = WALLET_LEASES.advancing(
  'advance_wallet_activity',
  (position) => `activity_position = ${position}::jsonb`,
);

/**
 * Advances the walk over the transactions, in the transaction that writes its page. The statement locks the wallet, so that concurrent
 * changes of its watchers wait.
 * @throws LeaseLostError when another poll took over, or when the last watch of the wallet has ended.
 */
export function advanceActivity(tx: Queryable, lease: WalletLease, position: unknown): Promise<void> {
  return moveActivity(tx, lease, positionText(position));
}

const moveBalances = WALLET_LEASES.advancing(
  'advance_wallet_balances',
  (readAt) => `balance_position = jsonb_build_object('readAt', ${readAt}::text),
     baseline_at = coalesce(baseline_at, clock_timestamp())`,
);

/** Like `advanceActivity`, for a complete read of the balances, in the transaction that compares it. */
export function advanceBalances(tx: Queryable, lease: WalletLease): Promise<void> {
  return moveBalances(tx, lease, lease.claimedAt);
}

const noteAnswer = WALLET_LEASES.advancing(
  'note_wallet_answer',
  (at) => `balance_position = coalesce(balance_position, '{}') || jsonb_build_object('answeredAt', ${at}::text)`,
);

/** Notes a poll that the venue answered, although its balances could not be compared. */
export function noteBalancesAnswered(tx: Queryable, lease: WalletLease): Promise<void> {
  return noteAnswer(tx, lease, lease.claimedAt);
}

/** Rows per transaction. */
const BATCH = 1_000;

const PRUNE_WALLETS = sql(
  'prune_wallets',
  `WITH gone AS MATERIALIZED (
     SELECT pk FROM wallet WHERE deleted_at < $1::timestamptz ORDER BY pk LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
   DELETE FROM wallet a USING gone WHERE a.pk = gone.pk RETURNING 1`,
);

/** With this lock no account can begin to watch the wallet. */
const LOCK_UNWATCHED = sql(
  'lock_unwatched_wallets',
  `SELECT w.pk FROM watched_wallet w WHERE w.created_at < $1::timestamptz
     AND NOT EXISTS (SELECT FROM wallet a WHERE a.watched_pk = w.pk)
   ORDER BY w.pk LIMIT ${BATCH} FOR UPDATE OF w SKIP LOCKED`,
);

/** A later statement than the lock, so that it sees the watches that were committed before. */
const PRUNE_WATCHED = sql(
  'prune_watched_wallets',
  `DELETE FROM watched_wallet w WHERE w.pk = ANY ($1::bigint[])
     AND NOT EXISTS (SELECT FROM wallet a WHERE a.watched_pk = w.pk) RETURNING 1`,
);

/** Deletes watches that ended before this time, epoch milliseconds, and the wallets that no account watches any more. */
export async function pruneWallets(db: Database, deletedBeforeMs: number, signal?: AbortSignal): Promise<number> {
  const before = new Date(deletedBeforeMs).toISOString();
  let pruned = 0;
  for (let isMore = true; isMore && !signal?.aborted; ) {
    const batch = await db.transaction(async (tx) => {
      const wallets = (await tx.query(PRUNE_WALLETS, [before])).length;
      const unwatched = (await tx.query<{ pk: bigint }>(LOCK_UNWATCHED, [before])).map(({ pk }) => pk);
      return { wallets, watched: (await tx.query(PRUNE_WATCHED, [unwatched])).length };
    });
    pruned += batch.wallets;
    isMore = batch.wallets === BATCH || batch.watched === BATCH;
  }
  return pruned;
}
