import { OddswireError } from '../../domain/values/errors.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';

/** A killed poller delays a wallet at most this long; a running one renews the lease after every third of it. */
export const WALLET_LEASE_SECONDS = 30;
/** Wallets of a venue in flight at once, over all processes. The claim itself counts them. */
const MAX_WALLETS_UNDER_WAY = 8;
/** The maximum number of doublings of the interval for a wallet that keeps failing. */
const MAX_DOUBLINGS = 4;

/** A wallet that this process may poll until the lease ends. */
export interface WalletLease {
  pk: bigint;
  venue: string;
  address: string;
  token: string;
  /** The time of the claim by the database clock, as text to keep microseconds. */
  claimedAt: string;
  /** The start of the oldest current watch, epoch milliseconds. */
  sinceMs: number;
  /** The position of the walk over its transactions: the adapter's own JSON; null at first. */
  activityPosition: unknown;
  /** The claim time of the latest complete read of its balances; null before the first. */
  balancesReadAt: string | null;
  failures: number;
}

/** Another process took the lease, or the last watch ended: the caller must write nothing. */
export class WalletLeaseLostError extends OddswireError {
  constructor(venue: string) {
    super('lease_lost', `a wallet of ${venue} was taken over while it was polled`, { retryable: true });
  }
}

const CLAIM = sql(
  'claim_wallets',
  `UPDATE watched_wallet w SET lease_token = $2, polled_at = clock_timestamp(),
     lease_until = clock_timestamp() + ${WALLET_LEASE_SECONDS} * interval '1 second'
   WHERE w.pk IN (
     SELECT d.pk FROM watched_wallet d
     WHERE d.venue = $1 AND (d.lease_until IS NULL OR d.lease_until < clock_timestamp())
       AND (d.polled_at IS NULL OR d.polled_at
         + $4 * (2 ^ least(d.failures, ${MAX_DOUBLINGS})) * interval '1 millisecond' <= clock_timestamp())
       AND EXISTS (SELECT FROM wallet a WHERE a.watched_pk = d.pk AND a.deleted_at IS NULL)
     ORDER BY d.polled_at NULLS FIRST, d.pk
     LIMIT least($3::bigint, greatest(0, ${MAX_WALLETS_UNDER_WAY} - (
       SELECT count(*) FROM watched_wallet WHERE venue = $1 AND lease_until >= clock_timestamp())))
     FOR UPDATE SKIP LOCKED)
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
 * Claims up to `limit` watched wallets of a venue that were not polled for `everyMs`, longest waiting first. It skips wallets that
 * another process polls. Each wallet has one lease, regardless of the number of watching accounts.
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

const OURS = `pk = $1 AND lease_token = $2 AND lease_until > clock_timestamp()`;
const RENEWED = `lease_until = clock_timestamp() + ${WALLET_LEASE_SECONDS} * interval '1 second'`;

const ADVANCE_ACTIVITY = sql(
  'advance_wallet_activity',
  `UPDATE watched_wallet SET activity_position = $3::jsonb, ${RENEWED} WHERE ${OURS} RETURNING pk`,
);

/**
 * Advances the walk over the transactions, in the transaction that writes its page. It locks the wallet, so that changes of its watchers
 * wait.
 * @throws WalletLeaseLostError when this process lost the wallet: the caller's transaction must roll back.
 */
export async function advanceActivity(tx: Tx, lease: WalletLease, position: unknown): Promise<void> {
  const text = position === null || position === undefined ? null : JSON.stringify(position);
  const rows = await tx.query(ADVANCE_ACTIVITY, [lease.pk, lease.token, text]);
  if (rows.length === 0) throw new WalletLeaseLostError(lease.venue);
}

const ADVANCE_BALANCES = sql(
  'advance_wallet_balances',
  `UPDATE watched_wallet SET balance_position = jsonb_build_object('readAt', $3::text),
     baseline_at = coalesce(baseline_at, clock_timestamp()), ${RENEWED} WHERE ${OURS} RETURNING pk`,
);

/** Like `advanceActivity`, for a complete read of the balances, in the transaction that compares it. */
export async function advanceBalances(tx: Tx, lease: WalletLease): Promise<void> {
  const rows = await tx.query(ADVANCE_BALANCES, [lease.pk, lease.token, lease.claimedAt]);
  if (rows.length === 0) throw new WalletLeaseLostError(lease.venue);
}

const RENEW = sql('renew_wallet_lease', `UPDATE watched_wallet SET ${RENEWED} WHERE ${OURS}`);

/** Extends the lease during a slow fetch. Has no effect on a lost lease. */
export async function renewWalletLease(db: Queryable, lease: WalletLease): Promise<void> {
  await db.query(RENEW, [lease.pk, lease.token]);
}

const RELEASE = sql(
  'release_wallet',
  `UPDATE watched_wallet SET lease_token = NULL, lease_until = NULL,
     failures = CASE WHEN $3::text IS NULL THEN 0 ELSE failures + 1 END, last_error = $3
   WHERE pk = $1 AND lease_token = $2`,
);

/** Releases the wallet after success, or with the error, after which the next poll waits longer. */
export async function releaseWallet(db: Queryable, lease: WalletLease, error: string | null): Promise<void> {
  await db.query(RELEASE, [lease.pk, lease.token, error === null ? null : scrubText(error.slice(0, 500))]);
}

const ABANDON = sql(
  'abandon_wallet',
  `UPDATE watched_wallet SET lease_token = NULL, lease_until = NULL WHERE pk = $1 AND lease_token = $2`,
);

/** Releases the wallet without recording success or failure, because the fault is not its own. */
export async function abandonWallet(db: Queryable, lease: WalletLease): Promise<void> {
  await db.query(ABANDON, [lease.pk, lease.token]);
}
