import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../../sim/exchange.ts';
import { createSolanaWallets } from '../../../../src/venues/solana/wallet-adapter.ts';
import type { WalletAdapter } from '../../../../src/venues/wallet-port.ts';
import { pollWallets } from '../../../../workers/jobs/poll-wallets.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aWatchedWallet, makeWalletsDue, storedEvents } from '../../../factories/wallets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig } from '../worker-harness.ts';

const SOL = 'So11111111111111111111111111111111111111112';
const EVENTS = ['transaction', 'balance_change'];

const test = useTestDatabase();
let exchange: Exchange;
let adapter: WalletAdapter;
beforeAll(async () => {
  exchange = await startExchange({
    markets: 1,
    liveMarkets: 0,
    historyHours: 0,
    rollingSeconds: 0,
    solanaTraffic: false,
  });
  adapter = createSolanaWallets({ url: exchange.solanaUrl, http: { requestsPerSecond: 10_000, burst: 1_000 } });
});
afterAll(async () => {
  await adapter.close();
  await exchange.close();
});

async function poll(): Promise<unknown> {
  await makeWalletsDue(test.db, 'solana');
  const walletAdapters = new Map([['solana', adapter]]);
  return pollWallets.run(
    { venue: 'solana' },
    jobContext({ db: test.db, config: testConfig(test.url), walletAdapters }),
  );
}

describe('a watched wallet on Solana', () => {
  it('emits each transaction and each changed balance once, and nothing from before the watch', async () => {
    const [me = '', friend = ''] = exchange.solana.people();
    const token = exchange.solana.tokens()[3];
    const owner = await anAccount(test.db);
    await aSubscription(test.db, { accountId: owner, events: EVENTS });
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    expect(await poll()).toMatchObject({ wallets: 1, events: 0, failed: 0 });

    const sent = exchange.solana.transfer({ from: me, to: friend, units: '1000000000' });
    const got = exchange.solana.transfer({ from: friend, to: me, mint: token?.mint, units: '150000000' });
    expect(await poll()).toMatchObject({ transactions: 2, changes: 2, events: 4, failed: 0 });
    const events = await storedEvents(test.db, owner);
    const emitted = events.map(({ type, data }) => ({ event: type, ...data }));
    expect(emitted).toContainEqual(
      expect.objectContaining({
        event: 'transaction',
        type: 'transfer',
        wallet: me,
        venue: 'solana',
        transactionId: sent.signature,
        status: 'confirmed',
        transfers: [{ tokenMint: SOL, tokenSymbol: 'SOL', change: -1.000005 }],
      }),
    );
    expect(emitted).toContainEqual(
      expect.objectContaining({
        transactionId: got.signature,
        transfers: [{ tokenMint: token?.mint, change: 1.5 }],
      }),
    );
    expect(emitted).toContainEqual(
      expect.objectContaining({
        event: 'balance_change',
        tokenMint: SOL,
        previousBalance: 50,
        currentBalance: 48.999995,
        change: -1.000005,
      }),
    );
    expect(emitted).toContainEqual(
      expect.objectContaining({ event: 'balance_change', tokenMint: token?.mint, change: 1.5 }),
    );
    expect(await poll()).toMatchObject({ wallets: 1, events: 0 });
  });
});
