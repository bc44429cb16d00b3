import { type Lease, leaseEnd, leasesIn, positionText } from '../db/leases.ts';
import { type Queryable, sql } from '../db/tx.ts';

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
