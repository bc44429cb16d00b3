import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../../sim/exchange.ts';
import { type Database, sql } from '../../../../src/store/db/tx.ts';
import { deleteWallet } from '../../../../src/store/wallets/wallets.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { createSolanaWallets } from '../../../../src/venues/solana/wallet-adapter.ts';
import type { WalletAdapter } from '../../../../src/venues/wallet-port.ts';
import { pollWallets } from '../../../../workers/jobs/poll-wallets.ts';
import type { JobReport } from '../../../../workers/process/define.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import {
  aTransaction,
  aWatchedWallet,
  makeWalletsDue,
  scriptedWallets,
  storedEvents,
} from '../../../factories/wallets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { type ContextFields, capturedLog, jobContext, LosableDatabase, testConfig } from '../worker-harness.ts';

const HTTP = { requestsPerSecond: 100_000, burst: 10_000, maxAttempts: 1 };
const PAGE_SIZE = 3;

const POSITION = sql(
  'test_activity_position',
  `SELECT activity_position AS position, failures, lease_token FROM watched_wallet WHERE address = $1`,
);
/** Writes the position like a release without versions, which keeps only its own keys. */
const FORGET_VERSION = sql(
  'test_forget_version',
  `UPDATE watched_wallet SET activity_position = activity_position - 'version' - 'reread' WHERE venue = 'solana'`,
);
const QUARANTINED = sql(
  'test_quarantined_versions',
  `SELECT record_id, times::int AS times FROM quarantine
   WHERE venue = 'solana' AND kind = 'wallets' AND reason = 'unsupported_version' ORDER BY record_id`,
);
const PRUNE_QUARANTINE = sql('test_prune_quarantine', `DELETE FROM quarantine`);
const PRUNE_DELIVERIES = sql('test_prune_deliveries', `DELETE FROM delivery`);
const PRUNE_EVENTS = sql('test_prune_events', `DELETE FROM event`);
const FORGET_WALLETS = sql('test_forget_wallets', `DELETE FROM wallet`);
const FORGET_WATCHED = sql('test_forget_watched', `DELETE FROM watched_wallet`);

const test = useTestDatabase({ poolSize: 16 });
let exchange: Exchange;
let now: WalletAdapter;
let before: WalletAdapter;
let next: WalletAdapter;
let me = '';
let friend = '';
let mint = '';
let owner = 0n;
let hook = 0n;

beforeEach(async () => {
  for (const clear of [PRUNE_QUARANTINE, FORGET_WALLETS, FORGET_WATCHED]) await test.db.query(clear);
  exchange = await startExchange({
    markets: 1,
    liveMarkets: 0,
    historyHours: 0,
    rollingSeconds: 0,
    solanaTraffic: false,
  });
  const adapter = (version?: number) =>
    createSolanaWallets({
      url: exchange.solanaUrl,
      http: HTTP,
      activity: { pageSize: PAGE_SIZE, ...(version !== undefined && { version }) },
    });
  now = adapter();
  next = adapter(2);
  // The previous release reads version 0 and has no re-read.
  const { rereadActivity: _none, ...old } = adapter(0);
  before = old;
  [me = '', friend = ''] = exchange.solana.people();
  mint = exchange.solana.tokens()[1]?.mint ?? '';
  owner = await anAccount(test.db);
  hook = await aSubscription(test.db, { accountId: owner, events: ['transaction'] });
});
afterEach(async () => {
  for (const each of [now, before, next]) await each.close();
  await exchange.close();
});

async function poll(adapter: WalletAdapter, db: Database = test.db, fields: Partial<ContextFields> = {}) {
  await makeWalletsDue(test.db, 'solana', true);
  const walletAdapters = new Map([['solana', adapter]]);
  const context = jobContext({ db, config: testConfig(test.url), walletAdapters, ...fields });
  const report: JobReport = await pollWallets.run({ venue: 'solana' }, context);
  if (adapter === before) await test.db.query(FORGET_VERSION);
  return report;
}

async function stored(address = me) {
  const [row] = await test.db.query<{
    position: { version?: number; reread?: unknown };
    failures: number;
    leaseToken: string | null;
  }>(POSITION, [address]);
  if (!row) throw new Error('not watched');
  return row;
}

/** Polls until the re-read of the wallets with this version is complete. */
async function pollUntilRead(adapter: WalletAdapter, version: number, ...addresses: string[]): Promise<void> {
  for (let polls = 0; polls < 200; polls += 1) {
    await poll(adapter);
    const positions = await Promise.all([me, ...addresses].map((address) => stored(address)));
    if (positions.every(({ position }) => position.version === version)) return;
  }
  throw new Error('the re-read does not end');
}

async function transactionEvents(account = owner) {
  return (await storedEvents(test.db, account)).filter(({ type }) => type === 'transaction');
}

