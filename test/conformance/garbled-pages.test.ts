import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VenueError } from '../../src/venues/errors.ts';
import { createKalshiAdapter } from '../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../src/venues/limitless/adapter.ts';
import { createManifoldAdapter } from '../../src/venues/manifold/adapter.ts';
import { createPolymarketAdapter } from '../../src/venues/polymarket/adapter.ts';
import type { Batch, CallContext, VenueAdapter } from '../../src/venues/port.ts';
import { ScriptedServer } from '../integration/venues/scripted-server.ts';
import { checkRejected, invariants } from './venue-adapter/invariants.ts';
import type { PollKind } from './venue-adapter/venue-under-test.ts';

/** Damaged whole answers, through each adapter's client: parsers of single records never see them. */

const NOW_MS = Date.UTC(2026, 9, 1);
const SECOND = NOW_MS / 1000 - 3_600;
const CONDITION = `0x${'ab'.repeat(32)}`;
const HTTP = { requestsPerSecond: 10_000, burst: 1_000, maxAttempts: 1, breakerFailures: 1_000_000 };
const context: CallContext = { signal: new AbortController().signal, now: () => NOW_MS };

interface Venue {
  name: string;
  create(url: string): VenueAdapter;
  /** A good answer by the end of its path. */
  answers: readonly (readonly [path: RegExp, answer: unknown])[];
  marketId: string;
  outcomeIds: readonly string[];
  hasBooks: boolean;
  /** Damages that this venue's format cannot distinguish from an empty answer. */
  quiet?: readonly string[];
}

const kalshiMarket = {
  ticker: 'KXA-1',
  event_ticker: 'KXA',
  title: 'A',
  status: 'active',
  created_time: '2026-01-01T00:00:00Z',
  yes_bid_dollars: '0.4000',
  yes_ask_dollars: '0.5000',
  last_price_dollars: '0.4500',
};
const manifoldMarket = {
  id: 'abc123',
  question: 'A?',
  outcomeType: 'BINARY',
  mechanism: 'cpmm-1',
  isResolved: false,
  createdTime: NOW_MS - 86_400_000,
  lastUpdatedTime: NOW_MS - 86_400_000,
};

const limitlessMarket = {
  slug: 'a-1',
  title: 'A?',
  status: 'FUNDED',
  tradeType: 'clob',
  tokens: { yes: '10', no: '11' },
  volume: '5000000',
  tradePrices: { buy: { market: [0.5, 0.6] }, sell: { market: [0.4, 0.5] } },
};

const VENUES: readonly Venue[] = [
  {
    name: 'polymarket',
    create: (url) => createPolymarketAdapter({ urls: { gamma: url, clob: url, data: url }, http: HTTP }),
    answers: [
      [/\/markets\/keyset$/, { markets: [gammaMarket()], next_cursor: 'next' }],
      [/\/markets$/, [gammaMarket()]],
      [/\/books$/, [{ asset_id: '10', timestamp: String(NOW_MS), bids: [], asks: [{ price: '0.5', size: '1' }] }]],
      [/\/last-trades-prices$/, [{ token_id: '10', price: '0.5', side: 'BUY' }]],
      [
        /\/trades$/,
        {
          data: [
            {
              transaction_hash: '0x1',
              proxy_wallet: '0x2',
              token_id: '10',
              side: 'BUY',
              size: 5,
              price: 0.5,
              timestamp: SECOND,
              condition_id: CONDITION,
            },
          ],
          pagination: { limit: 1000, offset: 0, has_more: false, next_cursor: null },
        },
      ],
    ],
    marketId: CONDITION,
    outcomeIds: ['10', '11'],
    hasBooks: true,
  },
  {
    name: 'kalshi',
    create: (url) => createKalshiAdapter({ url, http: HTTP }),
    answers: [
      [/\/events$/, { events: [{ event_ticker: 'KXA', title: 'E', markets: [kalshiMarket] }], cursor: 'next' }],
      [/\/markets$/, { markets: [kalshiMarket], cursor: 'next' }],
      [
        /\/orderbooks$/,
        { orderbooks: [{ ticker: 'KXA-1', orderbook_fp: { yes_dollars: [['0.4', '5']], no_dollars: [] } }] },
      ],
      [
        /\/trades$/,
        {
          trades: [
            {
              trade_id: 't1',
              ticker: 'KXA-1',
              created_time: new Date(SECOND * 1000).toISOString(),
              count_fp: '1.00',
              yes_price_dollars: '0.4',
            },
          ],
          cursor: 'next',
        },
      ],
      [/\/cutoff$/, { trades_created_ts: '2026-01-01T00:00:00Z', market_settled_ts: '2026-01-01T00:00:00Z' }],
    ],
    marketId: 'KXA-1',
    outcomeIds: ['KXA-1:yes', 'KXA-1:no'],
    hasBooks: true,
  },
  {
    name: 'manifold',
    create: (url) => createManifoldAdapter({ url, http: HTTP }),
    answers: [
      [/\/markets$/, [manifoldMarket]],
      [/\/market\/abc123$/, manifoldMarket],
      [/\/market-probs$/, { abc123: { prob: 0.5 } }],
      [
        /\/bets$/,
        [{ id: 'b1', contractId: 'abc123', createdTime: SECOND * 1000, amount: 5, shares: 10, outcome: 'YES' }],
      ],
    ],
    marketId: 'abc123',
    outcomeIds: ['abc123:YES', 'abc123:NO'],
    hasBooks: false,
    quiet: [
      // Probabilities are an object by contract id, without any list: the client ignores unknown ids.
      'fetchPrices: renamed fields',
      'fetchPrices: lists as objects',
      'fetchPrices: lists as texts',
      // One market is an object, without any list.
      'fetchMarkets: lists as objects',
      'fetchMarkets: lists as texts',
    ],
  },
  {
    name: 'limitless',
    create: (url) => createLimitlessAdapter({ url, http: HTTP }),
    answers: [
      [/\/markets\/active$/, { data: [limitlessMarket], totalMarketsCount: 1 }],
      [/\/markets\/a-1$/, limitlessMarket],
      [/\/orderbook$/, { tokenId: '10', bids: [{ price: 0.4, size: 5_000_000 }], asks: [] }],
      [
        /\/events$/,
        {
          events: [
            {
              createdAt: new Date(SECOND * 1000).toISOString(),
              tokenId: '10',
              price: 0.5,
              matchedSize: '5000000',
              side: 0,
              txHash: '0x1',
            },
          ],
          totalRows: 1,
        },
      ],
    ],
    marketId: 'a-1',
    outcomeIds: ['10', '11'],
    hasBooks: true,
    quiet: [
      // One market is an object, and its lists are decoration.
      'fetchMarkets: lists as objects',
      'fetchMarkets: lists as texts',
    ],
  },
];

