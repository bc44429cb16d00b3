import { expect, it } from 'vitest';
import { acquirePollLease, POLL_LEASES } from '../../../src/store/catalog/poll-state.ts';
import { sql } from '../../../src/store/db/tx.ts';
import type { WalletAdapter } from '../../../src/venues/wallet-port.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { anAccount } from '../../factories/alerts.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

const WATCH = sql(
  'test_gauges_watch',
  `WITH watched AS (
     INSERT INTO watched_wallet (venue, address, created_at) VALUES ('solana', $2, clock_timestamp() - interval '1 hour') RETURNING pk)
   INSERT INTO wallet (id, account_id, watched_pk) SELECT $3, $1, pk FROM watched`,
);

const test = useTestDatabase();

async function samples(collector: string, metric: string): Promise<Record<string, number>> {
  const walletAdapters = new Map([['solana', {} as WalletAdapter]]);
  const config = testConfig(test.url, { VENUES: 'kalshi,solana' });
  const deps = jobContext({ db: test.db, config, walletAdapters });
  deps.metrics.collectors.add(...gaugesOf('poller', deps).filter(({ name }) => name === collector));
  const lines = (await deps.metrics.text()).matchAll(/^(\w+)\{venue="(\w+)"(?:,kind="(\w+)")?.*\} (\S+)$/gm);
  return Object.fromEntries(
    [...lines].flatMap(([, name, venue, kind = '', value]) =>
      name === metric ? [[`${venue} ${kind}`.trim(), Number(value)]] : [],
    ),
  );
}

it('the gauge of failures shows no number for a poll that was never tried', async () => {
  expect(await samples('polls', 'ingest_failures_in_a_row')).toEqual({});
  const lease = await acquirePollLease(test.db, 'kalshi', 'prices', 'token');
  if (!lease) throw new Error('no lease');
  await POLL_LEASES.release(test.db, lease, 'HTTP 500');
  expect(await samples('polls', 'ingest_failures_in_a_row')).toEqual({ 'kalshi prices': 1 });
});

it('the gauge of wallets shows nothing without a wallet, and the wait of one that was never read', async () => {
  expect(await samples('wallets', 'wallet_oldest_poll_seconds')).toEqual({});
  const accountId = await anAccount(test.db);
  await test.db.query(WATCH, [accountId, 'address', 'wallet_1']);
  const { solana } = await samples('wallets', 'wallet_oldest_poll_seconds');
  expect(solana).toBeGreaterThanOrEqual(3_600);
});
