import { FailureStreaks, failureFields } from '../../src/observe/failures.ts';
import { removeRecovered } from '../../src/store/catalog/quarantine.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { emitTransactions, storedTransactions, type WalletNews } from '../../src/store/wallets/events.ts';
import { advanceActivity, type WalletLease } from '../../src/store/wallets/wallets.ts';
import { isOfHost, VenueError } from '../../src/venues/errors.ts';
import {
  REJECTED_FOR_VERSION,
  type WalletAdapter,
  type WalletPage,
  type WalletTransaction,
} from '../../src/venues/wallet-port.ts';
import type { PageStore } from '../ingest/store-page.ts';
import type { JobContext } from '../process/define.ts';
import { type PageSource, walkPages } from './poll.ts';

/** A busy wallet makes room for the others after so many pages. */
const MAX_ACTIVITY_PAGES = 20;
/** Re-reads that failed, by venue. */
const streaks = new FailureStreaks();

/** Counts of one poll, for its log line. */
export interface WalletReport {
  wallets: number;
  transactions: number;
  /** Rejected records that a later release could read. */
  recovered: number;
  changes: number;
  events: number;
  failed: number;
}

interface WrittenActivity {
  written: number;
  news: WalletNews;
  /** Records that left the quarantine. */
  recovered: number;
}

type ActivityPage = WalletPage<WalletTransaction>;

/** Stores new transactions of a wallet with their events and deliveries. */
function activityStore(context: JobContext, lease: WalletLease, report: WalletReport) {
  const { venue } = lease;
  const { log, metrics, producer } = context;
  const version = { venue, kind: 'wallets', reason: REJECTED_FOR_VERSION };
  return {
    kind: 'wallets',
    rowKind: 'wallet_transactions',
    async write(tx, records) {
      const ids = records.map(({ transactionId }) => transactionId);
      const recovered = await removeRecovered(tx, version, ids);
      const news = await emitTransactions(tx, lease, records);
      return { written: news.found, news, recovered };
    },
    wake(parts) {
      for (const { news, recovered } of parts) {
        report.transactions += news.found;
        report.events += news.events;
        report.recovered += recovered;
        producer.wakeDeliveries(news.subscriptionPks);
        if (recovered === 0) continue;
        metrics.recoveredRecords.inc(version, recovered);
        log.info({ venue, recovered, events: news.events }, 'rejected transactions recovered');
      }
    },
  } satisfies PageStore<WalletTransaction, WrittenActivity>;
}

function walkActivity(
  context: JobContext,
  lease: WalletLease,
  position: unknown,
  source: PageSource<WalletTransaction, WrittenActivity, ActivityPage>,
) {
  const { venue } = lease;
  const advance = (tx: Tx, moved: unknown) => advanceActivity(tx, lease, moved);
  return walkPages(context, source, { venue, position, advance }, MAX_ACTIVITY_PAGES);
}

/** Reads new transactions of a wallet. Returns the position after the last page. */
export async function followActivity(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  report: WalletReport,
): Promise<unknown> {
  const { address, sinceMs } = lease;
  const { position } = await walkActivity(context, lease, lease.activityPosition, {
    ...activityStore(context, lease, report),
    fetch: (from, call) => adapter.pollActivity({ address, sinceMs }, from, call),
  });
  return position;
}

/**
 * Reads again the transactions that earlier releases rejected for their version. A failure is not charged to the wallet, because
 * its live walk succeeded. The re-read continues at the next poll.
 */
export async function rereadActivity(
  context: JobContext,
  adapter: WalletAdapter,
  lease: WalletLease,
  position: unknown,
  report: WalletReport,
): Promise<void> {
  const { address, sinceMs, venue } = lease;
  const { db, log } = context;
  const areStored = (ids: readonly string[]) => storedTransactions(db, lease, ids);
  const store = activityStore(context, lease, report);
  await walkActivity(context, lease, position, {
    ...store,
    async fetch(from, call) {
      try {
        const page = await adapter.rereadActivity?.({ address, sinceMs, areStored }, from, call);
        if (page) streaks.succeeded(venue);
        return page;
      } catch (error) {
        if (!(error instanceof VenueError) || isHostAway(error)) throw error;
        const { inARow, shouldLog } = streaks.failed(venue);
        log[shouldLog ? 'warn' : 'debug']({ venue, inARow, ...failureFields(error) }, 'wallet not re-read');
        return undefined;
      }
    },
    wake(parts, page) {
      store.wake(parts);
      if (!page.more) log.info({ venue, watchedWallet: String(lease.pk) }, 'wallet re-read from its start');
    },
  });
}

/** True when the host accepts no requests for any wallet at present. A 403 refuses the client as such. */
export function isHostAway(error: VenueError): boolean {
  return isOfHost(error) || error.statusCode === 403;
}
