import { asError } from '../../src/domain/values/errors.ts';
import { newToken } from '../../src/domain/values/ids.ts';
import { FailureStreaks, shouldLog } from '../../src/observe/failure-streaks.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { tellBalances } from '../../src/store/wallets/events.ts';
import {
  abandonWallet,
  advanceBalances,
  claimWallets,
  releaseWallet,
  renewWalletLease,
  WALLET_LEASE_SECONDS,
  type WalletLease,
  WalletLeaseLostError,
} from '../../src/store/wallets/watch.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { WalletAdapter } from '../../src/venues/wallet-port.ts';
import {
  countRejected,
  followActivity,
  isHostAway,
  rereadActivity,
  type WalletReport,
} from '../polling/wallet-activity.ts';
import { readBalances } from '../polling/wallet-balances.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Wallets at once in one job. */
const AT_ONCE = 4;
/** Half of the deadline: what is begun then can end. */
const CLAIM_MS = JOBS['poll-wallets'].deadlineMs / 2;
/** By venue: polls that ended early because the host takes no requests. */
const streaks = new FailureStreaks();

/**
 * Looks at the watched wallets of a venue that are due, each under a lease of its own, those that wait longest first, until
 * none is due (DESIGN section 8). A page of transactions is one transaction with the move of the wallet's position, and a
 * complete read of its balances is one with what it is compared with: dying anywhere reads again, and tells nothing twice.
 */
export const pollWallets = defineJob('poll-wallets', async ({ venue }, context) => {
  const adapter = context.walletAdapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const report: WalletReport = { wallets: 0, transactions: 0, recovered: 0, changes: 0, events: 0, failed: 0 };
  const everyMs = context.config.pollMs.wallets;
  const enoughAtMs = performance.now() + CLAIM_MS;
  let isVenueAway = false;
  const worker = async (): Promise<void> => {
    while (!isVenueAway && !context.signal.aborted && performance.now() < enoughAtMs) {
      const [lease] = await claimWallets(context.db, { venue, token: newToken(), limit: 1, everyMs });
      if (!lease) return;
      report.wallets += 1;
      if (!(await pollWallet(context, adapter, lease, report))) isVenueAway = true;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  const fault = ends.find((end) => end.status === 'rejected');
  if (fault) throw asError(fault.reason);
  return { ...report };
});

/** False when there is no use in asking the venue for others. */
async function pollWallet(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<boolean> {
  const heartbeat = setInterval(
    () => {
      renewWalletLease(context.db, lease).catch((error: unknown) =>
        context.log.warn({ err: error }, 'lease not renewed'),
      );
    },
    (WALLET_LEASE_SECONDS * 1000) / 3,
  );
  try {
    const position = await followActivity(context, adapter, lease, report);
    if (!context.signal.aborted) await compareBalances(context, adapter, lease, report);
    if (!context.signal.aborted) await rereadActivity(context, adapter, lease, position, report);
    await releaseWallet(context.db, lease, null);
    streaks.succeeded(lease.venue);
    return true;
  } catch (error) {
    report.failed += 1;
    return await endFailed(context, lease, error);
  } finally {
    clearInterval(heartbeat);
  }
}

async function compareBalances(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<void> {
  const call = { signal: context.signal, now: context.now };
  const { rejected, read } = await readBalances(adapter, lease.address, call);
  countRejected(context, lease.venue, rejected);
  // Balances are compared as a whole, not stored one by one: only rejected ones count.
  context.metrics.receivedRecords.inc({ venue: lease.venue, kind: 'wallets' }, rejected.length);
  if (!read) {
    context.log.debug({ venue: lease.venue }, 'balances not compared: they changed while they were read');
    return;
  }
  const news = await context.db.transaction(async (tx) => {
    await advanceBalances(tx, lease);
    await quarantine(tx, lease.venue, rejected);
    return tellBalances(tx, lease, read);
  });
  report.changes += news.found;
  report.events += news.events;
  context.producer.wakeDeliveries(news.subscriptionPks);
  context.metrics.ingestedRows.inc({ venue: lease.venue, kind: 'wallet_balances' }, news.found);
}

/**
 * A wallet that cannot be read waits longer, and keeps nobody else; what is not its fault is not charged to it. False when there
 * is no use in asking the venue for others.
 */
async function endFailed(context: JobContext, lease: WalletLease, thrown: unknown): Promise<boolean> {
  const error = asError(thrown);
  if (!(thrown instanceof VenueError) && isDatabaseUnavailable(thrown)) throw error;
  if (thrown instanceof WalletLeaseLostError) return true;
  const isAway = thrown instanceof VenueError && isHostAway(thrown);
  if (isAway || context.stopping.aborted) {
    await abandonWallet(context.db, lease);
    if (isAway && thrown.code !== 'aborted') {
      const { inARow, shouldLog } = streaks.failed(lease.venue);
      if (shouldLog) context.log.warn({ venue: lease.venue, inARow, err: error }, 'wallets not read: the host is away');
    }
    return false;
  }
  await releaseWallet(context.db, lease, error.message);
  const failures = lease.failures + 1;
  if (shouldLog(failures)) context.log.warn({ venue: lease.venue, failures, err: error }, 'wallet not read');
  return true;
}
