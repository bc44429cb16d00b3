import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks, failureFields, shouldLog } from '../../src/observe/failures.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { type Lease, LeaseLostError, type Leases, newLeaseToken } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { emitBalanceChanges } from '../../src/store/wallets/events.ts';
import {
  advanceBalances,
  claimWallets,
  noteBalancesAnswered,
  WALLET_LEASES,
  type WalletLease,
} from '../../src/store/wallets/wallets.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { WalletAdapter } from '../../src/venues/wallet-port.ts';
import { followActivity, isHostAway, rereadActivity, type WalletReport } from '../polling/wallet-activity.ts';
import { readBalances } from '../polling/wallet-balances.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Concurrent wallets of one job. */
const AT_ONCE = 4;
/** Half of the deadline leaves the last claimed wallet enough time. */
const CLAIM_MS = JOBS['poll-wallets'].deadlineMs / 2;
/** Polls that ended early because the host accepts no requests, by venue. */
const streaks = new FailureStreaks();

/**
 * Polls the due wallets of a venue, the longest unpolled ones first, each under its own lease. A page of transactions is one
 * transaction with the move of the wallet's position, and a complete read of its balances is one with their comparison. So a
 * process that dies reads again, and emits no event twice.
 */
export const pollWallets = defineJob('poll-wallets', async ({ venue }, context) => {
  const adapter = context.walletAdapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const report: WalletReport = { wallets: 0, transactions: 0, recovered: 0, changes: 0, events: 0, failed: 0 };
  const everyMs = context.config.pollMs.wallets;
  const endsAtMs = performance.now() + CLAIM_MS;
  let isVenueAway = false;
  const workers: Promise<void>[] = [];
  const faults: Error[] = [];
  /** Usually no wallet is due, or one: the next worker begins when this one has claimed a wallet. */
  const begin = () => {
    if (workers.length < AT_ONCE) workers.push(work().catch((error: unknown) => void faults.push(asError(error))));
  };
  const work = async (): Promise<void> => {
    let hasFollower = false;
    while (!isVenueAway && !context.signal.aborted && performance.now() < endsAtMs) {
      const token = newLeaseToken(context.presence.key);
      const [lease] = await claimWallets(context.db, { venue, token, limit: 1, everyMs });
      if (!lease) return;
      report.wallets += 1;
      if (!hasFollower) begin();
      hasFollower = true;
      if (!(await pollWallet(context, adapter, lease, report))) isVenueAway = true;
    }
  };
  begin();
  for (const worker of workers) await worker;
  if (faults[0]) throw faults[0];
  return { ...report };
});

/**
 * Returns false when no other wallet of the venue can be polled. A failure is charged to the wallet, which then waits longer,
 * unless the host or the lease is the cause.
 */
async function pollWallet(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<boolean> {
  const { log, signal, stopping } = context;
  const { venue } = lease;
  const isAway = (error: Error) => error instanceof VenueError && isHostAway(error);
  const isCharged = (error: Error) => !isAway(error) && !(error instanceof LeaseLostError);
  const work = async () => {
    const position = await followActivity(context, adapter, lease, report);
    if (!signal.aborted) await compareBalances(context, adapter, lease, report);
    if (!signal.aborted) await rereadActivity(context, adapter, lease, position, report);
  };
  const end = await underLease(context, WALLET_LEASES, lease, work, isCharged);
  if ('result' in end) {
    streaks.succeeded(venue);
    return true;
  }
  report.failed += 1;
  const { error, failures } = end;
  if (shouldLog(failures)) log.warn({ venue, failures, ...failureFields(error) }, 'wallet not read');
  if (!isAway(error)) return error instanceof LeaseLostError || !stopping.aborted;
  if (!(error instanceof VenueError && error.code === 'aborted')) {
    const level = streaks.failed(venue).inARow === 1 ? 'warn' : 'debug';
    log[level]({ venue, ...failureFields(error) }, 'wallets not read: the host is away');
  }
  return false;
}

async function compareBalances(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<void> {
  const { db, log, metrics, producer, signal, now } = context;
  const { venue } = lease;
  const { rejected, read } = await readBalances(adapter, lease.address, { signal, now });
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind: 'wallets', reason });
  // Balances are compared as a whole and not stored one by one, so only the rejected ones count as received.
  metrics.receivedRecords.inc({ venue, kind: 'wallets' }, rejected.length);
  if (!read) {
    await db.transaction((tx) => noteBalancesAnswered(tx, lease));
    log.debug({ venue }, 'balances not compared: they changed during the read');
    return;
  }
  const news = await db.transaction(async (tx) => {
    await advanceBalances(tx, lease);
    await quarantine(tx, venue, rejected);
    return emitBalanceChanges(tx, lease, read);
  });
  report.changes += news.found;
  report.events += news.events;
  producer.wakeDeliveries(news.subscriptionPks);
  metrics.ingestedRows.inc({ venue, kind: 'wallet_balances' }, news.found);
}

/**
 * Runs `work` under a lease that a heartbeat renews. `isCharged`: whether an error counts as a failure in a row. When the database is
 * unavailable this rejects, and the lease ends by itself.
 */
async function underLease<L extends Lease, T>(
  { db, log, stopping }: JobContext,
  leases: Leases<L>,
  lease: L,
  work: () => Promise<T>,
  isCharged: (error: Error) => boolean,
): Promise<{ result: T } | { error: Error; failures: number }> {
  const renew = () => leases.renew(db, lease).catch((error: unknown) => log.warn({ err: error }, 'lease not renewed'));
  const heartbeat = setInterval(renew, (leases.seconds * 1000) / 3);
  try {
    const result = await work();
    await leases.release(db, lease, null);
    return { result };
  } catch (thrown) {
    const error = asError(thrown);
    if (!(error instanceof VenueError) && isDatabaseUnavailable(error)) throw error;
    if (!stopping.aborted && isCharged(error))
      return { error, failures: await leases.release(db, lease, error.message) };
    await leases.abandon(db, lease);
    return { error, failures: 0 };
  } finally {
    clearInterval(heartbeat);
  }
}
