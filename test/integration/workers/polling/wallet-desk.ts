import { afterAll, beforeAll, beforeEach } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import type { Wallet } from '../../../../src/store/wallets/wallets.ts';
import type { WalletAdapter } from '../../../../src/venues/wallet-port.ts';
import { pollWallets } from '../../../../workers/jobs/poll-wallets.ts';
import type { JobReport } from '../../../../workers/process/define.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aWatchedWallet, makeWalletsDue, scriptedWallets, storedEvents } from '../../../factories/wallets.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { type ContextFields, jobContext, testConfig } from '../worker-harness.ts';

const WALLET_STATE = sql(
  'test_wallet_state',
  `SELECT w.polled_at, w.baseline_at, w.failures, w.last_error, w.lease_token, w.activity_position,
     (SELECT count(*)::int FROM wallet_balance b WHERE b.watched_pk = w.pk) AS balances,
     (SELECT count(*)::int FROM wallet_transaction t WHERE t.watched_pk = w.pk) AS transactions
   FROM watched_wallet w WHERE address = $1`,
);
/** Both kinds of wallet events. */
export const BOTH = ['transaction', 'balance_change'];

/** A database for the tests of a file. Each test has its own venue, and an account with a webhook for both kinds of events. */
export function walletDesk() {
  let test: TestDatabase;
  let venues = 0;
  let owner = 0n;
  let hook = 0n;
  const venue = () => `v${venues}`;
  beforeAll(async () => {
    test = await createTestDatabase({ poolSize: 16 });
  });
  afterAll(() => test.drop());
  beforeEach(async () => {
    venues += 1;
    owner = await anAccount(test.db);
    hook = await aSubscription(test.db, { accountId: owner, events: BOTH });
  });

  function run(adapter: WalletAdapter, fields: Partial<ContextFields> = {}): Promise<JobReport> {
    const walletAdapters = new Map([[adapter.venue, adapter]]);
    const context = jobContext({ db: test.db, config: testConfig(test.url), walletAdapters, ...fields });
    return pollWallets.run({ venue: adapter.venue }, context);
  }
  return {
    get db() {
      return test.db;
    },
    get venue() {
      return venue();
    },
    get owner() {
      return owner;
    },
    get hook() {
      return hook;
    },
    run,
    /** Polls like the next tick. */
    async again(adapter: WalletAdapter, fields: Partial<ContextFields> = {}): Promise<JobReport> {
      await makeWalletsDue(test.db, adapter.venue);
      return run(adapter, fields);
    },
    watch: (accountId = owner, address?: string): Promise<Wallet> =>
      aWatchedWallet(test.db, { accountId, venue: venue(), ...(address !== undefined && { address }) }),
    world: (script: Parameters<typeof scriptedWallets>[0] = {}) => scriptedWallets({ venue: venue(), ...script }),
    /** The stored state of a watched wallet. */
    walletState: async (address: string) => (await test.db.query<Record<string, unknown>>(WALLET_STATE, [address]))[0],
    /** The events of an account, in short. */
    async emitted(account = owner): Promise<unknown[]> {
      const events = await storedEvents(test.db, account);
      return events.map(({ type, data }) =>
        type === 'transaction'
          ? data['transactionId']
          : `${data['tokenMint']} ${data['previousBalance']}>${data['currentBalance']}`,
      );
    },
  };
}

/** A time this many seconds ago. */
export function ago(seconds: number): number {
  return Date.now() - seconds * 1000;
}
