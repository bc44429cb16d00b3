import { describe, expect, it } from 'vitest';
import { startExchange } from '../../../../sim/exchange.ts';
import { REGULAR } from '../../../../sim/traders/wallets.ts';
import { walletOf } from '../../../../sim/world/identity.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { createPolymarketWallets } from '../../../../src/venues/polymarket/wallet-adapter.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aBalance, aTransaction, aWatchedWallet, storedEvents } from '../../../factories/wallets.ts';
import { gate } from '../../../support/gate.ts';
import { wakeRecorder } from '../worker-harness.ts';
import { ago, BOTH, walletDesk } from './wallet-desk.ts';

const desk = walletDesk();
const QUARANTINED = sql('test_quarantined_wallets', `SELECT reason, record_id FROM quarantine WHERE venue = $1`);

describe('transactions of a wallet', () => {
  it('become one event each, with a delivery and a wake-up for every subscription that lists them', async () => {
    const other = await aSubscription(desk.db, { accountId: desk.owner, events: ['transaction'] });
    await aSubscription(desk.db, { accountId: desk.owner, events: ['balance_change', 'price_alert'] });
    await aSubscription(desk.db, { accountId: desk.owner, events: BOTH, status: 'paused' });
    const { address } = await desk.watch();
    const atMs = Math.floor(Date.now() / 1000) * 1000;
    const adapter = desk.world({ transactions: [aTransaction({ transactionId: '0xa:1', atMs })] });
    const producer = wakeRecorder();
    expect(await desk.run(adapter, { producer })).toMatchObject({ wallets: 1, transactions: 1, events: 1 });
    const [event, ...more] = await storedEvents(desk.db, desk.owner);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'transaction',
      deliveries: [desk.hook, other],
      data: {
        wallet: address,
        venue: desk.venue,
        transactionId: '0xa:1',
        type: 'trade',
        status: 'confirmed',
        timestamp: new Date(atMs).toISOString(),
        transfers: [{ tokenMint: 'token-yes', tokenSymbol: 'Yes', change: 5 }],
        marketId: '0xmarket',
        side: 'buy',
        size: 5,
        price: 0.5,
        value: 2.5,
      },
    });
    expect(producer.woken.sort()).toEqual([`deliver-webhook ${desk.hook}`, `deliver-webhook ${other}`].sort());
    await desk.again(adapter);
    expect(await desk.emitted()).toEqual(['0xa:1']);
  });

  it('emit no event when they are older than the watch', async () => {
    const adapter = desk.world({ transactions: [aTransaction({ transactionId: 'old', atMs: ago(100) })] });
    const { address } = await desk.watch();
    await desk.run(adapter);
    expect(await desk.emitted()).toEqual([]);
    expect(await desk.walletState(address)).toMatchObject({ transactions: 1, failures: 0, leaseToken: null });
    adapter.transactions.push(aTransaction({ transactionId: 'late', atMs: ago(50) }));
    adapter.transactions.push(aTransaction({ transactionId: 'new' }));
    await desk.again(adapter);
    expect(await desk.emitted()).toEqual(['new']);
  });

  it('emit events to each account from its own watch on, with one poll for all accounts', async () => {
    const { address } = await desk.watch();
    const adapter = desk.world({ transactions: [aTransaction({ transactionId: 'first', atMs: ago(-1) })] });
    await desk.run(adapter);
    const second = await anAccount(desk.db);
    await desk.watch(second, address);
    const at = Date.now() + 4_000;
    adapter.transactions.push(aTransaction({ transactionId: 'earlier', atMs: ago(60) }));
    adapter.transactions.push(aTransaction({ transactionId: 'both', atMs: at }));
    let asked = 0;
    adapter.before = () => {
      asked += 1;
    };
    await desk.again(adapter);
    expect(asked).toBe(2);
    expect(await desk.emitted(desk.owner)).toEqual(['first', 'both']);
    expect(await desk.emitted(second)).toEqual(['both']);
  });

  it('of many pages all emit events, from the position of an interrupted walk on', async () => {
    await desk.watch();
    const transactions = Array.from({ length: 50 }, (_, i) => aTransaction({ transactionId: `t${i}` }));
    const adapter = desk.world({ transactions, pageSize: 2 });
    await desk.run(adapter);
    expect((await desk.emitted()).length).toBe(40);
    await desk.again(adapter);
    expect((await desk.emitted()).sort()).toEqual(transactions.map(({ transactionId }) => transactionId).sort());
  });

  it('are quarantined when Postgres refuses them, and their neighbours emit events', async () => {
    await desk.watch();
    const bad = aTransaction({ transactionId: `bad${'x'.repeat(3_000)}` });
    const unique = () => crypto.randomUUID();
    bad.transactionId = Array.from({ length: 200 }, unique).join('');
    const adapter = desk.world({
      transactions: [aTransaction({ transactionId: 'a' }), bad, aTransaction({ transactionId: 'b' })],
    });
    await desk.run(adapter);
    expect(await desk.emitted()).toEqual(['a', 'b']);
    expect(await desk.db.query(QUARANTINED, [desk.venue])).toMatchObject([{ reason: 'refused_by_store' }]);
    await desk.again(adapter);
    expect(await desk.emitted()).toEqual(['a', 'b']);
  });
});

