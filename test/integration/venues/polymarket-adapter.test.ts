import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TruncationEvent, UnknownValueEvent } from '../../../src/venues/observer.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { type Answer, json, ScriptedServer } from './scripted-server.ts';

const NOW = 1_786_275_600_000;
const server = new ScriptedServer();
let adapter: VenueAdapter;
let unknowns: UnknownValueEvent[];
let truncations: TruncationEvent[];
let routes: Record<string, Answer>;
const context = { signal: new AbortController().signal, now: () => NOW };

beforeEach(async () => {
  const url = await server.start();
  server.requests.length = 0;
  unknowns = [];
  truncations = [];
  routes = {};
  server.answer = (request, response) =>
    (routes[`${request.method} ${request.path}`] ?? json(404, { error: 'not found' }))(request, response);
  adapter = createPolymarketAdapter({
    urls: { gamma: `${url}/gamma`, clob: `${url}/clob`, data: `${url}/data` },
    http: { requestsPerSecond: 10_000, maxAttempts: 1 },
    observer: { onUnknown: (event) => unknowns.push(event), onTruncated: (event) => truncations.push(event) },
  });
});
afterEach(async () => {
  await adapter.close();
  await server.close();
});

function market(id: number, more: object = {}): object {
  return {
    id: String(id),
    conditionId: `0x${id}`,
    question: `Question ${id}`,
    closed: false,
    outcomes: '["Yes","No"]',
    clobTokenIds: `["${id}0","${id}1"]`,
    enableOrderBook: true,
    acceptingOrders: true,
    updatedAt: '2026-07-01T00:00:00Z',
    ...more,
  };
}

function book(tokenId: string, bid: string, ask: string): object {
  return {
    asset_id: tokenId,
    timestamp: String(NOW - 1_000),
    bids: [{ price: bid, size: '5' }],
    asks: [{ price: ask, size: '5' }],
    last_trade_price: '0.006',
  };
}

const paths = () => server.requests.map((request) => `${request.method} ${request.path}`);