function gammaMarket(): object {
  return {
    id: '1',
    conditionId: CONDITION,
    question: 'A?',
    closed: false,
    outcomes: '["Yes","No"]',
    clobTokenIds: '["10","11"]',
    enableOrderBook: true,
    acceptingOrders: true,
    createdAt: '2026-01-01T00:00:00Z',
    updatedAt: '2026-07-01T00:00:00Z',
  };
}

type Json = Record<string, unknown>;

/** The list of an answer, or its only object, in another place. */
function rename(answer: unknown): unknown {
  if (Array.isArray(answer)) return { items: answer };
  return Object.fromEntries(Object.entries(answer as Json).map(([key, value]) => [`${key}_v2`, value]));
}

function withCursor(answer: unknown, cursor: unknown): unknown {
  if (Array.isArray(answer)) return answer;
  const fields = Object.entries(answer as Json);
  return Object.fromEntries(fields.map(([key, value]) => [key, key.endsWith('cursor') ? cursor : value]));
}

function listsReplaced(answer: unknown, by: (list: unknown[]) => unknown): unknown {
  if (Array.isArray(answer)) return by(answer);
  return Object.fromEntries(
    Object.entries(answer as Json).map(([key, value]) => [key, Array.isArray(value) ? by(value) : value]),
  );
}

/** Answers without the requested records: they must not pass for an empty page. */
const UNREADABLE: Readonly<Record<string, (answer: unknown) => string>> = {
  'cut in half': (answer) => JSON.stringify(answer).slice(0, -JSON.stringify(answer).length / 2),
  'a page of HTML': () => '<!DOCTYPE html><html><body>Just a moment...</body></html>',
  'an empty body': () => '',
  'the word null': () => 'null',
  'a number': () => '7',
  'a text': () => '"maintenance"',
  'an error object': () => '{"error":"internal","code":200}',
  'renamed fields': (answer) => JSON.stringify(rename(answer)),
  'wrapped in data': (answer) => JSON.stringify({ data: answer }),
  'wrapped in a list': (answer) => JSON.stringify([[answer]]),
  'lists as objects': (answer) => JSON.stringify(listsReplaced(answer, (list) => ({ ...list }))),
  'lists as texts': (answer) => JSON.stringify(listsReplaced(answer, (list) => JSON.stringify(list))),
  'two documents': (answer) => `${JSON.stringify(answer)}${JSON.stringify(answer)}`,
  'nested a hundred thousand deep': () => '['.repeat(100_000) + ']'.repeat(100_000),
  'not UTF-8': () => '\u0000\u0001\u0002',
};

