import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startExchange } from '../../../sim/exchange.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { createSolanaTokens } from '../../../src/venues/solana/token-adapter.ts';
import { type Answer, json, ScriptedServer } from './scripted-server.ts';

const NOW = 1_790_000_000_000;
const SOL = 'So11111111111111111111111111111111111111112';
/** The duration of each request of these tests. */
const TOOK_MS = 3_000;
const context = { signal: new AbortController().signal, now: () => NOW };
const http = { requestsPerSecond: 10_000, burst: 100, maxAttempts: 1 };

const server = new ScriptedServer();
let url = '';
let routes: Record<string, Answer>;
const adapters: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  url = await server.start();
  routes = {};
  vi.useFakeTimers({ toFake: ['performance'] });
  server.answer = (request, response) => {
    vi.advanceTimersByTime(TOOK_MS);
    (routes[request.path] ?? json(404, { error: 'not found' }))(request, response);
  };
});
afterEach(async () => {
  vi.useRealTimers();
  for (const adapter of adapters.splice(0)) await adapter.close();
  await server.close();
});

function closedAfterTest<A extends { close(): Promise<void> }>(adapter: A): A {
  adapters.push(adapter);
  return adapter;
}

const kalshi = () => closedAfterTest(createKalshiAdapter({ url, http }));
const polymarket = () => closedAfterTest(createPolymarketAdapter({ urls: { gamma: url, clob: url, data: url }, http }));
const levels = (price: string) => [{ price, size: '1' }];
const tokenBook = (more: object = {}) => ({ asset_id: '1', bids: levels('0.2'), asks: levels('0.6'), ...more });

interface Read {
  name: string;
  /** The records have a time of the venue. One that is later than its answer can be is rejected. */
  isDated?: true;
  /** Answers by path, sent with the headers of the test. */
  answers: Record<string, unknown>;
  read(): Promise<{ records: readonly { asOfMs: number }[] }>;
}

const READS: Read[] = [
  {
    name: 'Kalshi quotes',
    answers: {
      '/markets': {
        markets: [{ ticker: 'A', status: 'active', yes_bid_dollars: '0.40', yes_ask_dollars: '0.44' }],
        cursor: '',
      },
    },
    read: () => kalshi().fetchPrices(['A:yes'], context),
  },
  {
    name: 'Kalshi books',
    answers: {
      '/markets/orderbooks': { orderbooks: [{ ticker: 'A', orderbook_fp: { yes_dollars: [['0.4', '1']] } }] },
    },
    read: () => kalshi().fetchBooks(['A:yes'], context),
  },
  {
    name: 'a single Kalshi book',
    answers: { '/markets/A/orderbook': { orderbook_fp: { yes_dollars: [['0.4', '1']] } } },
    read: () => kalshi().fetchBooks(['A:yes'], context),
  },
  {
    name: 'Manifold probabilities',
    answers: { '/market-probs': { c1: { prob: 0.25 } } },
    read: () => closedAfterTest(createManifoldAdapter({ url, http })).fetchPrices(['c1:YES'], context),
  },
  {
    name: 'Jupiter prices',
    answers: { '/price/v3': { [SOL]: { usdPrice: 147.48, blockId: 1 } } },
    read: () => closedAfterTest(createSolanaTokens({ jupiter: url, http })).fetchTokenPrices([SOL], context),
  },
  {
    name: 'Polymarket books without a timestamp',
    answers: { '/books': [tokenBook()] },
    read: () => polymarket().fetchBooks(['1'], context),
  },
  {
    name: 'a single Polymarket book without a timestamp',
    answers: { '/book': tokenBook() },
    read: () => polymarket().fetchBooks(['1'], context),
  },
  {
    name: 'Polymarket last trades beside a newer book',
    answers: {
      '/books': [tokenBook({ timestamp: String(NOW) })],
      '/last-trades-prices': [{ token_id: '1', price: '0.3', side: 'BUY' }],
    },
    read: () => polymarket().fetchPrices(['1'], context),
    isDated: true,
  },
];

