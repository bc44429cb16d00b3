import type { VenueObserver } from '../observer.ts';
import { createReport } from '../report.ts';
import type { WalletAdapter } from '../wallet-port.ts';
import { isRereadDue, readRereadPage } from './activity-reread.ts';
import type { ActivityWalkSettings } from './activity-round.ts';
import { readBalances } from './fetch-balances.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { createRereadBudget } from './reread-budget.ts';
import { createRpcClient, PER_SECOND } from './rpc-client.ts';
import { ACTIVITY_SETTINGS, readActivityPage } from './walk-activity.ts';

/** Wallets from a Solana JSON-RPC node. The identity of a transaction is its signature. */
export function createSolanaWallets(options: {
  /** May contain a key in its path or its query. */
  url: string;
  http?: SolanaHttpSettings;
  activity?: Partial<ActivityWalkSettings>;
  observer?: VenueObserver;
  /** Milliseconds without requests after a node answered 403. */
  blockedPauseMs?: number;
}): WalletAdapter {
  const client = createRpcClient(options);
  const settings = { ...ACTIVITY_SETTINGS, ...options.activity };
  const report = createReport(SOLANA, options.observer);
  const budget = createRereadBudget(options.http?.requestsPerSecond ?? PER_SECOND, settings.pageSize);
  return {
    venue: SOLANA,
    async pollActivity(wallet, position, context) {
      const { truncated, ...page } = await readActivityPage(client, wallet, position, settings, context);
      report.truncated('wallets', truncated);
      return report.counted('wallets', page.records.length + page.rejected.length, page);
    },
    async rereadActivity(wallet, position, context) {
      if (!isRereadDue(position, settings) || !budget.isAvailable()) return undefined;
      const { truncated, ...page } = await readRereadPage({ client, budget, settings }, wallet, position, context);
      report.truncated('wallets', truncated);
      return report.counted('wallets', page.records.length + page.rejected.length, page);
    },
    pollBalances: (address, _position, context) => readBalances(client, address, context.signal),
    close: () => client.close(),
  };
}