describe('the Polymarket adapter', () => {
  it('falls back to the older listing where the keyset one is gone, and stays there', async () => {
    routes['GET /gamma/markets'] = (request, response) => {
      const isFirst = request.query.get('offset') === null && request.query.get('closed') === 'false';
      json(200, isFirst ? [market(1), market(2)] : [])(request, response);
    };
    const first = await adapter.pollMarkets(null, context);
    expect(first.records.map((record) => record.marketId)).toEqual(['0x1', '0x2']);
    expect(first.more).toBe(true);
    const second = await adapter.pollMarkets(first.position, context);
    expect(second).toMatchObject({ records: [], more: true });
    const third = await adapter.pollMarkets(second.position, context);
    expect(third).toMatchObject({ records: [], more: false });
    expect(paths()).toEqual([
      'GET /gamma/markets/keyset',
      'GET /gamma/markets',
      'GET /gamma/markets',
      'GET /gamma/markets',
    ]);
  });

  it('follows the cursor under the one name that is heard', async () => {
    routes['GET /gamma/markets/keyset'] = (request, response) => {
      const cursor = request.query.get('after_cursor');
      json(200, cursor === null ? { markets: [market(1)], next_cursor: 'c=2' } : { markets: [market(2)] })(
        request,
        response,
      );
    };
    const first = await adapter.pollMarkets(null, context);
    const second = await adapter.pollMarkets(first.position, context);
    expect([...first.records, ...second.records].map((record) => record.marketId)).toEqual(['0x1', '0x2']);
    expect(server.requests[1]?.query.get('after_cursor')).toBe('c=2');
    expect(server.requests.map((request) => request.query.has('offset'))).toEqual([false, false]);
  });

  it('goes on without an order that the venue refuses', async () => {
    routes['GET /gamma/markets/keyset'] = (request, response) =>
      request.query.has('order')
        ? json(422, {})(request, response)
        : json(200, { markets: [market(1)] })(request, response);
    const first = await adapter.pollMarkets(null, context);
    const second = await adapter.pollMarkets(first.position, context);
    expect(second).toMatchObject({ records: [], rejected: [], more: false });
    expect(truncations).toMatchObject([{ venue: 'polymarket', kind: 'markets' }]);
  });

  it('counts unknown states, refuses a payload of another shape, and keeps bad records apart', async () => {
    routes['GET /gamma/markets/keyset'] = json(200, {
      markets: [market(1, { umaResolutionStatus: 'pondering' }), market(2, { conditionId: undefined })],
    });
    const page = await adapter.pollMarkets(null, context);
    expect(page.records).toHaveLength(1);
    expect(page.rejected).toMatchObject([{ kind: 'markets', reason: 'missing_field' }]);
    expect(unknowns).toEqual([{ venue: 'polymarket', field: 'umaResolutionStatus', value: 'pondering' }]);
    routes['GET /gamma/markets/keyset'] = json(200, { items: [] });
    await expect(adapter.pollMarkets(null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('prices wide books by their own last trade, never by the one written in the book', async () => {
    routes['POST /clob/books'] = json(200, [
      book('10', '0.30', '0.32'),
      book('11', '0.2', '0.8'),
      book('12', '0.2', '0.8'),
    ]);
    routes['POST /clob/last-trades-prices'] = json(200, [{ token_id: '11', price: '0.75', side: 'BUY' }]);
    const { records, rejected } = await adapter.fetchPrices(['10', '11', '12'], context);
    expect(rejected).toEqual([]);
    expect(records).toEqual([
      { outcomeId: '10', asOfMs: NOW - 1_000, price: '0.31', bid: '0.3', ask: '0.32' },
      { outcomeId: '11', asOfMs: NOW - 1_000, price: '0.75', bid: '0.2', ask: '0.8' },
    ]);
    expect(JSON.parse(server.requests.at(-1)?.body ?? '')).toEqual([{ token_id: '11' }, { token_id: '12' }]);
  });

  it('asks for books in batches, each token once, and never for made-up ids', async () => {
    routes['POST /clob/books'] = (request, response) => {
      const asked = JSON.parse(request.body) as { token_id: string }[];
      json(
        200,
        asked.map(({ token_id }) => book(token_id, '0.3', '0.4')),
      )(request, response);
    };
    const ids = Array.from({ length: 750 }, (_, index) => String(1_000 + index));
    const { records } = await adapter.fetchBooks([...ids, ...ids.slice(0, 5), '0xab:0'], context);
    expect(records).toHaveLength(750);
    expect(server.requests.map((request) => (JSON.parse(request.body) as unknown[]).length)).toEqual([500, 250]);
  });

  it.each([400, 404, 405])('asks for one book after the other where the batch answers %i', async (status) => {
    routes['POST /clob/books'] = json(status, { error: 'no' });
    routes['GET /clob/book'] = (request, response) => {
      const tokenId = request.query.get('token_id') ?? '';
      if (tokenId === '13')
        return json(404, { error: 'No orderbook exists for the requested token id' })(request, response);
      json(200, book(tokenId, '0.3', '0.4'))(request, response);
    };
    const ids = Array.from({ length: 20 }, (_, index) => String(index));
    const { records, rejected } = await adapter.fetchBooks(ids, context);
    expect(records.map((record) => record.outcomeId).sort()).toEqual(ids.filter((id) => id !== '13').sort());
    expect(rejected).toEqual([]);
  });

  it('lets a failing venue be seen instead of giving half an answer', async () => {
    routes['POST /clob/books'] = json(404, {});
    routes['GET /clob/book'] = (request, response) =>
      json(request.query.get('token_id') === '5' ? 500 : 404, {})(request, response);
    await expect(adapter.fetchBooks(['1', '5', '9'], context)).rejects.toMatchObject({ statusCode: 500 });
  });

  it('asks the trade feed for takers only', async () => {
    routes['GET /data/trades'] = json(200, []);
    expect(await adapter.pollTrades(null, context)).toMatchObject({ records: [], more: false });
    expect(Object.fromEntries(server.requests[0]?.query ?? [])).toEqual({ limit: '1000', takerOnly: 'true' });
  });
});