async function emitted(account = owner): Promise<string[]> {
  return (await transactionEvents(account)).map(({ data }) => String(data['transactionId']));
}

async function quarantined(): Promise<string[]> {
  return (await test.db.query<{ recordId: string }>(QUARANTINED)).map((row) => row.recordId);
}

function send(fields: Partial<Parameters<Exchange['solana']['transfer']>[0]> = {}): string {
  return exchange.solana.transfer({ from: me, to: friend, units: '1000', ...fields }).signature;
}

/** Transfers of each version out of the wallet and into its token account. The second one does not name the wallet. */
function sendMany(version: 1 | 2 = 1, count = 4): { read: string[]; missed: string[] } {
  const read: string[] = [];
  const missed: string[] = [];
  for (let no = 0; no < count; no += 1) {
    read.push(send({ version: 0 }), send({ version: 'legacy' }));
    missed.push(send({ version, priorityFee: '3' }));
    missed.push(send({ version, from: friend, to: me, mint }));
  }
  return { read, missed };
}

const sorted = (ids: readonly string[]) => [...ids].sort();

describe('a wallet with transactions of version 1', () => {
  it('emits each of them once, at the first poll that reads it', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(now);
    const { read, missed } = sendMany();
    await poll(now);
    await poll(now);
    expect(sorted(await emitted())).toEqual(sorted([...read, ...missed]));
    const event = (await transactionEvents()).find(({ data }) => data['transactionId'] === missed[0]);
    expect(event?.data['transfers']).toMatchObject([{ tokenSymbol: 'SOL', change: -0.000006003 }]);
    expect(event?.deliveries).toEqual([hook]);
    expect(await quarantined()).toEqual([]);
    expect((await stored()).position).toMatchObject({ version: 1 });
  });
});

