import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { PolymarketUrls } from '../../../src/venues/polymarket/client.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import type { EventOf } from '../../support/venue-events.ts';
import { type Answer, json, ScriptedServer } from './scripted-server.ts';

const NOW = 1_786_275_600_000;
/** The page size in the second `NOW`. */
const PAGE_SIZE = 1_000 - ((NOW / 1000) % 400);
const HTTP = { requestsPerSecond: 10_000, maxAttempts: 1 };
const server = new ScriptedServer();
let adapter: VenueAdapter;
let urls: PolymarketUrls;
let unknowns: EventOf<'onUnknown'>[];
let truncations: EventOf<'onTruncated'>[];
let skips: EventOf<'onSkipped'>[];
let routes: Record<string, Answer>;
const context = { signal: new AbortController().signal, now: () => NOW };

beforeEach(async () => {
  const url = await server.start();
  server.requests.length = 0;
  unknowns = [];
  truncations = [];
  skips = [];
  routes = {};
  server.answer = (request, response) =>
    (routes[`${request.method} ${request.path}`] ?? json(404, { error: 'not found' }))(request, response);
  urls = { gamma: `${url}/gamma`, clob: `${url}/clob`, data: `${url}/data` };
  adapter = createPolymarketAdapter({
    urls,
    http: HTTP,
    observer: {
      onUnknown: (event) => unknowns.push(event),
      onTruncated: (event) => truncations.push(event),
      onSkipped: (event) => skips.push(event),
    },
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
  it('uses the older listing when the keyset one is gone, and stays there', async () => {
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

  it('sends the cursor as after_cursor', async () => {
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

  it('drops an order that the venue refuses', async () => {
    routes['GET /gamma/markets/keyset'] = (request, response) =>
      request.query.has('order')
        ? json(422, {})(request, response)
        : json(200, { markets: [market(1)] })(request, response);
    const first = await adapter.pollMarkets(null, context);
    const second = await adapter.pollMarkets(first.position, context);
    expect(second).toMatchObject({ records: [], rejected: [], more: false });
    expect(truncations).toMatchObject([{ venue: 'polymarket', kind: 'markets' }]);
  });

  it('reports unknown states, throws on a payload of another shape, and rejects bad records individually', async () => {
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

  it('prices wide books by their own last trade, never by the last_trade_price of the book', async () => {
    routes['POST /clob/books'] = json(200, [
      book('10', '0.30', '0.32'),
      book('11', '0.2', '0.8'),
      book('12', '0.2', '0.8'),
    ]);
    routes['POST /clob/last-trades-prices'] = json(200, [{ token_id: '11', price: '0.75', side: 'BUY' }]);
    const { records, rejected } = await adapter.fetchPrices(['10', '11', '12'], context);
    expect(rejected).toEqual([]);
    const seenAtMs = expect.any(Number);
    expect(records).toEqual([
      { outcomeId: '10', asOfMs: NOW - 1_000, seenAtMs, price: '0.31', bid: '0.3', ask: '0.32' },
      { outcomeId: '11', asOfMs: NOW - 1_000, seenAtMs, price: '0.75', bid: '0.2', ask: '0.8' },
    ]);
    expect(JSON.parse(server.requests.at(-1)?.body ?? '')).toEqual([{ token_id: '11' }, { token_id: '12' }]);
  });

  it('prices the other outcome of a market from the mirror of its book, and from its own last trade', async () => {
    routes['POST /clob/books'] = json(200, [book('10', '0.30', '0.32'), book('11', '0.2', '0.8')]);
    routes['POST /clob/last-trades-prices'] = json(200, [
      { token_id: '11', price: '0.75', side: 'BUY' },
      { token_id: '21', price: '0.35', side: 'SELL' },
    ]);
    const mirrors = new Map([
      ['10', '20'],
      ['11', '21'],
    ]);
    const { records } = await adapter.fetchPrices(['10', '11'], context, mirrors);
    expect(records).toMatchObject([
      { outcomeId: '10', price: '0.31', bid: '0.3', ask: '0.32' },
      { outcomeId: '20', price: '0.69', bid: '0.68', ask: '0.7' },
      { outcomeId: '11', price: '0.75', bid: '0.2', ask: '0.8' },
      { outcomeId: '21', price: '0.35', bid: '0.2', ask: '0.8' },
    ]);
    const bodies = server.requests.slice(-2).map(({ body }) => JSON.parse(body) as { token_id: string }[]);
    expect(bodies.map((body) => body.map((each) => each.token_id))).toEqual([
      ['10', '11'],
      ['11', '21'],
    ]);
  });

  it('reads the time of the last change and the time of the answer when a book is quiet', async () => {
    routes['POST /clob/books'] = json(200, [
      { ...book('10', '0.30', '0.32'), timestamp: String(NOW - 3_600_000) },
      { ...book('11', '0.30', '0.32'), timestamp: String(NOW + 50) },
    ]);
    const mirrors = new Map([['10', '20']]);
    const [quiet, mirrored, changed] = (await adapter.fetchPrices(['10', '11'], context, mirrors)).records;
    for (const price of [quiet, mirrored]) {
      expect(price?.asOfMs).toBe(NOW - 3_600_000);
      expect(price?.seenAtMs).toBeGreaterThan(NOW - 60_000);
      expect(price?.seenAtMs).toBeLessThanOrEqual(NOW);
    }
    expect(changed?.asOfMs).toBe(NOW + 50);
  });

  it('requests books in batches, each token once, and no made-up ids', async () => {
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

  it.each([400, 404, 405])('requests single books when the batch answers %i', async (status) => {
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

  it('rejects a token whose book fails while the venue answers for others', async () => {
    routes['POST /clob/books'] = json(404, {});
    routes['GET /clob/book'] = (request, response) =>
      json(request.query.get('token_id') === '5' ? 500 : 404, {})(request, response);
    const { records, rejected } = await adapter.fetchBooks(['1', '5', '9'], context);
    expect({ records, rejected }).toMatchObject({
      records: [],
      rejected: [{ recordId: '5', reason: 'member_refused' }],
    });
  });

  it('requests takers only from the trade feed of all markets, with the smallest fills', async () => {
    routes['GET /data/v2/trades'] = dataPage([]);
    expect(await adapter.pollTrades(null, context)).toMatchObject({ records: [], more: false });
    expect(Object.fromEntries(server.requests[0]?.query ?? [])).toEqual({
      limit: String(PAGE_SIZE),
      taker_only: 'true',
      filter_type: 'TOKENS',
      filter_amount: '0.000001',
    });
  });

  it('stores dust and identical fills, and counts a combination as skipped', async () => {
    const row = {
      proxy_wallet: '0xw',
      side: 'BUY',
      token_id: '10',
      condition_id: conditionId(1),
      slug: '',
      size: 9e-6,
      price: 0.7400000012,
      timestamp: NOW / 1000 - 10,
      transaction_hash: '0x1',
    };
    const combo = { ...row, condition_id: `0x03${'a'.repeat(60)}` };
    routes['GET /data/v2/trades'] = dataPage([row, combo, row]);
    const { records, rejected } = await adapter.pollTrades(null, context);
    expect(records.map(({ size, price, ordinal }) => [size, price, ordinal])).toEqual([
      ['0.000009', '0.7400000012', 0],
      ['0.000009', '0.7400000012', 1],
    ]);
    expect(new Set(records.map((trade) => trade.tradeId)).size).toBe(2);
    expect(rejected).toEqual([]);
    expect(skips).toEqual([{ venue: 'polymarket', kind: 'trades', reason: 'combination', count: 1 }]);
  });

  it.each([404, 410])('throws on a %i of the trade feed, and requests no other version', async (status) => {
    routes['GET /data/v2/trades'] = json(status, { error: 'gone', code: 'not_found', retryable: false, trace_id: 't' });
    await expect(adapter.pollTrades(null, context)).rejects.toMatchObject({ statusCode: status, retryable: false });
    expect(paths()).toEqual(['GET /data/v2/trades']);
  });

  it('completes no second from a page that the CDN repeats', async () => {
    const row = (age: number) => ({
      proxy_wallet: '0xw',
      side: 'BUY',
      token_id: '10',
      condition_id: conditionId(1),
      size: 1,
      price: 0.5,
      timestamp: NOW / 1000 - age,
      transaction_hash: `0x${age}`,
    });
    for (const headers of [{ age: '20' }, { 'x-cache': 'Hit from cloudfront' }]) {
      routes['GET /data/v2/trades'] = dataPage([row(20), row(30)], null, headers);
      const { records } = await adapter.pollTrades(null, context);
      expect(records.map((trade) => trade.tsMs)).toEqual([NOW - 30_000]);
    }
  });

  it('requests tags on every Gamma route', async () => {
    routes['GET /gamma/markets'] = json(200, []);
    await adapter.pollMarkets(null, context);
    await adapter.fetchMarkets([conditionId(1)], context);
    expect(new Set(paths())).toEqual(new Set(['GET /gamma/markets/keyset', 'GET /gamma/markets']));
    expect(server.requests.filter((request) => request.query.get('include_tag') !== 'true')).toEqual([]);
  });

  it('pollMarkets keeps the age of a page with its records and its sweep', async () => {
    routes['GET /gamma/markets/keyset'] = json(200, { markets: [market(1)] }, { age: '219' });
    const page = await adapter.pollMarkets(null, context);
    expect(page.records).toMatchObject([{ marketId: '0x1', ageMs: 220_000 }]);
    expect(page.sweep).toEqual({ startedAtMs: NOW, ended: true, madeSinceMs: NOW - 220_000, alsoListed: [] });
  });

  it('names listed markets without a record in a sweep', async () => {
    routes['GET /gamma/markets/keyset'] = json(200, { markets: [market(1), market(2, { closed: 'no' }), 7] });
    const open = await adapter.pollMarkets(null, context);
    expect(open.sweep).toEqual({ startedAtMs: NOW, ended: true, alsoListed: ['0x2'] });
    const closed = await adapter.pollMarkets(open.position, context);
    expect(closed.sweep).toBeUndefined();
  });

  describe('asked for markets by id', () => {
    const gammaOf =
      (closedIds: ReadonlySet<string>, openIds: ReadonlySet<string>): Answer =>
      (request, response) => {
        const isClosed = request.query.get('closed') === 'true';
        const rows = request.query
          .getAll('condition_ids')
          .filter((id) => (isClosed ? closedIds : openIds).has(id))
          .map((conditionId, index) => market(index, { conditionId, closed: isClosed }));
        const page = rows.slice(0, Number(request.query.get('limit') ?? 20));
        json(200, request.path.endsWith('/keyset') ? { markets: page } : page)(request, response);
      };

    it('finds open and closed ones, in addresses below 8 KB, and no others', async () => {
      const ids = Array.from({ length: 250 }, (_, index) => conditionId(index));
      routes['GET /gamma/markets/keyset'] = gammaOf(new Set(ids.slice(0, 100)), new Set(ids.slice(100, 240)));
      const { records, rejected } = await adapter.fetchMarkets([...ids, '0x12', 'no id', ids[0] ?? ''], context);
      expect(rejected).toEqual([]);
      expect(records.map((record) => record.marketId).sort()).toEqual(ids.slice(0, 240));
      expect(records.filter((record) => record.status === 'open')).toHaveLength(140);
      for (const { path, query } of server.requests) {
        expect(path).toBe('/gamma/markets/keyset');
        expect(path.length + query.toString().length).toBeLessThan(8_000);
        const asked = query.getAll('condition_ids').length;
        expect(asked).toBeLessThanOrEqual(adapter.maxMarketsPerFetch);
        expect(Number(query.get('limit'))).toBeGreaterThanOrEqual(asked);
        expect(Number(query.get('limit'))).toBeLessThanOrEqual(100);
      }
      expect(server.requests.map((request) => request.query.get('closed'))).toEqual([
        'false',
        'true',
        'false',
        'true',
        'false',
        'true',
      ]);
    });

    it.each([400, 404, 405, 410, 422])('uses the older listing when keyset answers %i', async (status) => {
      routes['GET /gamma/markets/keyset'] = json(status, {});
      routes['GET /gamma/markets'] = json(200, [market(1, { conditionId: conditionId(1) })]);
      const { records } = await adapter.fetchMarkets([conditionId(1)], context);
      expect(records).toHaveLength(1);
      expect(paths()).toEqual(['GET /gamma/markets/keyset', 'GET /gamma/markets']);
    });

    it('uses the older listing when keyset ignores the ids', async () => {
      routes['GET /gamma/markets/keyset'] = json(200, { markets: [market(7)], next_cursor: 'more' });
      routes['GET /gamma/markets'] = json(200, [market(1, { conditionId: conditionId(1) })]);
      const { records } = await adapter.fetchMarkets([conditionId(1)], context);
      expect(records.map((record) => record.marketId)).toEqual([conditionId(1)]);
    });

    it('throws the error of keyset when the older listing is gone', async () => {
      routes['GET /gamma/markets/keyset'] = json(422, {});
      routes['GET /gamma/markets'] = json(410, {});
      await expect(adapter.fetchMarkets([conditionId(1)], context)).rejects.toMatchObject({ statusCode: 422 });
    });

    it('reads every page when keyset clamps the limit', async () => {
      const ids = Array.from({ length: 7 }, (_, index) => conditionId(index));
      routes['GET /gamma/markets/keyset'] = (request, response) => {
        const rows = request.query.get('closed') === 'true' ? [] : ids.map((id, at) => market(at, { conditionId: id }));
        const start = Number(request.query.get('after_cursor') ?? 0);
        const next = start + 3 < rows.length ? { next_cursor: String(start + 3) } : {};
        json(200, { markets: rows.slice(start, start + 3), ...next })(request, response);
      };
      const { records } = await adapter.fetchMarkets(ids, context);
      expect(records.map((record) => record.marketId)).toEqual(ids);
      expect(server.requests).toHaveLength(3);
    });

    it('sends another limit when the answer comes from a cache', async () => {
      const cached = new Set<string>();
      routes['GET /gamma/markets/keyset'] = (request, response) => {
        const isCached = cached.size === 0;
        cached.add(request.query.toString());
        const row = market(1, { conditionId: conditionId(1), acceptingOrders: isCached });
        json(200, { markets: [row] }, isCached ? { age: '219' } : {})(request, response);
      };
      const { records } = await adapter.fetchMarkets([conditionId(1)], context);
      expect(records).toMatchObject([{ status: 'halted' }]);
      expect(records[0]).not.toHaveProperty('ageMs');
      expect(cached.size).toBe(2);
    });

    it('throws when every answer comes from a cache and lacks a market', async () => {
      const row = market(1, { conditionId: conditionId(1) });
      routes['GET /gamma/markets/keyset'] = json(200, { markets: [row] }, { age: '12' });
      const found = await adapter.fetchMarkets([conditionId(1)], context);
      expect(found.records).toMatchObject([{ marketId: conditionId(1), ageMs: 13_000 }]);
      routes['GET /gamma/markets/keyset'] = json(200, { markets: [] }, { age: '12' });
      await expect(adapter.fetchMarkets([conditionId(1)], context)).rejects.toMatchObject({
        code: 'invalid_payload',
        retryable: true,
      });
    });

    it('sends no request for ids of another form', async () => {
      expect(await adapter.fetchMarkets(['0x12', 'TICKER'], context)).toEqual({ records: [], rejected: [] });
      expect(server.requests).toEqual([]);
    });

    it('rejects an unreadable market, and does not look it up elsewhere', async () => {
      const row = market(1, { conditionId: conditionId(1), outcomes: 7 });
      routes['GET /gamma/markets/keyset'] = json(200, { markets: [row] });
      const { records, rejected } = await adapter.fetchMarkets([conditionId(1)], context);
      expect(records).toEqual([]);
      expect(rejected).toMatchObject([{ kind: 'markets', recordId: conditionId(1) }]);
      expect(server.requests).toHaveLength(1);
    });

    it('throws when an answer is about other markets', async () => {
      routes['GET /gamma/markets'] = json(200, [market(1, { conditionId: conditionId(8) })]);
      await expect(adapter.fetchMarkets([conditionId(1)], context)).rejects.toMatchObject({ code: 'invalid_payload' });
    });
  });

  describe('asked for the history of a market', () => {
    const request = { marketId: conditionId(1), outcomeIds: ['10'], fromMs: NOW - 35_000, toMs: NOW };
    const second = NOW / 1000;
    const print = (age: number) => ({
      proxy_wallet: '0xw',
      side: 'BUY',
      token_id: '10',
      condition_id: conditionId(1),
      size: 1,
      price: 0.5,
      timestamp: second - age,
      transaction_hash: `0x${age}`,
    });
    const ages = [10, 20, 30, 40, 50, 60, 70];
    const tape: Answer = (asked, response) => {
      const from = Number(asked.query.get('cursor') ?? 0);
      dataPage(ages.slice(from, from + 2).map(print), from + 2 < ages.length ? String(from + 2) : null)(
        asked,
        response,
      );
    };

    it('walks back by cursors, with the ids and the order of the live feed', async () => {
      adapter = createPolymarketAdapter({ urls, http: HTTP, trades: { pagesPerCall: 2 } });
      routes['GET /data/v2/trades'] = tape;
      const live = await adapter.pollTrades(null, context);
      expect(live.records.map((trade) => trade.tsMs)).toEqual([NOW - 30_000, NOW - 20_000, NOW - 10_000]);
      server.requests.length = 0;
      const newest = await adapter.pollHistory({ ...request, fromMs: NOW - 55_000 }, null, context);
      expect(newest).toMatchObject({ more: true, rejected: [], reachedMs: NOW - 39_000 });
      expect(newest.records).toEqual(live.records);
      const last = await adapter.pollHistory({ ...request, fromMs: NOW - 55_000 }, newest.position, context);
      expect(last).toMatchObject({ more: false, position: null, reachedMs: NOW - 55_000 });
      expect(last.records.map((trade) => trade.tsMs)).toEqual([NOW - 50_000, NOW - 40_000]);
      const filters = {
        taker_only: 'true',
        filter_type: 'TOKENS',
        filter_amount: '0.000001',
        condition: conditionId(1),
      };
      // The page on which the cut second begins is read again.
      expect(server.requests.map(({ query }) => Object.fromEntries(query))).toEqual([
        { ...filters, limit: String(PAGE_SIZE) },
        { ...filters, cursor: '2' },
        { ...filters, cursor: '2' },
        { ...filters, cursor: '4' },
      ]);
      expect(truncations).toEqual([]);
    });

    it('throws when the venue refuses the market', async () => {
      routes['GET /data/v2/trades'] = json(400, {});
      await expect(adapter.pollHistory(request, null, context)).rejects.toMatchObject({
        statusCode: 400,
        retryable: false,
      });
    });

    it('has a budget of its own, which does not delay live polls', async () => {
      await adapter.close();
      // A turn of the history comes every 40 s, which is longer than the walk would wait.
      adapter = createPolymarketAdapter({ urls, http: { requestsPerSecond: 0.1, burst: 1_000, maxAttempts: 1 } });
      routes['GET /data/v2/trades'] = tape;
      await expect(adapter.pollHistory(request, null, context)).rejects.toMatchObject({ code: 'rate_limited' });
      expect(server.requests).toHaveLength(1);
      expect((await adapter.pollTrades(null, context)).records.length).toBeGreaterThan(0);
    });
  });
});

/** A page of the Data API. */
function dataPage(data: unknown[], next_cursor: string | null = null, headers: Record<string, string> = {}): Answer {
  const body = { data, pagination: { limit: 1000, offset: 0, has_more: next_cursor !== null, next_cursor } };
  return (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    json(200, body)(request, response);
  };
}

/** A condition id in the venue's form; ids sort like their numbers. */
function conditionId(number: number): string {
  return `0x${String(number).padStart(64, '0')}`;
}