describe.each(READS)('$name', ({ answers, read, isDated }) => {
  async function timeOf(headers: Record<string, string>): Promise<number[]> {
    for (const [path, body] of Object.entries(answers)) routes[path] = json(200, body, headers);
    return (await read()).records.map((record) => record.asOfMs);
  }

  it('have the start of the request as their time', async () => {
    expect(await timeOf({})).toEqual([NOW - TOOK_MS]);
  });

  it('are older by the Age of a cached answer, and by the second that Age cannot show', async () => {
    expect(await timeOf({ age: '219', 'x-cache': 'Hit from cloudfront' })).toEqual([NOW - TOOK_MS - 219_000 - 1_000]);
  });

  it('are as old as a cache can make them when the Age is not a number of seconds', async () => {
    expect(await timeOf({ age: 'old' })).toEqual(isDated ? [] : [NOW - TOOK_MS - 86_400_000 - 1_000]);
  });
});

it('a Polymarket book keeps its own timestamp at any age of the answer', async () => {
  routes['/books'] = json(200, [tokenBook({ timestamp: String(NOW - 400_000) })], { age: '219' });
  const { records } = await polymarket().fetchBooks(['1'], context);
  expect(records.map((record) => record.asOfMs)).toEqual([NOW - 400_000]);
});

it('single Kalshi books have the start of their own request when others take longer', async () => {
  for (const ticker of ['A', 'B']) {
    routes[`/markets/${ticker}/orderbook`] = json(200, { orderbook_fp: { yes_dollars: [['0.4', '1']] } });
  }
  const turns: Record<string, Answer> = { ...routes };
  // The answer of A is old when the one of B arrives.
  routes['/markets/B/orderbook'] = (request, response) => {
    setImmediate(() => {
      vi.advanceTimersByTime(10_000);
      turns['/markets/B/orderbook']?.(request, response);
    });
  };
  const { records } = await kalshi().fetchBooks(['A:yes', 'B:yes'], context);
  for (const { asOfMs } of records) expect(asOfMs).toBeLessThanOrEqual(NOW - 10_000);
  expect(records).toHaveLength(2);
});

it('a Kalshi quote that waits for a retry has the start of the attempt that was answered', async () => {
  const answer = json(200, {
    markets: [{ ticker: 'A', status: 'active', yes_bid_dollars: '0.40', yes_ask_dollars: '0.44' }],
    cursor: '',
  });
  let tries = 0;
  routes['/markets'] = (request, response) => {
    tries += 1;
    (tries === 1 ? json(500, {}) : answer)(request, response);
  };
  const adapter = closedAfterTest(createKalshiAdapter({ url, http: { ...http, maxAttempts: 2, retryDelayMs: 1 } }));
  const { records } = await adapter.fetchPrices(['A:yes'], context);
  expect(records.map((record) => record.asOfMs)).toEqual([NOW - TOOK_MS]);
});

it('quotes that a CDN repeats for 300 s keep a time at or before their first answer', async () => {
  const exchange = await startExchange({ seed: 11, historyHours: 1, nowSecond: NOW / 1000, paused: true });
  adapters.push(exchange);
  const adapter = closedAfterTest(createKalshiAdapter({ url: exchange.kalshiUrl, http }));
  const simulated = { ...context, now: () => exchange.second() * 1000 };
  const { records } = await adapter.pollMarkets(null, simulated);
  const outcomeIds = records.flatMap((market) => market.outcomes.map((outcome) => outcome.outcomeId));
  const read = async () =>
    new Map((await adapter.fetchPrices(outcomeIds, simulated)).records.map((each) => [each.outcomeId, each]));
  exchange.addFault({ host: 'kalshi', path: '/trade-api/v2/markets', kind: 'cdn_cache', maxAgeSeconds: 300 });
  const first = await read();
  expect(first.size).toBeGreaterThan(10);
  exchange.step(120);
  const repeated = await read();
  expect([...repeated.keys()]).toEqual([...first.keys()]);
  for (const [outcomeId, { asOfMs, price }] of repeated) {
    expect(price).toBe(first.get(outcomeId)?.price);
    expect(asOfMs).toBeLessThanOrEqual(first.get(outcomeId)?.asOfMs ?? 0);
  }
  exchange.step(180);
  for (const { asOfMs } of (await read()).values()) expect(asOfMs).toBeGreaterThan(NOW + 200_000);
});
