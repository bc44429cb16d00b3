import { describe, expect, it } from 'vitest';
import { createWallet, deleteWallet } from '../../../../src/store/wallets/wallets.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aBalance, aTransaction, storedEvents } from '../../../factories/wallets.ts';
import { ago, walletDesk } from './wallet-desk.ts';

const desk = walletDesk();

describe('balances of a wallet', () => {
  it('start with a baseline, then emit every change once', async () => {
    const { address } = await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '100'), aBalance('b', '0.1')] });
    await desk.run(adapter);
    expect(await desk.emitted()).toEqual([]);
    expect(await desk.walletState(address)).toMatchObject({ balances: 2, baselineAt: expect.any(Date) });
    adapter.balances = [aBalance('a', '125'), aBalance('c', '3')];
    await desk.again(adapter);
    const [event] = await storedEvents(desk.db, desk.owner);
    expect(event).toMatchObject({
      type: 'balance_change',
      deliveries: [desk.hook],
      data: {
        wallet: address,
        venue: desk.venue,
        tokenMint: 'a',
        tokenSymbol: 'Yes',
        marketId: '0xmarket',
        previousBalance: 100,
        currentBalance: 125,
        change: 25,
      },
    });
    await desk.again(adapter);
    await desk.again(adapter);
    expect(await desk.emitted()).toEqual(['a 100>125', 'c 0>3', 'b 0.1>0']);
    adapter.balances = [aBalance('a', '100'), aBalance('b', '0.1'), aBalance('c', '3')];
    await desk.again(adapter);
    expect((await desk.emitted()).slice(3)).toEqual(['a 125>100', 'b 0>0.1']);
  });

  it('emit changes to a later account from its own baseline on', async () => {
    const { address } = await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '1')] });
    await desk.run(adapter);
    adapter.balances = [aBalance('a', '2')];
    const second = await anAccount(desk.db);
    await desk.watch(second, address);
    await desk.again(adapter);
    adapter.balances = [aBalance('a', '3')];
    await desk.again(adapter);
    expect(await desk.emitted(desk.owner)).toEqual(['a 1>2', 'a 2>3']);
    expect(await desk.emitted(second)).toEqual(['a 2>3']);
  });

  it('do not become the baseline of an account that starts to watch during the read', async () => {
    const { address } = await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '1')] });
    await desk.run(adapter);
    const second = await anAccount(desk.db);
    // The account starts to watch during the poll, so the pages of the poll may be older than the watch.
    adapter.before = async (kind) => {
      if (kind === 'activity') await desk.watch(second, address);
    };
    await desk.again(adapter);
    adapter.before = () => undefined;
    adapter.balances = [aBalance('a', '2')];
    await desk.again(adapter);
    adapter.balances = [aBalance('a', '3')];
    await desk.again(adapter);
    expect(await desk.emitted(desk.owner)).toEqual(['a 1>2', 'a 2>3']);
    expect(await desk.emitted(second)).toEqual(['a 2>3']);
  });

  it('emit no change when positions move between pages during the read', async () => {
    const { address } = await desk.watch();
    const sorted = ['a', 'b', 'c', 'd', 'e'].map((mint) => aBalance(mint, '1'));
    const adapter = desk.world({ balances: sorted, pageSize: 2 });
    let answers = 0;
    // After each first page the last position jumps to the front, so the read misses a position at the edge of the page.
    adapter.before = (kind) => {
      if (kind !== 'balances') return;
      answers += 1;
      const moved = adapter.balances.at(-1);
      if (answers % 3 === 2 && moved) adapter.balances = [moved, ...adapter.balances.slice(0, -1)];
    };
    for (let tick = 0; tick < 3; tick += 1) await desk.again(adapter);
    expect(await desk.walletState(address)).toMatchObject({ balances: 0, baselineAt: null });
    // Without moves the read makes a baseline, and then emits only real changes.
    adapter.before = () => undefined;
    await desk.again(adapter);
    expect(await desk.walletState(address)).toMatchObject({ balances: 5, failures: 0 });
    adapter.before = (kind) => {
      answers += 1;
      if (kind === 'balances' && answers % 2 === 0)
        adapter.balances = [...adapter.balances.slice(1), ...adapter.balances.slice(0, 1)];
    };
    for (let tick = 0; tick < 4; tick += 1) await desk.again(adapter);
    expect(await desk.emitted()).toEqual([]);
  });

  it('are not compared when the walk fails half-way', async () => {
    const { address } = await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '1'), aBalance('b', '1')], pageSize: 1 });
    await desk.run(adapter);
    let answers = 0;
    adapter.before = (kind) => {
      answers += 1;
      if (kind === 'balances' && answers > 2) throw new VenueError(desk.venue, 'network', 'gone', { retryable: true });
    };
    adapter.balances = [aBalance('b', '2'), aBalance('a', '2')];
    for (let tick = 0; tick < 3; tick += 1) {
      answers = 0;
      await desk.again(adapter);
    }
    expect(await desk.emitted()).toEqual([]);
    expect(await desk.walletState(address)).toMatchObject({ failures: 3, lastError: 'gone' });
  });
});

describe('the end of a watch', () => {
  it('stops the poll with the last watcher, and restarts with a new one', async () => {
    const wallet = await desk.watch();
    const second = await anAccount(desk.db);
    const theirs = await desk.watch(second, wallet.address);
    const adapter = desk.world({
      balances: [aBalance('a', '1')],
      transactions: [aTransaction({ transactionId: 't1' })],
    });
    await desk.run(adapter);
    expect(await deleteWallet(desk.db, desk.owner, wallet.id)).toBe(true);
    expect(await desk.again(adapter)).toMatchObject({ wallets: 1 });
    expect(await deleteWallet(desk.db, second, theirs.id)).toBe(true);
    expect(await desk.walletState(wallet.address)).toMatchObject({
      balances: 0,
      transactions: 0,
      baselineAt: null,
      polledAt: null,
    });
    expect(await desk.again(adapter)).toMatchObject({ wallets: 0 });
    adapter.balances = [aBalance('a', '2')];
    adapter.transactions = [aTransaction({ transactionId: 't1', atMs: ago(100) })];
    await desk.watch(desk.owner, wallet.address);
    await desk.run(adapter);
    expect(await desk.emitted(desk.owner)).toEqual(['t1']);
    adapter.balances = [aBalance('a', '3')];
    await desk.again(adapter);
    expect(await desk.emitted(desk.owner)).toEqual(['t1', 'a 2>3']);
  });

  it('makes a running poll write nothing, also for a new watcher', async () => {
    const wallet = await desk.watch();
    const adapter = desk.world({ balances: [aBalance('a', '1')] });
    let reads = 0;
    adapter.before = async (kind) => {
      if (kind !== 'balances') return;
      reads += 1;
      adapter.balances = [aBalance('a', String(reads))];
      await deleteWallet(desk.db, desk.owner, wallet.id);
      const again = { venue: desk.venue, address: wallet.address };
      await desk.db.transaction((tx) => createWallet(tx, desk.owner, again));
    };
    // The second read belongs to the new watch and becomes its baseline.
    expect(await desk.run(adapter)).toMatchObject({ wallets: 2, failed: 1 });
    expect([reads, await desk.emitted()]).toEqual([2, []]);
    expect(await desk.walletState(wallet.address)).toMatchObject({ balances: 1, failures: 0 });
  });
});
