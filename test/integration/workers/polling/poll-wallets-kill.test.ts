import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/store/db/tx.ts';
import type { WalletAdapter } from '../../../../src/venues/wallet-port.ts';
import { pollWallets } from '../../../../workers/jobs/poll-wallets.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import {
  aBalance,
  aTransaction,
  aWatchedWallet,
  makeWalletsDue,
  scriptedWallets,
  storedEvents,
} from '../../../factories/wallets.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, LosableDatabase, testConfig, until } from '../worker-harness.ts';

const test = useTestDatabase({ poolSize: 16 });
let venues = 0;

function process(venue: string, adapter: WalletAdapter, db: Database = test.db) {
  const context = jobContext({ db, config: testConfig(test.url), walletAdapters: new Map([[venue, adapter]]) });
  return pollWallets.run({ venue }, context);
}

/** The point of a kill: before a transaction of the poll, at its commit, or at a single statement. */
const death = fc.oneof(
  fc.record({ at: fc.integer({ min: 1, max: 5 }), line: fc.constantFrom('before' as const, 'commit' as const) }),
  fc.record({ line: fc.constantFrom('release_wallet_lease', 'claim_wallets') }),
);
type Death = { at?: number; line: string };

function mortal({ at, line }: Death): Database {
  const db = new LosableDatabase(test.db.dataSource);
  if (line === 'before') db.loseBefore = (transaction) => transaction >= (at ?? 1);
  else if (line === 'commit') db.loseAtCommit = (transaction) => transaction >= (at ?? 1);
  else db.loseStatements = [line];
  return db;
}

const amounts = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2.5', '3'));
const tick = fc.record({
  newTransactions: fc.integer({ min: 0, max: 4 }),
  balances: amounts,
  deaths: fc.array(death, { maxLength: 2 }),
  areTogether: fc.boolean(),
});

describe('wallet polls that die', () => {
  it('emit every event once to both accounts with any kills and concurrent pollers', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(tick, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 3 }),
        async (ticks, pageSize) => {
          const venue = `kill${venues++}`;
          const accounts = [await anAccount(test.db), await anAccount(test.db)] as const;
          const hook = await aSubscription(test.db, {
            accountId: accounts[0],
            events: ['transaction', 'balance_change'],
          });
          const { address } = await aWatchedWallet(test.db, { accountId: accounts[0], venue });
          await aWatchedWallet(test.db, { accountId: accounts[1], venue, address });
          const wallets = scriptedWallets({ venue, pageSize });
          await process(venue, wallets);
          for (const { newTransactions, balances, deaths, areTogether } of ticks) {
            for (let i = 0; i < newTransactions; i += 1) {
              wallets.transactions.push(aTransaction({ transactionId: `t${wallets.transactions.length}` }));
            }
            wallets.balances = Object.entries(balances).map(([mint, amount]) => aBalance(mint, amount));
            const dying = deaths.map(mortal);
            // The killed poller runs beside another one, or alone.
            for (const group of areTogether ? [[...dying, test.db]] : dying.map((db) => [db])) {
              await makeWalletsDue(test.db, venue, !areTogether);
              const ends = await Promise.allSettled(group.map((db) => process(venue, wallets, db)));
              for (const end of ends)
                if (end.status === 'rejected') expect(String(end.reason)).toContain('terminating');
            }
          }
          // The leases of killed polls end. A disappeared balance takes two reads.
          for (let i = 0; i < 3; i += 1) {
            await makeWalletsDue(test.db, venue, true);
            await process(venue, wallets);
          }
          for (const account of accounts) {
            const events = await storedEvents(test.db, account);
            const emitted = events
              .filter(({ type }) => type === 'transaction')
              .map(({ data }) => data['transactionId']);
            expect(emitted.sort()).toEqual(wallets.transactions.map(({ transactionId }) => transactionId).sort());
            const held = new Map<unknown, unknown>();
            for (const { data } of events.filter(({ type }) => type === 'balance_change')) {
              expect(held.get(data['tokenMint']) ?? 0).toBe(data['previousBalance']);
              held.set(data['tokenMint'], data['currentBalance']);
            }
            for (const mint of ['a', 'b', 'c']) {
              const now = wallets.balances.find(({ tokenMint }) => tokenMint === mint)?.amount ?? '0';
              expect(held.get(mint) ?? 0).toBe(Number(now));
            }
            const expected = account === accounts[0] ? [hook] : [];
            for (const { deliveries } of events) expect(deliveries).toEqual(expected);
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it('write nothing when they wake up after their lease was taken over', async () => {
    const venue = `frozen${venues++}`;
    const account = await anAccount(test.db);
    await aWatchedWallet(test.db, { accountId: account, venue });
    const asleep = gate();
    const begun = gate();
    const frozen = scriptedWallets({ venue, transactions: [aTransaction({ transactionId: 'stale' })] });
    frozen.before = async () => {
      begun.open();
      await asleep.opened;
    };
    const sleeper = process(venue, frozen);
    await begun.opened;
    const fresh = scriptedWallets({ venue, transactions: [aTransaction({ transactionId: 'fresh' })] });
    const takeOver = async () => {
      await makeWalletsDue(test.db, venue, true);
      return process(venue, fresh);
    };
    // Other wallets of the frozen poll may still be in flight.
    const report = await until(takeOver, ({ wallets }) => wallets === 1);
    expect(report).toMatchObject({ events: 1, failed: 0 });
    asleep.open();
    expect((await sleeper)['events']).toBe(0);
    expect((await storedEvents(test.db, account)).map(({ data }) => data['transactionId'])).toEqual(['fresh']);
  });
});
