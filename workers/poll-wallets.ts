import { asError } from '../src/domain/errors.ts';
import { newToken } from '../src/domain/ids.ts';
import { isWorthALine } from '../src/observe/failure-streaks.ts';
import { JOBS } from '../src/queues/jobs.ts';
import { quarantine } from '../src/store/quarantine.ts';
import { isContentRefused, isDatabaseUnavailable } from '../src/store/tx.ts';
import { tellBalances, tellTransactions, type WalletNews } from '../src/store/wallet-events.ts';
import {
  abandonWallet,
  advanceActivity,
  advanceBalances,
  claimWallets,
  releaseWallet,
  renewWalletLease,
  WALLET_LEASE_SECONDS,
  type WalletLease,
  WalletLeaseLostError,
} from '../src/store/wallet-watch.ts';
import { VenueError } from '../src/venues/errors.ts';
import type { RejectedRecord } from '../src/venues/port.ts';
import type { WalletAdapter, WalletPage, WalletTransaction } from '../src/venues/wallet-port.ts';
import { defineJob, type JobContext } from './define.ts';
import { countUnstored } from './polling.ts';
import { readBalances } from './wallet-balances.ts';

/** Wallets at once in one job. */
const AT_ONCE = 4;
/** Half of the deadline: what is begun then can end. */
const CLAIM_MS = JOBS['poll-wallets'].deadlineMs / 2;
/** A wallet that was busy while we were away makes room for the others after so many pages. */
const MAX_ACTIVITY_PAGES = 20;

interface Report {
  wallets: number;
  transactions: number;
  changes: number;
  events: number;
  failed: number;
}

/**
 * Looks at the watched wallets of a venue that are due, each under a lease of its own, those that wait longest first, until
 * none is due (DESIGN section 8). A page of transactions is one transaction with the move of the wallet's position, and a
 * complete read of its balances is one with what it is compared with: dying anywhere reads again, and tells nothing twice.
 */
export const pollWallets = defineJob('poll-wallets', async ({ venue }, context) => {
  const adapter = context.walletAdapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const report: Report = { wallets: 0, transactions: 0, changes: 0, events: 0, failed: 0 };
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
  report: Report,
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
    await followActivity(context, adapter, lease, report);
    if (!context.signal.aborted) await compareBalances(context, adapter, lease, report);
    await releaseWallet(context.db, lease, null);
    return true;
  } catch (error) {
    report.failed += 1;
    return await endFailed(context, lease, error);
  } finally {
    clearInterval(heartbeat);
  }
}

async function followActivity(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: Report,
): Promise<void> {
  const { address, sinceMs } = lease;
  const call = { signal: context.signal, now: context.now };
  let position = lease.activityPosition;
  for (let pages = 0; pages < MAX_ACTIVITY_PAGES && !context.signal.aborted; pages += 1) {
    const page = await adapter.pollActivity({ address, sinceMs }, position, call);
    const counted = { venue: lease.venue, kind: 'wallets' as const, page };
    const readable = page.records.length + page.rejected.length;
    const told = await countUnstored(context, counted, () => writeActivity(context, lease, page, position));
    const found = told.reduce((sum, news) => sum + news.found, 0);
    // Rejections that were added by writing are no duplicates.
    const duplicates = readable - page.rejected.length - found;
    context.metrics.duplicateRecords.inc({ venue: lease.venue, kind: 'wallets' }, Math.max(0, duplicates));
    for (const news of told) {
      report.transactions += news.found;
      report.events += news.events;
      context.producer.wakeDeliveries(news.subscriptionPks);
      context.metrics.ingestedRows.inc({ venue: lease.venue, kind: 'wallet_transactions' }, news.found);
    }
    countRejected(context, lease.venue, page.rejected);
    position = page.position;
    if (!page.more) return;
  }
}

/**
 * Stores a page and moves the position. When Postgres refuses the content, its records are written one by one with the position
 * where it was, and those it refuses are quarantined: one bad row must not hold up a wallet.
 */
async function writeActivity(
  { db }: JobContext,
  lease: WalletLease,
  page: WalletPage<WalletTransaction>,
  from: unknown,
): Promise<WalletNews[]> {
  const write = (records: readonly WalletTransaction[], rejected: readonly RejectedRecord[], position: unknown) =>
    db.transaction(async (tx) => {
      await advanceActivity(tx, lease, position);
      await quarantine(tx, lease.venue, rejected);
      return tellTransactions(tx, lease, records);
    });
  try {
    return [await write(page.records, page.rejected, page.position)];
  } catch (error) {
    if (!isContentRefused(error) || page.records.length === 0) throw error;
  }
  const told: WalletNews[] = [];
  for (const record of page.records) {
    try {
      told.push(await write([record], [], from));
    } catch (error) {
      if (!isContentRefused(error)) throw error;
      page.rejected.push({
        kind: 'wallets',
        recordId: record.transactionId,
        reason: 'refused_by_store',
        detail: asError(error).message,
        sample: JSON.stringify(record),
      });
    }
  }
  told.push(await write([], page.rejected, page.position));
  return told;
}

async function compareBalances(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: Report,
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

function countRejected({ metrics }: JobContext, venue: string, rejected: readonly RejectedRecord[]): void {
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind: 'wallets', reason });
}

/**
 * A wallet that cannot be read waits longer, and keeps nobody else; what is not its fault is not charged to it. False when there
 * is no use in asking the venue for others.
 */
async function endFailed(context: JobContext, lease: WalletLease, thrown: unknown): Promise<boolean> {
  const error = asError(thrown);
  if (!(thrown instanceof VenueError) && isDatabaseUnavailable(thrown)) throw error;
  if (thrown instanceof WalletLeaseLostError) return true;
  const isVenueAway = thrown instanceof VenueError && ['circuit_open', 'rate_limited', 'aborted'].includes(thrown.code);
  if (isVenueAway || context.stopping.aborted) {
    await abandonWallet(context.db, lease);
    return false;
  }
  await releaseWallet(context.db, lease, error.message);
  const failures = lease.failures + 1;
  if (isWorthALine(failures)) context.log.warn({ venue: lease.venue, failures, err: error }, 'wallet not read');
  return true;
}
