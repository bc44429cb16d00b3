import { afterEach, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import type { SolanaHttpSettings } from '../../../src/venues/solana/hosts.ts';
import { createSolanaWallets } from '../../../src/venues/solana/wallet-adapter.ts';
import type { WalletAdapter } from '../../../src/venues/wallet-port.ts';

const NOW = 1_790_000_000;
const QUICK = { requestsPerSecond: 100_000, burst: 10_000, maxAttempts: 1 };
const PAGE_SIZE = 5;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Chain {
  exchange: Exchange;
  me: string;
  send(version: 'legacy' | 0 | 1 | 2): string;
  adapter(version: number, http?: SolanaHttpSettings): WalletAdapter;
  /** The position after the live walk. */
  walk(adapter: WalletAdapter, position: unknown): Promise<Record<string, unknown>>;
  /** One page of the re-read; `stored` are the signatures in the store. */
  reread(adapter: WalletAdapter, position: unknown, stored?: readonly string[]): ReturnType<Reread>;
}
type Reread = NonNullable<WalletAdapter['rereadActivity']>;

async function chain(): Promise<Chain> {
  const exchange = await startExchange({
    markets: 1,
    liveMarkets: 0,
    historyHours: 0,
    rollingSeconds: 0,
    nowSecond: NOW,
    paused: true,
    solanaTraffic: false,
  });
  closing.push(() => exchange.close());
  const [me = '', friend = ''] = exchange.solana.people();
  const call = { signal: new AbortController().signal, now: () => exchange.second() * 1000 };
  return {
    exchange,
    me,
    send: (version) => exchange.solana.transfer({ from: me, to: friend, units: '1', version }).signature,
    adapter(version, http = QUICK) {
      const url = exchange.solanaUrl;
      const adapter = createSolanaWallets({ url, http, activity: { version, pageSize: PAGE_SIZE } });
      closing.unshift(() => adapter.close());
      return adapter;
    },
    async walk(adapter, from) {
      let position = from;
      for (let more = true; more; ) {
        const page = await adapter.pollActivity({ address: me, sinceMs: NOW * 1000 }, position, call);
        position = JSON.parse(JSON.stringify(page.position));
        more = page.more;
      }
      return position as Record<string, unknown>;
    },
    async reread(adapter, position, stored = []) {
      const areStored = async (ids: readonly string[]) => new Set(ids.filter((id) => stored.includes(id)));
      return adapter.rereadActivity?.({ address: me, sinceMs: NOW * 1000, areStored }, position, call);
    },
  };
}

/** The position that a release without versions leaves. */
function withoutVersion({ version: _version, ...position }: Record<string, unknown>): Record<string, unknown> {
  return position;
}

function requestsOf({ exchange }: Chain): number {
  return exchange.requests().length;
}

describe('the re-read of a wallet', () => {
  it('is not due, and sends no request, when the position has the present version', async () => {
    const on = await chain();
    const adapter = on.adapter(1);
    const position = await on.walk(adapter, null);
    const asked = requestsOf(on);
    expect(await on.reread(adapter, position)).toBeUndefined();
    expect(requestsOf(on)).toBe(asked);
  });

  it('waits until the live walk is over', async () => {
    const on = await chain();
    const adapter = on.adapter(1);
    const position = withoutVersion(await on.walk(on.adapter(0), null));
    const round = { slot: 1, queue: [on.me], done: [], amounts: {} };
    expect(await on.reread(adapter, { ...position, round })).toBeUndefined();
    expect(await on.reread(adapter, position)).toBeDefined();
  });

  it('takes no more than its share of the rate, and then sends no request', async () => {
    const on = await chain();
    const position = withoutVersion(await on.walk(on.adapter(0), null));
    for (let no = 0; no < 3 * PAGE_SIZE; no += 1) on.send(1);
    // A share that does not fill up again during the test.
    const adapter = on.adapter(1, { ...QUICK, requestsPerSecond: 0.001 });
    const first = await on.reread(adapter, position);
    expect(first).toMatchObject({ more: true });
    const asked = requestsOf(on);
    expect(await on.reread(adapter, first?.position)).toBeUndefined();
    expect(requestsOf(on)).toBe(asked);
  });

  it('keeps its place and its version while the live walk goes on in between', async () => {
    const on = await chain();
    const adapter = on.adapter(1);
    const made = Array.from({ length: 2 * PAGE_SIZE }, () => on.send(1));
    let position: unknown = withoutVersion(await on.walk(on.adapter(0), null));
    const found: string[] = [];
    for (let pages = 0; pages < 50; pages += 1) {
      const page = await on.reread(adapter, position);
      if (!page) break;
      found.push(...page.records.map(({ transactionId }) => transactionId));
      position = await on.walk(adapter, JSON.parse(JSON.stringify(page.position)));
    }
    expect(position).toMatchObject({ version: 1 });
    expect(position).not.toHaveProperty('reread');
    expect([...new Set(found)].sort()).toEqual([...made].sort());
  });

  it('leaves a transaction to the live walk when the node does not serve it now, unless it is stored', async () => {
    const on = await chain();
    const position = withoutVersion(await on.walk(on.adapter(0), null));
    const stored = on.send(0);
    const missed = on.send(1);
    on.exchange.solana.hideTransactions(2);
    const adapter = on.adapter(1);
    const page = await on.reread(adapter, position, [stored]);
    expect(page?.records).toEqual([]);
    expect(page?.position).toMatchObject({ waiting: [{ signature: missed }] });
  });

  it('does not read stored transactions of a token account again', async () => {
    const on = await chain();
    const stored = [on.send(0), on.send(1)];
    const position = withoutVersion(await on.walk(on.adapter(0), null));
    const adapter = on.adapter(1);
    let page = await on.reread(adapter, position, stored);
    expect(page?.records).toHaveLength(2);
    for (let pages = 0; page?.more && pages < 50; pages += 1) {
      page = await on.reread(adapter, page.position, stored);
      expect(page?.records).toEqual([]);
    }
    expect(page?.position).toMatchObject({ version: 1 });
  });
});

describe('a node that answers 403', () => {
  it('gets no request for a while: the calls fail at once, without a wait and without effect on the breaker', async () => {
    const on = await chain();
    const adapter = on.adapter(1);
    const call = { signal: new AbortController().signal, now: Date.now };
    on.exchange.solana.failRpc({ method: 'getBalance', code: 403, message: 'blocked', status: 403 });
    const refused = { code: 'http_status', statusCode: 403, retryable: false };
    await expect(adapter.pollBalances(on.me, null, call)).rejects.toMatchObject(refused);
    const asked = requestsOf(on);
    for (let tries = 0; tries < 10; tries += 1) {
      await expect(adapter.pollBalances(on.me, null, call)).rejects.toMatchObject(refused);
    }
    expect(requestsOf(on)).toBe(asked);
  });

  it('gets requests again after the pause', async () => {
    const on = await chain();
    const adapter = createSolanaWallets({ url: on.exchange.solanaUrl, http: QUICK, blockedPauseMs: 1 });
    closing.unshift(() => adapter.close());
    const call = { signal: new AbortController().signal, now: Date.now };
    on.exchange.solana.failRpc({ method: 'getBalance', code: 403, message: 'blocked', status: 403 });
    await expect(adapter.pollBalances(on.me, null, call)).rejects.toMatchObject({ statusCode: 403 });
    await expect
      .poll(() =>
        adapter.pollBalances(on.me, null, call).then(
          ({ records }) => records.length > 0,
          () => false,
        ),
      )
      .toBe(true);
  });
});