describe('transactions that an earlier release rejected for their version', () => {
  it('emit each missed event once, leave the quarantine, and are counted and logged', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const { read, missed } = sendMany();
    await poll(before);
    expect(sorted(await emitted())).toEqual(sorted(read));
    expect(await quarantined()).toEqual(sorted(missed));

    const isChange = ({ type }: { type: string }) => type === 'balance_change';
    const changes = (await storedEvents(test.db, owner)).filter(isChange);
    expect(changes.length).toBeGreaterThan(0);

    const { log, lines } = capturedLog();
    const first = await poll(now, test.db, { log });
    expect(first['recovered']).toBeGreaterThan(0);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted())).toEqual(sorted([...read, ...missed]));
    expect(await quarantined()).toEqual([]);
    expect(lines.join('\n')).toContain('rejected transactions recovered');
    for (const { deliveries } of await transactionEvents()) expect(deliveries).toEqual([hook]);

    expect((await storedEvents(test.db, owner)).filter(isChange)).toEqual(changes);
    const last = await poll(now);
    expect(last).toMatchObject({ transactions: 0, recovered: 0, events: 0 });
  });

  it('count in ingest_recovered_total by venue, kind and reason', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    send({ version: 1 });
    await poll(before);
    const context = jobContext({
      db: test.db,
      config: testConfig(test.url),
      walletAdapters: new Map([['solana', now]]),
    });
    await makeWalletsDue(test.db, 'solana');
    await pollWallets.run({ venue: 'solana' }, context);
    const { values } = await context.metrics.recoveredRecords.get();
    expect(values).toMatchObject([
      { value: 1, labels: { venue: 'solana', kind: 'wallets', reason: 'unsupported_version' } },
    ]);
  });

  it('are found without quarantine rows, because the quarantine is bounded in rows and time', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const { read, missed } = sendMany();
    await poll(before);
    await test.db.query(PRUNE_QUARANTINE);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted())).toEqual(sorted([...read, ...missed]));
  });

  it('emit no event again that retention removed', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const { missed } = sendMany();
    await poll(before);
    await test.db.query(PRUNE_DELIVERIES);
    await test.db.query(PRUNE_EVENTS);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted())).toEqual(sorted(missed));
  });

  it('are found in a closed token account', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const missed = send({ version: 1, from: friend, to: me, mint });
    await poll(before);
    const held = String(exchange.solana.holdings(me).get(mint));
    const closing = send({ version: 0, mint, units: held, closes: true });
    await poll(before);
    expect(await emitted()).toEqual([closing]);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted())).toEqual(sorted([missed, closing]));
  });

  it('emit once when the process dies before or at the commit of every page', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const { read, missed } = sendMany();
    await poll(before);
    let deaths = 0;
    let pages = 0;
    for (let polls = 0; (await stored()).position.version !== 1; polls += 1) {
      if (polls > 200) throw new Error('the re-read does not end');
      const dying = new LosableDatabase(test.db.dataSource);
      // A poll commits the live page, the balances, and then the pages of the re-read.
      if (polls % 2 === 0) dying.loseAtCommit = (transaction) => transaction === 3;
      else dying.loseBefore = (transaction) => transaction === 4;
      const was = JSON.stringify((await stored()).position.reread);
      await expect(poll(now, dying)).rejects.toThrow('terminating');
      deaths += 1;
      const is = JSON.stringify((await stored()).position.reread);
      if (polls % 2 === 0) expect(is).toBe(was);
      else pages += 1;
      if (pages > 4) await poll(now);
    }
    expect(deaths).toBeGreaterThan(6);
    await poll(now);
    expect(sorted(await emitted())).toEqual(sorted([...read, ...missed]));
    expect(await quarantined()).toEqual([]);
  });

  it('emit once when two processes poll repeatedly at the same time', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: friend });
    await poll(before);
    const { read, missed } = sendMany();
    await poll(before);
    for (let polls = 0; polls < 8; polls += 1) await Promise.allSettled([poll(now), poll(now)]);
    await pollUntilRead(now, 1, friend);
    const each = [...read, ...missed];
    expect(sorted(await emitted())).toEqual(sorted([...each, ...each]));
  });

  it('emit once when processes of both releases poll in turn, also when the old ones poll last', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(before);
    const all: string[] = [];
    for (let turns = 0; turns < 4; turns += 1) {
      const { read, missed } = sendMany(1, 1);
      all.push(...read, ...missed);
      await poll(turns % 2 === 0 ? now : before);
    }
    expect((await emitted()).length).toBeLessThan(all.length);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted())).toEqual(sorted(all));
  });

  it('emit to each account since its own watch, and not after its end', async () => {
    const late = await anAccount(test.db);
    const gone = await anAccount(test.db);
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    const ended = await aWatchedWallet(test.db, { accountId: gone, venue: 'solana', address: friend });
    await poll(before);
    const early = sendMany(1, 1);
    await poll(before);
    await deleteWallet(test.db, gone, ended.id);
    // The chain has whole seconds, so a watch includes a transaction of its first second.
    exchange.idle(10);
    const second = exchange.second();
    await aWatchedWallet(test.db, { accountId: late, venue: 'solana', address: me });
    await test.db.query(
      sql('test_watch_since', `UPDATE wallet SET created_at = to_timestamp($2) WHERE account_id = $1`),
      [late, second],
    );
    exchange.idle(10);
    const after = sendMany(1, 1);
    await poll(before);
    await pollUntilRead(now, 1);
    expect(sorted(await emitted(owner))).toEqual(
      sorted([...early.read, ...early.missed, ...after.read, ...after.missed]),
    );
    expect(sorted(await emitted(late))).toEqual(sorted([...after.read, ...after.missed]));
    expect((await emitted(gone)).every((id) => early.read.includes(id))).toBe(true);
  });

  it('stay rejected when their version is newer, and emit once after a release that reads it', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    await poll(now);
    const { read, missed } = sendMany(2);
    await poll(now);
    await poll(now);
    expect(sorted(await emitted())).toEqual(sorted(read));
    expect(await quarantined()).toEqual(sorted(missed));
    await pollUntilRead(next, 2);
    expect(sorted(await emitted())).toEqual(sorted([...read, ...missed]));
    expect(await quarantined()).toEqual([]);
  });
});

describe('a re-read', () => {
  it('is logged when it fails, and changes neither the live walk nor the wallet', async () => {
    await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address: me });
    const world = scriptedWallets({ venue: 'solana', transactions: [aTransaction({ transactionId: 'live' })] });
    const failing: WalletAdapter = {
      ...world,
      async rereadActivity() {
        throw new VenueError('solana', 'invalid_payload', 'no such history', { retryable: true });
      },
    };
    const { log, lines } = capturedLog();
    expect(await poll(failing, test.db, { log })).toMatchObject({ wallets: 1, failed: 0, events: 1 });
    expect(await stored()).toMatchObject({ failures: 0, leaseToken: null });
    expect(lines.join('\n')).toContain('wallet not re-read');
    expect(await emitted()).toEqual(['live']);
  });
});

describe('a node that blocks this client', () => {
  it('ends the poll, is logged, and charges no wallet', async () => {
    for (const address of exchange.solana.people()) {
      await aWatchedWallet(test.db, { accountId: owner, venue: 'solana', address });
    }
    exchange.solana.failRpc({
      method: 'getTokenAccountsByOwner',
      code: 403,
      message: 'blocked',
      status: 403,
      count: 1e9,
    });
    const { log, lines } = capturedLog();
    await poll(now, test.db, { log });
    for (const address of exchange.solana.people()) {
      expect(await stored(address)).toMatchObject({ failures: 0, leaseToken: null });
    }
    expect(lines.filter((line) => line.includes('the host is away')).length).toBeGreaterThan(0);
    const asked = exchange.requests().length;
    await poll(now);
    expect(exchange.requests().length).toBe(asked);
  });
});
