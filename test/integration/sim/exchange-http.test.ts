import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, type LedgerRow, PortTakenError, startExchange } from '../../../sim/exchange.ts';

const NOW = 1_790_000_000;

interface GammaMarket {
  id: string;
  conditionId: string;
  clobTokenIds: string;
  closed: boolean;
  outcomePrices?: string;
  lastTradePrice?: number;
  bestBid?: number;
  bestAsk?: number;
  volume24hr?: number;
  volumeNum?: number;
}
interface GammaPage {
  markets: GammaMarket[];
  next_cursor?: string;
}
interface Trade {
  asset: string;
  conditionId: string;
  side: string;
  price: number;
  size: number;
  timestamp: number;
  proxyWallet: string;
  transactionHash: string;
}

describe('the simulated exchange over HTTP', () => {
  let exchange: Exchange;

  beforeAll(async () => {
    exchange = await startExchange({ seed: 11, markets: 140, historyHours: 1, nowSecond: NOW, paused: true });
    exchange.step(200);
  });
  afterEach(() => {
    exchange.clearFaults();
  });
  afterAll(() => exchange.close());

  async function get<T>(url: string, status = 200): Promise<T> {
    const response = await fetch(url);
    expect([response.status, url]).toEqual([status, url]);
    expect(response.headers.get('content-type')).toBe('application/json');
    return (await response.json()) as T;
  }
  async function post<T>(url: string, body: unknown, status = 200): Promise<T> {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    expect([response.status, url]).toEqual([status, url]);
    return (await response.json()) as T;
  }
  const gamma = (path: string) => `${exchange.gammaUrl}${path}`;
  const clob = (path: string) => `${exchange.clobUrl}${path}`;
  const data = (path: string) => `${exchange.dataUrl}${path}`;

  async function walk(query: string): Promise<GammaMarket[]> {
    const found: GammaMarket[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < 200; pages += 1) {
      const after = cursor === undefined ? '' : `&after_cursor=${encodeURIComponent(cursor)}`;
      const page = await get<GammaPage>(gamma(`/markets/keyset?${query}${after}`));
      found.push(...page.markets);
      if (!('next_cursor' in page)) return found;
      cursor = page.next_cursor;
    }
    throw new Error('the walk does not end');
  }

  describe('gamma', () => {
    it.each(['limit=7', 'limit=7&order=volume24hr&ascending=false', 'limit=100&order=updatedAt', 'limit=70&order=id'])(
      'visits every open market exactly once with %s',
      async (query) => {
        const ids = (await walk(query)).map((market) => market.conditionId);
        const open = exchange.state().markets.filter((market) => market.phase !== 'resolved');
        expect(open.length).toBeGreaterThan(100);
        expect(ids.toSorted()).toEqual(open.map((market) => market.conditionId).toSorted());
      },
    );

    it('sorts as asked', async () => {
      const volumes = (await walk('limit=50&order=volume24hr&ascending=false')).map((market) => market.volume24hr ?? 0);
      expect(volumes).toEqual(volumes.toSorted((a, b) => b - a));
      expect(volumes[0]).toBeGreaterThan(0);
    });

    it('shows closed markets only when asked, also for a look-up by id', async () => {
      const closed = await walk('closed=true');
      expect(closed.length).toBeGreaterThan(0);
      expect(closed.every((market) => market.closed)).toBe(true);
      const id = closed[0]?.conditionId ?? '';
      expect((await get<GammaPage>(gamma(`/markets/keyset?condition_ids=${id}`))).markets).toEqual([]);
      expect(await get<GammaMarket[]>(gamma(`/markets?condition_ids=${id}&closed=true`))).toHaveLength(1);
    });

    it('finds markets by repeated condition ids and token ids', async () => {
      const [first, second] = await walk('limit=100');
      const token = (JSON.parse(second?.clobTokenIds ?? '[]') as string[])[1];
      const both = `condition_ids=${first?.conditionId}&condition_ids=${second?.conditionId}`;
      const page = await get<GammaPage>(gamma(`/markets/keyset?${both}`));
      expect(page.markets.map((market) => market.id)).toEqual([first?.id, second?.id]);
      const byToken = await get<GammaMarket[]>(gamma(`/markets?clob_token_ids=${token}`));
      expect(byToken.map((market) => market.id)).toEqual([second?.id]);
    });

    it('ignores the wrong parameter `cursor`, and refuses offset and a foreign cursor', async () => {
      const first = await get<GammaPage>(gamma('/markets/keyset?limit=5'));
      const wrong = await get<GammaPage>(gamma(`/markets/keyset?limit=5&cursor=${first.next_cursor}`));
      expect(wrong.markets.map((market) => market.id)).toEqual(first.markets.map((market) => market.id));
      await get(gamma('/markets/keyset?offset=5'), 400);
      await get(gamma('/markets/keyset?after_cursor=nonsense'), 400);
      await get(gamma(`/markets/keyset?order=volume24hr&after_cursor=${first.next_cursor}`), 400);
    });

    it('caps a keyset page at 100 and pages the legacy list by offset', async () => {
      expect((await get<GammaPage>(gamma('/markets/keyset?limit=500'))).markets).toHaveLength(100);
      const all = await get<GammaMarket[]>(gamma('/markets?limit=500'));
      const parts = await Promise.all(
        [0, 50, 100].map((at) => get<GammaMarket[]>(gamma(`/markets?limit=50&offset=${at}`))),
      );
      expect(parts.flat().map((market) => market.id)).toEqual(all.map((market) => market.id));
      expect(await get(gamma('/markets?offset=3000'), 422)).toMatchObject({ type: 'validation error' });
    });

    it('serves one market and its event', async () => {
      const [market] = await get<(GammaMarket & { events: { id: string }[] })[]>(gamma('/markets?limit=1'));
      expect(await get<GammaMarket>(gamma(`/markets/${market?.id}`))).toEqual(market);
      const event = await get<{ id: string; markets: GammaMarket[] }>(gamma(`/events/${market?.events[0]?.id}`));
      expect(event.markets).toHaveLength(5);
      expect(await get(gamma('/markets/1'), 404)).toEqual({ type: 'not found error', error: 'id not found' });
      expect(await get(gamma('/markets/0xabc'), 422)).toEqual({ type: 'validation error', error: 'id is invalid' });
    });
  });

  describe('clob', () => {
    const tokens = () =>
      exchange
        .state()
        .markets.filter((market) => market.phase === 'open')
        .flatMap((market) => market.outcomes);

    it('agrees with Gamma and the engine about every price', async () => {
      const markets = await walk('limit=100');
      const state = new Map(exchange.state().markets.map((market) => [market.conditionId, market]));
      for (const market of markets.slice(0, 40)) {
        const outcomes = state.get(market.conditionId)?.outcomes;
        if (outcomes === undefined || state.get(market.conditionId)?.phase !== 'open') continue;
        const body = outcomes.map(({ tokenId }) => ({ token_id: tokenId }));
        const mids = await post<Record<string, string>>(clob('/midpoints'), body);
        const spreads = await post<Record<string, string>>(clob('/spreads'), body);
        expect(String(market.bestBid)).toBe(String(Number(outcomes[0].bestBid)));
        expect(String(market.bestAsk)).toBe(String(Number(outcomes[0].bestAsk)));
        const books = await post<{ asset_id: string; bids: { price: string }[]; asks: { price: string }[] }[]>(
          clob('/books'),
          body,
        );
        expect(books.map((book) => book.asset_id)).toEqual(outcomes.map(({ tokenId }) => tokenId));
        for (const [at, book] of books.entries()) {
          expect(book.bids.at(-1)?.price).toBe(outcomes[at as 0 | 1].bestBid);
          expect(book.asks.at(-1)?.price).toBe(outcomes[at as 0 | 1].bestAsk);
          const middle = (Number(book.bids.at(-1)?.price) + Number(book.asks.at(-1)?.price)) / 2;
          expect(Number(mids[book.asset_id])).toBeCloseTo(middle, 9);
          const width = Number(book.asks.at(-1)?.price) - Number(book.bids.at(-1)?.price);
          expect(Number(spreads[book.asset_id])).toBeCloseTo(width, 9);
          if (width <= 0.1) {
            const shown = (JSON.parse(market.outcomePrices ?? '[]') as string[])[at];
            expect(shown).toBe(mids[book.asset_id]);
          }
        }
      }
    });

    it('has the last trade of a token from the tape', async () => {
      const newest = new Map<string, LedgerRow>();
      for (const row of exchange.ledger().trades) newest.set(row.tokenId, row);
      const ids = tokens().map((outcome) => outcome.tokenId);
      const rows = await post<{ token_id: string; price: string; side: string }[]>(
        clob('/last-trades-prices'),
        ids.map((id) => ({ token_id: id })),
      );
      const traded = ids.filter((id) => newest.has(id));
      expect(rows.map((row) => row.token_id)).toEqual(traded);
      for (const row of rows) {
        expect([row.price, row.side]).toEqual([newest.get(row.token_id)?.price, newest.get(row.token_id)?.side]);
      }
      const never = ids.find((id) => !newest.has(id));
      expect(await get(clob(`/last-trade-price?token_id=${never}`))).toEqual({ price: '0.5', side: '' });
    });

    it('omits unknown and closed tokens from a batch, and takes at most 500', async () => {
      const known = tokens()[0]?.tokenId ?? '';
      const closed = exchange.state().markets.find((market) => market.phase === 'resolved')?.outcomes[0].tokenId;
      const books = await post<{ asset_id: string }[]>(clob('/books'), [
        { token_id: '1' },
        { token_id: known },
        { token_id: closed },
      ]);
      expect(books.map((book) => book.asset_id)).toEqual([known]);
      await post(
        clob('/books'),
        Array.from({ length: 500 }, () => ({ token_id: known })),
      );
      const tooMany = Array.from({ length: 501 }, () => ({ token_id: known }));
      expect(await post(clob('/books'), tooMany, 400)).toEqual({ error: 'Payload exceeds the limit' });
      expect(await post(clob('/books'), { token_id: known }, 400)).toEqual({ error: 'Invalid payload' });
    });

    it('answers for one token, and in the venue’s words when there is none', async () => {
      const id = tokens()[0]?.tokenId ?? '';
      const book = await get<{ asset_id: string; market: string }>(clob(`/book?token_id=${id}`));
      expect(book.asset_id).toBe(id);
      expect(await get(clob(`/midpoint?token_id=${id}`))).toEqual({ mid: expect.stringMatching(/^0\.\d+$/) });
      expect(await get(clob(`/spread?token_id=${id}`))).toEqual({ spread: expect.stringMatching(/^0\.\d+$/) });
      expect(await get(clob('/book?token_id=12'), 404)).toEqual({
        error: 'No orderbook exists for the requested token id',
      });
      await get(clob('/book'), 400);
      const market = await get<{ tokens: { token_id: string }[] }>(clob(`/markets/${book.market}`));
      expect(market.tokens.map((token) => token.token_id)).toContain(id);
    });
  });

  describe('data', () => {
    const busiest = () => exchange.state().markets.toSorted((a, b) => b.trades - a.trades)[0]?.conditionId ?? '';
    const key = (trade: Trade) =>
      [trade.asset, trade.timestamp, trade.side, String(trade.price), String(trade.size), trade.transactionHash].join();
    const keyOfRow = (row: LedgerRow) =>
      [
        row.tokenId,
        row.timestamp,
        row.side,
        String(Number(row.price)),
        String(Number(row.size)),
        row.transactionHash,
      ].join();

    it('pages through a market newest first, and prints what the engine did and nothing else', async () => {
      const market = busiest();
      const pages: Trade[] = [];
      for (let offset = 0; ; offset += 100) {
        const page = await get<Trade[]>(data(`/trades?market=${market}&limit=100&offset=${offset}`));
        pages.push(...page);
        if (page.length < 100) break;
      }
      const ledger = exchange.ledger().trades.filter((row) => row.conditionId === market);
      expect(pages.length).toBeGreaterThan(300);
      expect(pages.map(key)).toEqual(ledger.map(keyOfRow).toReversed());
    });

    it('takes both ends of a time window in, and cuts nothing at their seconds', async () => {
      const [start, end] = [NOW - 100, NOW];
      const rows = await get<Trade[]>(data(`/trades?start=${start}&end=${end}&limit=1000`));
      const ledger = exchange.ledger().trades.filter((row) => row.timestamp >= start && row.timestamp <= end);
      expect(rows.map(key)).toEqual(ledger.map(keyOfRow).toReversed());
      const second = rows[0]?.timestamp ?? 0;
      const one = await get<Trade[]>(data(`/trades?start=${second}&end=${second}`));
      expect(one.map(key)).toEqual(rows.filter((row) => row.timestamp === second).map(key));
    });

    it('adds the makers’ rows with takerOnly=false, under the same hashes', async () => {
      const takers = await get<Trade[]>(data(`/trades?market=${busiest()}&limit=200`));
      const both = await get<Trade[]>(data(`/trades?market=${busiest()}&limit=400&takerOnly=false`));
      expect(both).toHaveLength(400);
      expect(new Set(both.map((row) => row.transactionHash))).toEqual(
        new Set(takers.map((row) => row.transactionHash)),
      );
      expect(both.filter((_row, at) => at % 2 === 0)).toEqual(takers);
    });

    it('filters by side, wallet and several markets', async () => {
      const [first, second] = exchange.state().markets.toSorted((a, b) => b.trades - a.trades);
      const rows = await get<Trade[]>(
        data(`/trades?market=${first?.conditionId},${second?.conditionId}&side=SELL&limit=1000`),
      );
      expect(new Set(rows.map((row) => row.conditionId))).toEqual(new Set([first?.conditionId, second?.conditionId]));
      expect(new Set(rows.map((row) => row.side))).toEqual(new Set(['SELL']));
      const wallet = rows[0]?.proxyWallet;
      const own = await get<Trade[]>(data(`/trades?user=${wallet}&limit=1000`));
      expect(own.length).toBeGreaterThan(0);
      expect(new Set(own.map((row) => row.proxyWallet))).toEqual(new Set([wallet]));
      expect(await get(data('/trades?market=0xunknown'))).toEqual([]);
    });

    it('ends every window at 4,000 rows', async () => {
      expect(exchange.state().trades.total).toBeGreaterThan(5000);
      expect(await get<Trade[]>(data('/trades?limit=1000&offset=3500'))).toHaveLength(500);
      expect(await get(data('/trades?limit=1000&offset=4000'))).toEqual([]);
      expect(await get<Trade[]>(data('/trades?limit=5000'))).toHaveLength(1000);
      expect(await get(data('/trades?limit=x'), 400)).toHaveProperty('error');
    });
  });

  describe('faults', () => {
    const url = () => data('/trades?limit=50');
    const inject = (fault: object) => post<{ id: number }>(`${exchange.url}/_sim/faults`, fault, 201);

    it('delays an answer', async () => {
      await inject({ host: 'data', kind: 'latency', latencyMs: 120, count: 1 });
      const startedAt = performance.now();
      await get(url());
      // Timers may fire a millisecond early.
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(118);
      expect(exchange.requests().at(-1)).toMatchObject({ host: 'data', path: '/trades', faults: ['latency'] });
    });

    it('answers 429 with Retry-After, then is itself again', async () => {
      await inject({ host: '*', path: '/trades', kind: 'status429', retryAfterSeconds: 7, count: 1 });
      const refused = await fetch(url());
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
      await refused.text();
      await get(url());
    });

    it('answers 500 on one host only', async () => {
      await inject({ host: 'gamma', kind: 'status500' });
      expect(await get(gamma('/markets'), 500)).toHaveProperty('error');
      await get(url());
      const listed = await get<{ applied: number }[]>(`${exchange.url}/_sim/faults`);
      expect(listed).toMatchObject([{ host: 'gamma', kind: 'status500', applied: 1 }]);
      const cleared = await fetch(`${exchange.url}/_sim/faults`, { method: 'DELETE' });
      expect(await cleared.json()).toEqual({ cleared: 1 });
      await get(gamma('/markets'));
    });

    it('cuts a body short under a matching length, or breaks off in the middle of the announced one', async () => {
      const whole = await (await fetch(url())).text();
      await inject({ host: 'data', kind: 'truncate', count: 1 });
      const cut = await fetch(url());
      expect(cut.status).toBe(200);
      const text = await cut.text();
      expect(whole.startsWith(text)).toBe(true);
      expect(() => JSON.parse(text)).toThrow(SyntaxError);
      await inject({ host: 'data', kind: 'truncate', contentLength: 'full', count: 1 });
      const broken = await fetch(url());
      expect(Number(broken.headers.get('content-length'))).toBe(Buffer.byteLength(whole));
      await expect(broken.text()).rejects.toThrow();
    });

    it('renames a field', async () => {
      await inject({ host: 'data', kind: 'rename_field', field: { from: 'price', to: 'px' }, count: 1 });
      const rows = await get<Record<string, unknown>[]>(url());
      expect(rows.every((row) => 'px' in row && !('price' in row))).toBe(true);
    });

    it('resets the connection', async () => {
      await inject({ host: 'data', kind: 'reset', count: 1 });
      await expect(fetch(url())).rejects.toMatchObject({
        cause: { code: expect.stringMatching(/ECONNRESET|UND_ERR/) },
      });
      await get(url());
    });

    it('refuses a fault that makes no sense', async () => {
      await post(`${exchange.url}/_sim/faults`, { host: '*', kind: 'fire' }, 400);
    });
  });

  describe('control', () => {
    it('forces a price that all three hosts then show', async () => {
      const market = exchange.state().markets.find((each) => each.phase === 'open' && each.hasTraders && !each.negRisk);
      const tokenId = market?.outcomes[1].tokenId ?? '';
      const before = exchange.ledger().nextIndex;
      const forced = await post<{ fills: number; nextIndex: number }>(`${exchange.url}/_sim/price`, {
        tokenId,
        price: 0.91,
        holdMs: 5000,
      });
      expect(forced.fills).toBeGreaterThan(0);
      exchange.step(3);
      expect(await get(clob(`/midpoint?token_id=${tokenId}`))).toEqual({ mid: '0.91' });
      expect(await get(clob(`/last-trade-price?token_id=${tokenId}`))).toMatchObject({ price: '0.91' });
      const [shown] = await get<GammaMarket[]>(gamma(`/markets?clob_token_ids=${tokenId}`));
      expect(JSON.parse(shown?.outcomePrices ?? '')).toEqual(['0.09', '0.91']);
      const { trades } = await get<{ trades: LedgerRow[] }>(`${exchange.url}/_sim/ledger?since=${before}`);
      expect(trades.some((row) => row.tokenId === tokenId && row.price === '0.91')).toBe(true);
      const printed = await get<Trade[]>(data(`/trades?market=${market?.conditionId}&limit=1`));
      expect(printed[0]).toMatchObject({ asset: tokenId, price: 0.91 });
    });

    it('refuses a price off the grid, an unknown token and a closed market', async () => {
      const open = exchange.state().markets.find((each) => each.phase === 'open' && each.hasTraders);
      const closed = exchange.state().markets.find((each) => each.phase === 'resolved');
      const price = `${exchange.url}/_sim/price`;
      await post(price, { tokenId: open?.outcomes[0].tokenId, price: '0.00001' }, 400);
      await post(price, { tokenId: open?.outcomes[0].tokenId, price: 1 }, 400);
      await post(price, { tokenId: '1', price: 0.5 }, 404);
      await post(price, { tokenId: closed?.outcomes[0].tokenId, price: 0.5 }, 409);
      await post(price, 'nothing', 400);
    });

    it('steps and idles by hand, and says how it is', async () => {
      const before = await get<{ second: number }>(`${exchange.url}/_sim/state`);
      expect(await post(`${exchange.url}/_sim/step`, { steps: 4 })).toMatchObject({ second: before.second + 4 });
      const { total } = exchange.state().trades;
      expect(await post(`${exchange.url}/_sim/idle`, { seconds: 3 })).toEqual({
        second: before.second + 7,
        nextIndex: total,
      });
      expect(await get(`${exchange.url}/_sim/health`)).toEqual({ status: 'ok' });
      await post(`${exchange.url}/_sim/step`, { steps: 0 }, 400);
      await get(`${exchange.url}/_sim/nothing`, 404);
      await get(`${exchange.url}/kalshi/markets`, 404);
    });
  });
});

