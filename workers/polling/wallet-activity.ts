import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks } from '../../src/observe/failure-streaks.ts';
import { quarantine, removeRecovered } from '../../src/store/catalog/quarantine.ts';
import { isContentRefused } from '../../src/store/db/tx.ts';
import { storedTransactions, tellTransactions, type WalletNews } from '../../src/store/wallets/events.ts';
import { advanceActivity, type WalletLease } from '../../src/store/wallets/watch.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { RejectedRecord } from '../../src/venues/port.ts';
import {
  REJECTED_FOR_VERSION,
  type WalletAdapter,
  type WalletPage,
  type WalletTransaction,
} from '../../src/venues/wallet-port.ts';
import type { JobContext } from '../process/define.ts';
import { countUnstored } from './polling.ts';

/** A wallet that was busy while we were away makes room for the others after so many pages. */
const MAX_ACTIVITY_PAGES = 20;
/** Re-reads that failed, by venue. */
const streaks = new FailureStreaks();

/** Counts of one poll, for its log line. */
export interface WalletReport {
  wallets: number;
  transactions: number;
  /** Rejected records that were read now. */
  recovered: number;
  changes: number;
  events: number;
  failed: number;
}

/** The position after the last page. */
export async function followActivity(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<unknown> {
  const { address, sinceMs } = lease;
  const call = { signal: context.signal, now: context.now };
  let position = lease.activityPosition;
  for (let pages = 0; pages < MAX_ACTIVITY_PAGES && !context.signal.aborted; pages += 1) {
    const page = await adapter.pollActivity({ address, sinceMs }, position, call);
    await takeActivity(context, lease, page, position, report);
    position = page.position;
    if (!page.more) break;
  }
  return position;
}

/**
 * Reads the transactions again that earlier releases rejected for their version, page by page. A failure is not charged to
 * the wallet: its live walk is over, and the re-read continues at the next poll.
 */
export async function rereadActivity(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  from: unknown,
  report: WalletReport,
): Promise<void> {
  const call = { signal: context.signal, now: context.now };
  const areStored = (ids: readonly string[]) => storedTransactions(context.db, lease, ids);
  const wallet = { address: lease.address, sinceMs: lease.sinceMs, areStored };
  let position = from;
  for (let pages = 0; pages < MAX_ACTIVITY_PAGES && !context.signal.aborted; pages += 1) {
    let page: WalletPage<WalletTransaction> | undefined;
    try {
      page = await adapter.rereadActivity?.(wallet, position, call);
    } catch (error) {
      if (!(error instanceof VenueError) || isHostAway(error)) throw error;
      const { inARow, shouldLog } = streaks.failed(lease.venue);
      context.log[shouldLog ? 'warn' : 'debug']({ venue: lease.venue, inARow, err: error }, 'wallet not re-read');
      return;
    }
    if (!page) return;
    streaks.succeeded(lease.venue);
    await takeActivity(context, lease, page, position, report);
    position = page.position;
    if (page.more) continue;
    context.log.info({ venue: lease.venue, watchedWallet: String(lease.pk) }, 'wallet re-read from its start');
    return;
  }
}

/** Stores a page, and reports its news after the commit. */
async function takeActivity(
  context: JobContext,
  lease: WalletLease,
  page: WalletPage<WalletTransaction>,
  from: unknown,
  report: WalletReport,
): Promise<void> {
  const { venue } = lease;
  const counted = { venue, kind: 'wallets' as const, page };
  // Writing may add rejections to the page; they are not duplicates.
  const readable = page.records.length + page.rejected.length;
  const written = await countUnstored(context, counted, () => writeActivity(context, lease, page, from));
  const found = written.reduce((sum, { news }) => sum + news.found, 0);
  const duplicates = Math.max(0, readable - page.rejected.length - found);
  context.metrics.duplicateRecords.inc({ venue, kind: 'wallets' }, duplicates);
  for (const { news, recovered } of written) {
    report.transactions += news.found;
    report.events += news.events;
    report.recovered += recovered;
    context.producer.wakeDeliveries(news.subscriptionPks);
    context.metrics.ingestedRows.inc({ venue, kind: 'wallet_transactions' }, news.found);
    if (recovered === 0) continue;
    context.metrics.recoveredRecords.inc({ venue, kind: 'wallets', reason: REJECTED_FOR_VERSION }, recovered);
    context.log.info({ venue, recovered, events: news.events }, 'rejected transactions recovered');
  }
  countRejected(context, venue, page.rejected);
}

interface Written {
  news: WalletNews;
  /** Records that left the quarantine. */
  recovered: number;
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
): Promise<Written[]> {
  const write = (records: readonly WalletTransaction[], rejected: readonly RejectedRecord[], position: unknown) =>
    db.transaction(async (tx): Promise<Written> => {
      await advanceActivity(tx, lease, position);
      await quarantine(tx, lease.venue, rejected);
      const group = { venue: lease.venue, kind: 'wallets', reason: REJECTED_FOR_VERSION };
      const ids = records.map(({ transactionId }) => transactionId);
      const recovered = await removeRecovered(tx, group, ids);
      return { news: await tellTransactions(tx, lease, records), recovered };
    });
  try {
    return [await write(page.records, page.rejected, page.position)];
  } catch (error) {
    if (!isContentRefused(error) || page.records.length === 0) throw error;
  }
  const told: Written[] = [];
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

export function countRejected({ metrics }: JobContext, venue: string, rejected: readonly RejectedRecord[]): void {
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind: 'wallets', reason });
}

/** True when the host takes no requests at present, whichever wallet they are for. A 403 refuses the client as such. */
export function isHostAway({ code, statusCode }: VenueError): boolean {
  return ['circuit_open', 'rate_limited', 'aborted'].includes(code) || statusCode === 403;
}