describe('the wallet poll', () => {
  it('polls a wallet once with several processes', async () => {
    const wallets = [];
    for (let i = 0; i < 6; i += 1) wallets.push(await desk.watch());
    const asked: string[] = [];
    const both = gate();
    const adapter = desk.world();
    adapter.before = async (what, address) => {
      if (what !== 'activity') return;
      asked.push(address);
      if (asked.length === wallets.length) both.open();
      await both.opened;
    };
    const reports = await Promise.all([desk.run(adapter), desk.run(adapter)]);
    expect(reports.map((report) => Number(report['wallets'])).reduce((a, b) => a + b)).toBe(6);
    expect(asked.sort()).toEqual(wallets.map(({ address }) => address).sort());
  });

  it('polls a failing wallet less and less often, and the others as before', async () => {
    const bad = await desk.watch();
    await desk.watch();
    const adapter = desk.world();
    adapter.before = (_what, address) => {
      if (address === bad.address) throw new VenueError(desk.venue, 'http_status', 'HTTP 500', { retryable: true });
    };
    expect(await desk.run(adapter)).toMatchObject({ wallets: 2, failed: 1 });
    expect(await desk.walletState(bad.address)).toMatchObject({ failures: 1, lastError: 'HTTP 500', leaseToken: null });
    // After one failure the wallet waits for two ticks.
    await desk.db.query(
      sql('test_age_polls', `UPDATE watched_wallet SET polled_at = polled_at - interval '12 seconds'`),
    );
    expect(await desk.run(adapter)).toMatchObject({ wallets: 1, failed: 0 });
  });

  it('ends when the venue is down, and counts no failure for a wallet', async () => {
    const addresses = [];
    for (let i = 0; i < 10; i += 1) addresses.push((await desk.watch()).address);
    const adapter = desk.world();
    let asked = 0;
    adapter.before = () => {
      asked += 1;
      throw new VenueError(desk.venue, 'circuit_open', 'open', { retryable: true });
    };
    await desk.run(adapter);
    expect(asked).toBeLessThan(9);
    for (const address of addresses)
      expect(await desk.walletState(address)).toMatchObject({ failures: 0, leaseToken: null });
  });

  it('skips a venue that has no wallets or is not enabled', async () => {
    expect(await desk.run(desk.world(), { walletAdapters: new Map() })).toEqual({ skipped: 'venue not enabled' });
  });

  it('quarantines the records that an adapter rejects', async () => {
    await desk.watch();
    const rejected = [{ kind: 'wallets' as const, recordId: 'r', reason: 'missing_field', detail: 'd', sample: '{}' }];
    await desk.run(desk.world({ rejected }));
    expect(await desk.db.query(QUARANTINED, [desk.venue])).toEqual([{ reason: 'missing_field', recordId: 'r' }]);
  });

  it('writes every digit of an amount', async () => {
    await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '0.1')] });
    await desk.run(adapter);
    adapter.balances = [{ ...aBalance('a', '1'), amount: decimal('123456789012345678901.000000000000000001') }];
    await desk.again(adapter);
    const bodies = await desk.db.query<{ body: string }>(
      sql('test_bodies', 'SELECT body FROM event WHERE account_id = $1'),
      [desk.owner],
    );
    expect(bodies[0]?.body).toContain('"currentBalance":123456789012345678901.000000000000000001,');
  });
});

describe('the wallet poll on the simulated exchange', () => {
  it('emits each transaction since the watch once, and the final balances', async () => {
    const exchange = await startExchange({ seed: 5, markets: 12, historyHours: 1, paused: true, speed: 4 });
    const adapter = createPolymarketWallets({ url: exchange.dataUrl });
    const { address } = walletOf(exchange.seed, REGULAR);
    const { createdAt } = await aWatchedWallet(desk.db, { accountId: desk.owner, venue: 'polymarket', address });
    const now = () => exchange.second() * 1000;
    const poll = () => desk.again(adapter, { now });
    for (let round = 0; round < 5; round += 1) {
      expect(await poll()).toMatchObject({ wallets: 1, failed: 0 });
      exchange.step(20);
    }
    for (let round = 0; round < 2; round += 1) await poll();
    const read = async <T>(path: string): Promise<T> => (await (await fetch(`${exchange.dataUrl}${path}`)).json()) as T;
    const { data: rows } = await read<{ data: { timestamp: number; transaction_hash: string }[] }>(
      `/v2/activity?user=${address}&start=1&exclude_deposits_withdrawals=false&limit=500`,
    );
    const since = rows.filter(({ timestamp }) => timestamp >= Math.floor(createdAt.getTime() / 1000));
    const events = await storedEvents(desk.db, desk.owner);
    const transactions = events
      .filter(({ type }) => type === 'transaction')
      .map(({ data }) => String(data['transactionId']));
    expect(since.length).toBeGreaterThan(5);
    expect(transactions.map((id) => id.split(':')[0]).sort()).toEqual(since.map((row) => row.transaction_hash).sort());
    const changes = events.filter(({ type }) => type === 'balance_change');
    const { data: held } = await read<{ data: { token_id: string; current_size: number }[] }>(
      `/v2/positions?user=${address}&limit=500`,
    );
    const last = new Map(changes.map(({ data }) => [data['tokenMint'], data['currentBalance']]));
    expect(last.size).toBeGreaterThan(1);
    for (const [mint, amount] of last)
      expect(held.find(({ token_id }) => token_id === mint)?.current_size ?? 0).toBe(amount);
    await adapter.close();
    await exchange.close();
  });
});