/** Answers that may be read in part. */
const ODD: Readonly<Record<string, (answer: unknown) => string>> = {
  'as it should be': (answer) => JSON.stringify(answer),
  'a cursor that is a number': (answer) => JSON.stringify(withCursor(answer, 7)),
  'a cursor that is an object': (answer) => JSON.stringify(withCursor(answer, { next: 'x' })),
  'a cursor that is a list': (answer) => JSON.stringify(withCursor(answer, ['x'])),
  'a cursor as long as a book': (answer) => JSON.stringify(withCursor(answer, 'x'.repeat(3_000))),
  'records that are none': (answer) =>
    JSON.stringify(listsReplaced(answer, (list) => [null, 7, 'x', true, [], {}, ...list])),
  'each record five times': (answer) => JSON.stringify(listsReplaced(answer, (list) => Array(5).fill(list).flat())),
  'empty lists': (answer) => JSON.stringify(listsReplaced(answer, () => [])),
  'treacherous keys': (answer) =>
    JSON.stringify(answer).replaceAll('{', '{"__proto__":{"price":"2"},"constructor":null,"toString":1,'),
  'numbers beyond all numbers': (answer) => JSON.stringify(answer).replaceAll(/:(-?\d+(\.\d+)?)/g, ':1e999'),
  'a byte order mark': (answer) => `\ufeff${JSON.stringify(answer)}`,
};

type Call = (adapter: VenueAdapter) => Promise<Batch<unknown>>;

/** Every read of an adapter, by the kind of its records. */
function callsOf({ marketId, outcomeIds, hasBooks }: Venue): (readonly [name: string, kind: PollKind, call: Call])[] {
  const history = { marketId, outcomeIds, fromMs: NOW_MS - 86_400_000, toMs: NOW_MS };
  const calls: readonly (readonly [string, PollKind, Call])[] = [
    ['pollMarkets', 'markets', (adapter) => adapter.pollMarkets(null, context)],
    ['fetchMarkets', 'markets', (adapter) => adapter.fetchMarkets([marketId], context)],
    ['pollTrades', 'trades', (adapter) => adapter.pollTrades(null, context)],
    ['pollHistory', 'trades', (adapter) => adapter.pollHistory(history, null, context)],
    ['fetchPrices', 'prices', (adapter) => adapter.fetchPrices(outcomeIds, context)],
    ['fetchBooks', 'books', (adapter) => adapter.fetchBooks(outcomeIds, context)],
  ];
  return calls.filter(([, kind]) => hasBooks || kind !== 'books');
}

describe.each(VENUES)('whole answers of $name', (venue) => {
  const server = new ScriptedServer();
  let url: string;
  let adapter: VenueAdapter;
  let garble: (answer: unknown) => string = JSON.stringify;
  beforeAll(async () => {
    url = await server.start();
    server.answer = (request, response) => {
      const good = venue.answers.find(([path]) => path.test(request.path))?.[1];
      if (good === undefined) response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
      else response.writeHead(200, { 'content-type': 'application/json' }).end(garble(good));
    };
  });
  afterAll(() => server.close());

  /** The batch, sound in all its parts, or the code of the venue error; any other error fails the test. */
  async function read(kind: PollKind, call: Call) {
    try {
      const batch = await call(adapter);
      for (const record of batch.records) invariants[kind](record, NOW_MS);
      batch.rejected.forEach(checkRejected);
      return batch;
    } catch (error) {
      if (error instanceof VenueError) return error;
      throw error;
    }
  }

  describe.each(callsOf(venue))('%s', (name, kind, call) => {
    // An adapter whose batches failed asks for their ids apart, and this server repeats its answer to each part.
    beforeAll(() => {
      adapter = venue.create(url);
    });
    afterAll(() => adapter.close());

    it('reads a good one', async () => {
      garble = JSON.stringify;
      expect(await read(kind, call)).toMatchObject({ rejected: [] });
    });

    const damages = Object.entries(UNREADABLE).filter(([what]) => !venue.quiet?.includes(`${name}: ${what}`));
    it.each(damages)('%s is a fault or a rejected record, never an empty page', async (_what, damage) => {
      garble = damage;
      const result = await read(kind, call);
      if (result instanceof VenueError) return;
      expect(result.rejected.length).toBeGreaterThan(0);
      expect(result.records).toEqual([]);
    });

    it.each(Object.entries(ODD))('%s harms nothing', async (_what, damage) => {
      garble = damage;
      const result = await read(kind, call);
      if (result instanceof VenueError) return;
      expect(new Set(result.records.map((each) => JSON.stringify(each))).size).toBe(result.records.length);
    });
  });
});
