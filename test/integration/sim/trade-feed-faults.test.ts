import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange, FaultRequest, FeedFault } from '../../../sim/exchange.ts';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import { isPool } from '../../../sim/limitless/wire.ts';
import { startHttpExchange } from './http-exchange.ts';

interface Feed {
  venue: string;
  host: FaultRequest['host'];
  /** One page of the live feed, of so many rows. */
  page(limit: number): string;
  /** The history of one market, where the venue has a route of its own. */
  history?(limit: number): string;
  rowsOf(body: unknown): object[];
  placeOf(body: unknown): unknown;
  keyOf(row: never): string;
  isOldestFirst?: true;
}

let exchange: Exchange;
const LIMIT = 40;

/** A market with a book on every venue. */
function busyMarket() {
  const markets = exchange.state().markets.filter(({ negRisk, outcomes: [yes] }) => {
    return !isPool({ tokenId: yes.tokenId, negRisk });
  });
  const [market] = markets.sort((a, b) => b.trades - a.trades);
  if (market === undefined) throw new Error('no market has a book');
  return market;
}

const FEEDS: readonly Feed[] = [
  {
    venue: 'Polymarket',
    host: 'polymarket',
    page: (limit) => `${exchange.dataUrl}/v2/trades?limit=${limit}`,
    history: (limit) => `${exchange.dataUrl}/v2/trades?limit=${limit}&condition=${busyMarket().conditionId}`,
    rowsOf: (body) => (body as { data: object[] }).data,
    placeOf: (body) => (body as { pagination: unknown }).pagination,
    keyOf: (row: { transaction_hash: string }) => row.transaction_hash,
  },
  {
    venue: 'Kalshi',
    host: 'kalshi',
    page: (limit) => `${exchange.kalshiUrl}/markets/trades?limit=${limit}`,
    history: (limit) => `${exchange.kalshiUrl}/markets/trades?limit=${limit}&ticker=${tickerOf(busyMarket())}`,
    rowsOf: (body) => (body as { trades: object[] }).trades,
    placeOf: (body) => (body as { cursor: string }).cursor,
    keyOf: (row: { trade_id: string }) => row.trade_id,
  },
  {
    venue: 'Manifold',
    host: 'manifold',
    // Large enough for all bets of these seconds, so that the last row is the newest.
    page: (limit) => {
      const afterTime = (exchange.second() - 25) * 1000;
      return `${exchange.manifoldUrl}/bets?order=asc&limit=${900 + limit}&afterTime=${afterTime}`;
    },
    rowsOf: (body) => body as object[],
    placeOf: () => undefined,
    keyOf: (row: { id: string }) => row.id,
    isOldestFirst: true,
  },
  {
    venue: 'Limitless',
    host: 'limitless',
    page: (limit) => `${exchange.limitlessUrl}/markets/${busyMarket().slug}/events?page=1&limit=${limit}`,
    rowsOf: (body) => (body as { events: object[] }).events,
    placeOf: (body) => (body as { totalRows: number }).totalRows,
    keyOf: (row: { txHash: string }) => row.txHash,
  },
];

beforeAll(async () => {
  ({ exchange } = await startHttpExchange({ markets: 10, historyHours: 0.2, rollingSeconds: 0, speed: 4 }));
  exchange.step(30);
});
afterEach(() => exchange.clearFaults());
afterAll(() => exchange.close());

/** Each answer has a page size of its own, so that no CDN of a venue repeats it. */
let asked = 0;
async function get(url: (limit: number) => string): Promise<{ body: unknown; headers: Headers }> {
  asked += 1;
  const response = await fetch(url(LIMIT + (asked % 50)), { headers: { 'user-agent': 'test' } });
  expect(response.status).toBe(200);
  return { body: await response.json(), headers: response.headers };
}