describe('startExchange', () => {
  it('runs in real time, and pauses', async () => {
    const exchange = await startExchange({ seed: 2, historyHours: 0.1, markets: 12 });
    try {
      const wall = Math.floor(Date.now() / 1000);
      expect(exchange.state().second).toBeGreaterThanOrEqual(wall);
      exchange.pause();
      const { second } = exchange.state();
      exchange.step(50);
      expect(exchange.state().second).toBe(second + 50);
      exchange.resume();
      expect(exchange.state().second).toBeGreaterThanOrEqual(second + 50);
    } finally {
      await exchange.close();
    }
  });

  it('says that a port is taken, and closes while a delayed answer is on its way', async () => {
    const exchange = await startExchange({ historyHours: 0.01, markets: 4, paused: true });
    await expect(startExchange({ port: exchange.port, historyHours: 0.01, markets: 4 })).rejects.toBeInstanceOf(
      PortTakenError,
    );
    exchange.addFault({ host: 'data', kind: 'latency', latencyMs: 600_000 });
    const pending = fetch(`${exchange.dataUrl}/trades`).catch((error: unknown) => error);
    while (exchange.requests().length === 0) await new Promise((resolve) => setImmediate(resolve));
    await exchange.close();
    expect(await pending).toBeInstanceOf(Error);
  });

  it('lists a large catalog page by page', { timeout: 60_000 }, async () => {
    const exchange = await startExchange({ historyHours: 0.05, markets: 20_000, liveMarkets: 10, paused: true });
    try {
      const seen = new Set<string>();
      let cursor: string | undefined;
      do {
        const after = cursor === undefined ? '' : `&after_cursor=${cursor}`;
        const response = await fetch(
          `${exchange.gammaUrl}/markets/keyset?limit=100&order=volume24hr&ascending=false${after}`,
        );
        const page = (await response.json()) as GammaPage;
        for (const market of page.markets) seen.add(market.id);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      const open = exchange.state().markets.filter((market) => market.phase !== 'resolved');
      expect(seen.size).toBe(open.length);
      expect(seen.size).toBeGreaterThan(19_900);
    } finally {
      await exchange.close();
    }
  });
});
