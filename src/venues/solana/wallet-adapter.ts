import type { VenueObserver } from '../observer.ts';
import { createReport } from '../report.ts';
import type { WalletAdapter } from '../wallet-port.ts';
import { ACTIVITY_SETTINGS, type ActivityWalkSettings, readActivityPage } from './activity-walk.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { readBalances } from './read-balances.ts';
import { createRpcClient } from './rpc-client.ts';

/** Wallets by a Solana JSON-RPC node. The identity of a transaction is its signature. */
export function createSolanaWallets(options: {
  /** May hold a key in its path or its query. */
  url: string;
  http?: SolanaHttpSettings;
  activity?: Partial<ActivityWalkSettings>;
  observer?: VenueObserver;
}): WalletAdapter {
  const client = createRpcClient(options);
  const settings = { ...ACTIVITY_SETTINGS, ...options.activity };
  const report = createReport(SOLANA, options.observer);
  return {
    venue: SOLANA,
    async pollActivity(wallet, position, context) {
      const { truncated, ...page } = await readActivityPage(client, wallet, position, settings, context);
      report.truncated('wallets', truncated);
      report.received('wallets', page.records.length + page.rejected.length);
      return page;
    },
    pollBalances: (address, _position, context) => readBalances(client, address, context.signal),
    close: () => client.close(),
  };
}