describe.each(FEEDS)('the trades of $venue', ({ host, page, history, rowsOf, placeOf, keyOf, isOldestFirst }) => {
  const inject = (feed: FeedFault, seconds?: number) =>
    fetch(`${exchange.url}/_sim/faults`, {
      method: 'POST',
      body: JSON.stringify({ host, kind: 'trade_feed', feed, seconds }),
    });
  const read = async (url = page) => rowsOf((await get(url)).body);
  const keys = (rows: readonly object[]) => rows.map((row) => keyOf(row as never));
  const newestOf = (rows: readonly object[]) => keys(rows).at(isOldestFirst ? -1 : 0);

  it.each([false, true])('stay as they were until the view expires when cached (Age: %s)', async (hasAge) => {
    await inject({ how: 'cached', maxAgeSeconds: 20, hasAge });
    const before = newestOf(await read());
    exchange.step(10);
    const { body, headers } = await get(page);
    expect(newestOf(rowsOf(body))).toBe(before);
    expect(headers.get('age')).toBe(hasAge ? '10' : null);
    exchange.step(10);
    expect(newestOf(await read())).not.toBe(before);
  });

  it('lack a share of their rows by the seed, and the same ones each time, when truncated', async () => {
    const whole = keys(await read());
    await inject({ how: 'truncated', share: 0.5 });
    const cut = keys(await read());
    expect(whole.filter((key) => !cut.includes(key)).length).toBeGreaterThan(0);
    expect(cut.length).toBeGreaterThan(0);
    const again = keys(await read());
    expect(whole.filter((key) => again.includes(key))).toEqual(whole.filter((key) => cut.includes(key)));
  });

  it('lack the oldest rows of a page when truncated so', async () => {
    await inject({ how: 'truncated', share: 0.25, omits: 'oldest' });
    asked = 9;
    const cut = keys(await read());
    exchange.clearFaults();
    asked = 9;
    const whole = keys(await read());
    const omitted = Math.ceil(whole.length / 4);
    expect(cut).toEqual(isOldestFirst ? whole.slice(omitted) : whole.slice(0, -omitted));
  });

  it('repeat one page, with its place or without it, when repeating', async () => {
    await inject({ how: 'repeating' });
    const first = await get(page);
    exchange.step(10);
    const second = await get(page);
    expect(newestOf(rowsOf(second.body))).toBe(newestOf(rowsOf(first.body)));
    exchange.clearFaults();
    await inject({ how: 'repeating', repeats: 'page' });
    const one = await get(page);
    exchange.step(10);
    const other = await get(page);
    expect(newestOf(rowsOf(other.body))).toBe(newestOf(rowsOf(one.body)));
    expect(placeOf(other.body)).toEqual(placeOf(one.body));
  });

  it('are an empty list for the requested time when empty, while the history of a market stays', async () => {
    await inject({ how: 'empty' }, 5);
    expect(await read()).toEqual([]);
    if (history) expect((await read(history)).length).toBeGreaterThan(0);
    exchange.step(5);
    expect((await read()).length).toBeGreaterThan(0);
    await inject({ how: 'empty', hitsHistory: true });
    if (history) expect(await read(history)).toEqual([]);
  });
});

it('the totals of the venues go on while every trade route is faulty', async () => {
  const { conditionId, slug, id } = busyMarket();
  const shares = () =>
    exchange
      .ledger()
      .trades.filter((row) => row.conditionId === conditionId)
      .reduce((sum, { size }) => sum + Number(size), 0);
  const kalshi = async () => {
    const { body } = await get(() => `${exchange.kalshiUrl}/markets/${tickerOf({ id })}`);
    return Number((body as { market: { volume_fp: string } }).market.volume_fp);
  };
  const dollars = async () => {
    const [gamma, limitless] = await Promise.all([
      get(() => `${exchange.gammaUrl}/markets/${id}`),
      get(() => `${exchange.limitlessUrl}/markets/${slug}`),
    ]);
    return [gamma, limitless].map(({ body }) => Number((body as { volume: string }).volume));
  };
  exchange.addFault({ host: '*', kind: 'trade_feed', feed: { how: 'empty', hitsHistory: true } });
  const before = await dollars();
  exchange.step(60);
  expect(await kalshi()).toBeCloseTo(shares(), 4);
  const [polymarket = 0, limitless = 0] = await dollars();
  expect(polymarket).toBeGreaterThan(before[0] ?? 0);
  expect(limitless).toBe(Math.round(polymarket * 1e6));
});
