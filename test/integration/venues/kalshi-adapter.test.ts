import { constants, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ExchangeOptions } from '../../../sim/options.ts';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { readKalshiKey } from '../../../src/venues/kalshi/feed/key.ts';
import type { CallContext, VenueAdapter } from '../../../src/venues/port.ts';
import { startSimulatedKalshi } from '../../conformance/venue-adapter/kalshi-exchange.ts';
import type { EventOf } from '../../support/venue-events.ts';
import { type Answer, json, ScriptedServer, type SeenRequest } from './scripted-server.ts';

const NOW = Date.UTC(2026, 7, 9);
const BASE = '/trade-api/v2';
const BAD_REQUEST = json(400, { error: { code: 'bad_request', message: 'bad request', details: 'invalid filter' } });
const context: CallContext = { signal: new AbortController().signal, now: () => NOW };

function market(ticker: string, more: object = {}): object {
  return {
    ticker,
    event_ticker: 'KXE',
    title: `Market ${ticker}`,
    status: 'active',
    yes_bid_dollars: '0.4000',
    yes_ask_dollars: '0.5000',
    last_price_dollars: '0.4500',
    ...more,
  };
}

/** The first page of markets also asks for changes of fees. */
const FEE_CHANGES = ['/series/fee_changes?show_historical=true', '/events/fee_changes?limit=200'];

describe('the Kalshi adapter', () => {
  const server = new ScriptedServer();
  let adapter: VenueAdapter;
  let unknowns: EventOf<'onUnknown'>[];
  let truncations: EventOf<'onTruncated'>[];
  let skips: EventOf<'onSkipped'>[];
  let routes: Record<string, Answer>;
  let serverUrl: string;

  beforeEach(async () => {
    const url = await server.start();
    serverUrl = url;
    server.requests.length = 0;
    unknowns = [];
    truncations = [];
    skips = [];
    routes = {
      '/series': json(200, { series: [{ ticker: 'KX', tags: ['Tag'] }] }),
      '/series/fee_changes': json(200, { series_fee_change_arr: [] }),
      '/events/fee_changes': json(200, { event_fee_changes: [], cursor: '' }),
    };
    server.answer = (request, response) =>
      (routes[request.path.slice(BASE.length)] ?? json(404, { error: { code: 'not_found' } }))(request, response);
    adapter = createKalshiAdapter({
      url: `${url}${BASE}`,
      http: { requestsPerSecond: 10_000, maxAttempts: 1 },
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

  const asked = () => server.requests.map(({ path, query }) => `${path.slice(BASE.length)}?${query}`);

  /** Walks to the end. */
  async function walk(from: unknown, at: CallContext) {
    const records: MarketRecord[] = [];
    let position = from;
    for (;;) {
      const page = await adapter.pollMarkets(position, at);
      records.push(...page.records);
      position = JSON.parse(JSON.stringify(page.position));
      if (!page.more) return { records, position };
    }
  }

  function openSigned() {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const key = readKalshiKey('id-1', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    const refusals: unknown[] = [];
    const signed = createKalshiAdapter({
      url: `${serverUrl}${BASE}`,
      http: { requestsPerSecond: 10_000, maxAttempts: 1 },
      key,
      observer: { onKeyRefused: (event) => refusals.push(event) },
    });
    return { signed, privateKey, refusals };
  }
  const isSigned = ({ headers }: SeenRequest) => 'kalshi-access-key' in headers;

  it('signs its requests with the key, and goes on without it for an hour when the venue refuses it', async () => {
    const { signed, privateKey, refusals } = openSigned();
    try {
      routes['/markets'] = json(200, { markets: [market('A')], cursor: '' });
      await signed.fetchPrices(['A:yes'], context);
      const { headers, path } = server.requests[0] ?? { headers: {} as SeenRequest['headers'], path: '' };
      expect(headers['kalshi-access-key']).toBe('id-1');
      const stamp = Number(headers['kalshi-access-timestamp']);
      const isValid = verify(
        'sha256',
        Buffer.from(`${stamp}GET${path}`),
        { key: createPublicKey(privateKey), padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
        Buffer.from(String(headers['kalshi-access-signature']), 'base64'),
      );
      expect(isValid).toBe(true);
      const answer = routes['/markets'];
      routes['/markets'] = (request, response) => (isSigned(request) ? json(401, {}) : answer)?.(request, response);
      for (let call = 0; call < 2; call += 1)
        expect((await signed.fetchPrices(['A:yes'], context)).records).toHaveLength(1);
      expect(server.requests.filter(isSigned)).toHaveLength(2);
      expect(refusals).toMatchObject([{ venue: 'kalshi', statusCode: 401 }]);
    } finally {
      await signed.close();
    }
  });

  it('repeats each refused request without the key when the venue refuses several at once', async () => {
    const { signed, refusals } = openSigned();
    const refuse: (() => void)[] = [];
    routes['/markets'] = (request, response) => {
      if (!isSigned(request)) return json(200, { markets: [market('A')], cursor: '' })(request, response);
      refuse.push(() => json(401, {})(request, response));
      if (refuse.length === 2) for (const each of refuse) each();
    };
    try {
      const answers = await Promise.all([1, 2].map(() => signed.fetchPrices(['A:yes'], context)));
      expect(answers.map(({ records }) => records.length)).toEqual([1, 1]);
      expect(refusals).toHaveLength(1);
    } finally {
      await signed.close();
    }
  });

  it('requests quotes by one comma list and books by repeated parameters, and returns requested outcomes only', async () => {
    routes['/markets'] = json(200, { markets: [market('A'), market('B')], cursor: '' });
    routes['/markets/orderbooks'] = json(200, {
      orderbooks: ['A', 'B'].map((ticker) => ({
        ticker,
        orderbook_fp: { yes_dollars: [['0.4', '1']], no_dollars: [] },
      })),
    });
    const prices = await adapter.fetchPrices(['A:yes', 'B:no', 'B:maybe', 'C'], context);
    expect(prices.records.map(({ outcomeId, price }) => [outcomeId, price])).toEqual([
      ['A:yes', '0.45'],
      ['B:no', '0.55'],
    ]);
    const books = await adapter.fetchBooks(['A:no', 'B:yes'], context);
    expect(books.records.map((book) => book.outcomeId)).toEqual(['A:no', 'B:yes']);
    expect(asked()).toEqual(['/markets?tickers=A%2CB&limit=2', '/markets/orderbooks?tickers=A&tickers=B']);
  });

  it('reads books individually when the batch route requires a key, and skips unknown markets', async () => {
    routes['/markets/orderbooks'] = json(401, { error: { code: 'unauthorized' } });
    routes['/markets/A/orderbook'] = json(200, { orderbook: { yes: [[40, 7]], no: null } });
    const books = await adapter.fetchBooks(['A:yes', 'B:yes'], context);
    expect(books).toMatchObject({
      records: [{ outcomeId: 'A:yes', bids: [{ price: '0.4', size: '7' }] }],
      rejected: [],
    });
  });

  it('throws when no book route is usable without a key', async () => {
    for (const path of ['/markets/orderbooks', '/markets/A/orderbook']) routes[path] = json(401, {});
    await expect(adapter.fetchBooks(['A:yes'], context)).rejects.toMatchObject({
      code: 'http_status',
      statusCode: 401,
    });
  });

  it('gives markets from both listings the same event, which it requests once', async () => {
    const facts = { event_ticker: 'KXE', series_ticker: 'KX', title: 'Event', category: 'World' };
    routes['/events'] = (request, response) => {
      const isOpen = request.query.get('status') === 'open';
      json(200, { events: isOpen ? [{ ...facts, markets: [market('A')] }] : [], cursor: '' })(request, response);
    };
    const changed = [market('A'), market('B', { event_ticker: 'KXF' }), market('C', { event_ticker: 'KXF' })];
    routes['/markets'] = (request, response) => {
      const isChanges = request.query.has('min_updated_ts');
      json(200, { markets: isChanges ? changed : [], cursor: '' })(request, response);
    };
    routes['/events/KXF'] = json(200, { event: { ...facts, event_ticker: 'KXF', category: 'Science' }, markets: [] });
    const full = await walk(null, context);
    server.requests.length = 0;
    const { records } = await walk(full.position, { ...context, now: () => NOW + 30_000 });
    expect(records[0]).toEqual({ ...full.records[0], feesAgeMs: 30_000 });
    expect(records.map(({ marketId, category }) => `${marketId} ${category}`)).toEqual([
      'A World',
      'B Science',
      'C Science',
    ]);
    expect(asked().filter((path) => path.startsWith('/events'))).toEqual(['/events/KXF?']);
  });

  it('skips combination markets with and without the filter of the venue', async () => {
    routes['/events'] = json(200, { events: [], cursor: '' });
    const combination = market('KXMVE-1', { mve_collection_ticker: 'KXMVE', status: 'finalized' });
    routes['/markets'] = json(200, { markets: [combination, market('A')], cursor: '' });
    const { records } = await walk(null, context);
    expect(records.map((record) => record.marketId)).toEqual(['A']);
    expect(skips).toEqual([{ venue: 'kalshi', kind: 'markets', reason: 'combination', count: 1 }]);
    expect(server.requests.find(({ path }) => path === `${BASE}/markets`)?.query.get('mve_filter')).toBe('exclude');
  });

  describe('skips and counts a combination', () => {
    const ticker = 'KXMVESPORTS-S2026-A1';
    const combination = market(ticker, { mve_collection_ticker: 'KXMVESPORTS-R', mve_selected_legs: [{}] });
    const skip = (kind: string, count = 1) => ({ venue: 'kalshi', kind, reason: 'combination', count });
    const tape = ['t3', 't2', 't1'].map((trade_id, index) => ({
      trade_id,
      ticker: index === 1 ? 'A' : ticker,
      created_time: new Date(NOW - 1_000 * index).toISOString(),
      count_fp: '2.00',
      yes_price_dollars: '0.4000',
    }));

    it('that is requested by its id, live or archived, without a request for its event', async () => {
      routes['/markets'] = json(200, { markets: [combination], cursor: null });
      routes['/historical/markets'] = json(200, { markets: [market(`${ticker}-OLD`, { status: 'finalized' })] });
      expect(await adapter.fetchMarkets([ticker, `${ticker}-OLD`], context)).toEqual({ records: [], rejected: [] });
      expect(skips).toEqual([skip('markets', 2)]);
      expect(asked().some((path) => path.startsWith('/events'))).toBe(false);
    });

    it('among prices and books', async () => {
      routes['/markets'] = json(200, { markets: [combination, market('A')], cursor: '' });
      const orderbook_fp = { yes_dollars: [['0.1', '1']], no_dollars: null };
      routes['/markets/orderbooks'] = json(200, {
        orderbooks: [ticker, 'A'].map((each) => ({ ticker: each, orderbook_fp })),
      });
      const ids = [`${ticker}:yes`, 'A:yes'];
      const prices = await adapter.fetchPrices(ids, context);
      const books = await adapter.fetchBooks(ids, context);
      expect([...prices.records, ...books.records].map(({ outcomeId }) => outcomeId)).toEqual(['A:yes', 'A:yes']);
      const other = { venue: 'kalshi', reason: 'not_requested', count: 1 };
      expect(skips).toEqual([skip('prices'), { ...other, kind: 'prices' }, skip('books'), { ...other, kind: 'books' }]);
    });

    it('on the tape, once when the overlap repeats it', async () => {
      routes['/markets/trades'] = json(200, { trades: tape, cursor: '' });
      const first = await adapter.pollTrades(null, context);
      expect(first.records.map(({ tradeId }) => tradeId)).toEqual(['t2']);
      expect(skips).toEqual([skip('trades', 2)]);
      const again = await adapter.pollTrades(first.position, context);
      expect(again.records.length).toBe(1);
      expect(skips.length).toBe(1);
    });

    it('in the history of its market, live and archived', async () => {
      const own = tape.filter((row) => row.ticker === ticker);
      routes['/markets/trades'] = json(200, { trades: own, cursor: '' });
      routes['/historical/cutoff'] = json(200, { trades_created_ts: new Date(NOW - 500).toISOString() });
      routes['/historical/trades'] = json(200, { trades: own.slice(1), cursor: '' });
      const request = { marketId: ticker, outcomeIds: [`${ticker}:yes`], fromMs: NOW - 60_000, toMs: NOW + 1_000 };
      const live = await adapter.pollHistory(request, null, context);
      const old = await adapter.pollHistory(request, live.position, context);
      expect([live, old].map(({ records, rejected }) => [records.length, rejected.length])).toEqual([
        [0, 0],
        [0, 0],
      ]);
      expect([live.more, old.more]).toEqual([true, false]);
      expect(skips).toEqual([skip('trades', 2), skip('trades')]);
    });
  });

  describe('fetchBooks', () => {
    const orderbooks = ['A', 'B', 'C'].map((ticker) => ({
      ticker,
      orderbook_fp:
        ticker === 'C' ? { yes_dollars: [['0.1', '1']], no_dollars: null } : { yes_dollars: null, no_dollars: [] },
    }));

    beforeEach(() => {
      routes['/markets/orderbooks'] = json(200, { orderbooks });
      routes['/markets'] = json(200, { markets: [market('A')], cursor: '' });
    });

    it('keeps an empty book of a listed market, skips one of an unknown market, and checks each once', async () => {
      const ids = ['A:yes', 'B:yes', 'C:yes'];
      const { records, rejected } = await adapter.fetchBooks(ids, context);
      expect(rejected).toEqual([]);
      expect(records.map(({ outcomeId, bids }) => [outcomeId, bids.length])).toEqual([
        ['A:yes', 0],
        ['C:yes', 1],
      ]);
      expect(skips).toEqual([
        { venue: 'kalshi', kind: 'books', reason: 'unknown_market', count: 1 },
        { venue: 'kalshi', kind: 'books', reason: 'not_requested', count: 2 },
      ]);
      await adapter.fetchBooks(ids, context);
      expect(asked().filter((path) => path.startsWith('/markets?'))).toEqual([
        '/markets?tickers=A%2CB&limit=2',
        '/markets?tickers=B&limit=1',
      ]);
    });

    it('throws when it cannot distinguish an empty book from an unknown market', async () => {
      routes['/markets'] = json(503, {});
      await expect(adapter.fetchBooks(['A:yes'], context)).rejects.toMatchObject({ statusCode: 503 });
    });

    it('checks no market with orders', async () => {
      routes['/markets/orderbooks'] = json(200, { orderbooks: orderbooks.slice(2) });
      await adapter.fetchBooks(['C:yes'], context);
      expect(asked()).toEqual(['/markets/orderbooks?tickers=C']);
    });
  });

  it('reads the category and tags of a series, and returns summaries while series cannot be listed', async () => {
    const facts = { event_ticker: 'KXE', series_ticker: 'KX', title: 'Event', product_metadata: { scope: 'Day' } };
    routes['/events'] = json(200, { events: [{ ...facts, markets: [market('A')] }], cursor: null });
    routes['/series'] = json(500, {});
    const [summary] = (await adapter.pollMarkets(null, context)).records;
    expect(summary).toMatchObject({ marketId: 'A', tags: ['Day'], isSummary: true });
    expect(truncations).toEqual([{ venue: 'kalshi', kind: 'markets', detail: expect.stringMatching(/^series: /) }]);
    routes['/series'] = json(200, { series: [{ ticker: 'KX', category: 'Sports', tags: ['Baseball'] }] });
    const later = { ...context, now: () => NOW + 60_000 };
    const [market1] = (await adapter.pollMarkets(null, later)).records;
    expect(market1).toMatchObject({ category: 'Sports', tags: ['Baseball', 'Day'] });
    expect(market1).not.toHaveProperty('isSummary');
  });

  it('requests several events at once', async () => {
    const markets = ['A', 'B'].map((each) => market(each, { event_ticker: `KX${each}` }));
    routes['/markets'] = json(200, { markets, cursor: '' });
    routes['/events'] = json(200, {
      events: ['KXB', 'KXA'].map((event_ticker) => ({ event_ticker, series_ticker: 'KX', category: event_ticker })),
      cursor: '',
    });
    const { records } = await adapter.fetchMarkets(['A', 'B'], context);
    expect(records.map(({ category }) => category)).toEqual(['KXA', 'KXB']);
    expect(asked()).toEqual([
      '/markets?tickers=A%2CB&limit=2',
      '/events?tickers=KXA%2CKXB&limit=2',
      '/series?',
      ...FEE_CHANGES,
    ]);
  });

  it('rejects an event without a list of markets, and throws on a cursor that is not a text', async () => {
    routes['/events'] = json(200, { events: [{ event_ticker: 'KXE' }], cursor: '' });
    const page = await adapter.pollMarkets(null, context);
    expect(page).toMatchObject({ records: [], rejected: [{ kind: 'markets', reason: 'missing_field' }] });
    routes['/events'] = json(200, { events: [], cursor: 7 });
    await expect(adapter.pollMarkets(null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('drops a filter that the venue refuses, and reports it', async () => {
    routes['/events'] = (request, response) => {
      const answer = request.query.get('status') === 'unopened' ? BAD_REQUEST : json(200, { events: [], cursor: '' });
      answer(request, response);
    };
    routes['/markets'] = json(200, { markets: [], cursor: '' });
    await walk(null, context);
    expect(truncations).toEqual([
      { venue: 'kalshi', kind: 'markets', detail: expect.stringMatching(/unopened markets: HTTP 400/) },
    ]);
  });

  it('reports unknown values', async () => {
    const events = [{ event_ticker: 'KXE', markets: [market('A', { status: 'asleep' })] }];
    routes['/events'] = json(200, { events, cursor: '' });
    const page = await adapter.pollMarkets(null, context);
    expect(page.records[0]?.status).toBe('closed');
    expect(unknowns).toEqual([{ venue: 'kalshi', field: 'status', value: 'asleep' }]);
  });

  it('marks the pages of a sweep, and names listed markets without a record', async () => {
    routes['/events'] = (request, response) => {
      const status = request.query.get('status');
      const broken = { ...market(`${status}-BROKEN`), settlement_value: {} };
      json(200, { events: [{ event_ticker: 'KXE', markets: [market(`${status}-A`), broken] }], cursor: '' })(
        request,
        response,
      );
    };
    routes['/markets'] = json(200, { markets: [market('A')], cursor: '' });
    const sweeps: unknown[] = [];
    let position: unknown = null;
    for (let more = true; more; ) {
      const page = await adapter.pollMarkets(position, context);
      sweeps.push(page.sweep);
      ({ position, more } = page);
    }
    const startedAtMs = NOW;
    expect(sweeps).toEqual([
      { startedAtMs, ended: false, alsoListed: ['open-BROKEN'] },
      { startedAtMs, ended: false, alsoListed: ['unopened-BROKEN'] },
      { startedAtMs, ended: true, alsoListed: ['closed-BROKEN'] },
      undefined,
    ]);
  });

  describe('fetchMarkets', () => {
    const facts = { event_ticker: 'KXE', series_ticker: 'KX', title: 'Event', category: 'World' };
    const tickers = (request: { query: URLSearchParams }) => request.query.get('tickers')?.split(',') ?? [];

    beforeEach(() => {
      routes['/events/KXE'] = json(200, { event: facts });
      routes['/markets'] = (request, response) => {
        const known = tickers(request).filter((ticker) => ticker.startsWith('LIVE'));
        json(200, { markets: known.map((ticker) => market(ticker)), cursor: '' })(request, response);
      };
    });

    it('completes markets with their events, and looks up absent ones in the archive', async () => {
      routes['/historical/markets'] = (request, response) => {
        const known = tickers(request).filter((ticker) => ticker.startsWith('OLD'));
        json(200, { markets: known.map((ticker) => market(ticker, { status: 'finalized', result: 'yes' })) })(
          request,
          response,
        );
      };
      const ids = ['LIVE-1', 'OLD-1', 'GONE', 'LIVE-2', 'LIVE-1', 'no, ticker', '\ud800'];
      const { records, rejected } = await adapter.fetchMarkets(ids, context);
      expect(rejected).toEqual([]);
      expect(records.map(({ marketId, eventId, category, status }) => [marketId, eventId, category, status])).toEqual([
        ['LIVE-1', 'KXE', 'World', 'open'],
        ['LIVE-2', 'KXE', 'World', 'open'],
        ['OLD-1', 'KXE', 'World', 'settled'],
      ]);
      expect(asked()).toEqual([
        '/markets?tickers=LIVE-1%2COLD-1%2CGONE%2CLIVE-2&limit=4',
        '/historical/markets?tickers=OLD-1%2CGONE&limit=2',
        '/events/KXE?',
        '/series?',
        ...FEE_CHANGES,
      ]);
    });

    it('works without an archive, and requests a hundred markets at a time', async () => {
      const ids = Array.from({ length: 150 }, (_, index) => `LIVE-${index}`);
      const { records } = await adapter.fetchMarkets([...ids, 'GONE'], context);
      expect(records.map((record) => record.marketId)).toEqual(ids);
      const live = server.requests.filter(({ path }) => path.endsWith('/markets') && !path.includes('historical'));
      expect(live.map((request) => tickers(request).length)).toEqual([100, 51]);
    });

    it('throws when the venue is down, and returns an empty batch for no ids', async () => {
      routes['/historical/markets'] = json(503, {});
      await expect(adapter.fetchMarkets(['GONE'], context)).rejects.toMatchObject({ statusCode: 503 });
      server.requests.length = 0;
      expect(await adapter.fetchMarkets(['no, ticker'], context)).toEqual({ records: [], rejected: [] });
      expect(server.requests).toEqual([]);
    });

    it('drops markets that were not requested, and rejects rows without a market', async () => {
      routes['/markets'] = json(200, {
        markets: [market('LIVE-1'), market('OTHER'), { status: 'active' }],
        cursor: '',
      });
      const { records, rejected } = await adapter.fetchMarkets(['LIVE-1'], context);
      expect(records.map((record) => record.marketId)).toEqual(['LIVE-1']);
      expect(rejected.map((each) => each.reason)).toEqual(['missing_field']);
    });
  });

  describe('pollHistory', () => {
    const second = NOW / 1000 - 86_400;
    const print = (id: string, at: number, more: object = {}) => ({
      trade_id: id,
      ticker: 'A',
      created_time: new Date(at * 1000).toISOString(),
      count_fp: '2.00',
      yes_price_dollars: '0.4000',
      no_price_dollars: '0.6000',
      taker_side: 'no',
      ...more,
    });
    const request = { marketId: 'A', outcomeIds: ['A:yes', 'A:no'], fromMs: (second - 500) * 1000, toMs: NOW };

    it('reads the live route, requests the cutoff once, and continues in the archive', async () => {
      routes['/markets/trades'] = json(200, { trades: [print('t2', second + 5), print('t1', second)], cursor: '' });
      const cutoff = new Date(second * 1000).toISOString();
      routes['/historical/cutoff'] = json(200, { trades_created_ts: cutoff });
      routes['/historical/trades'] = json(200, { trades: [print('t1', second), print('t0', second - 5)], cursor: '' });
      const live = await adapter.pollHistory(request, null, context);
      expect(live).toMatchObject({ more: true, reachedMs: (second + 1) * 1000, rejected: [] });
      const old = await adapter.pollHistory(request, JSON.parse(JSON.stringify(live.position)), context);
      expect(old).toMatchObject({ more: false, reachedMs: request.fromMs, rejected: [] });
      expect([...live.records, ...old.records].map(({ tradeId }) => tradeId)).toEqual(['t2', 't1', 't1', 't0']);
      expect(old.records[1]).toEqual({
        tradeId: 't0',
        outcomeId: 'A:yes',
        tsMs: (second - 5) * 1000,
        price: '0.4',
        size: '2',
        side: 'sell',
      });
      await adapter.pollHistory(request, null, context);
      const floor = second - 501;
      expect(asked()).toEqual([
        `/markets/trades?ticker=A&limit=1000&min_ts=${floor}&max_ts=${NOW / 1000}`,
        '/historical/cutoff?',
        `/historical/trades?ticker=A&limit=1000&min_ts=${floor}&max_ts=${second + 1}`,
        `/markets/trades?ticker=A&limit=1000&min_ts=${floor}&max_ts=${NOW / 1000}`,
      ]);
      expect(truncations).toEqual([]);
    });

    it('ends with the live route when the venue has no archive', async () => {
      routes['/markets/trades'] = json(200, { trades: [print('t1', second)], cursor: '' });
      const page = await adapter.pollHistory(request, null, context);
      expect(page).toMatchObject({ more: false, reachedMs: request.fromMs });
      expect(page.truncated).toBeUndefined();
    });

    it.each([
      ['asks for a key', 401, {}, 'http_status'],
      ['is refused', 403, {}, 'http_status'],
      ['has no time', 200, { trades_created_at: '2026-01-01T00:00:00Z' }, 'invalid_payload'],
    ])(
      'keeps the live trades, then fails and does not end as complete when the cutoff of the archive %s',
      async (_, status, body, code) => {
        routes['/markets/trades'] = json(200, { trades: [print('t1', second)], cursor: '' });
        routes['/historical/cutoff'] = json(status, body);
        const live = await adapter.pollHistory(request, null, context);
        expect(live).toMatchObject({ more: true, records: [{ tradeId: 't1' }], reachedMs: (second + 1) * 1000 });
        const position: unknown = JSON.parse(JSON.stringify(live.position));
        await expect(adapter.pollHistory(request, position, context)).rejects.toMatchObject({ code });
      },
    );

    it('reports the unread trades of an older market when the archive is closed', async () => {
      routes['/markets/trades'] = json(200, { trades: [], cursor: '' });
      routes['/historical/cutoff'] = json(200, { trades_created_ts: new Date(second * 1000).toISOString() });
      routes['/markets'] = json(200, { markets: [market('A', { open_time: '2026-01-01T00:00:00Z' })], cursor: '' });
      const live = await adapter.pollHistory(request, null, context);
      const old = await adapter.pollHistory(request, live.position, context);
      expect(old).toMatchObject({ more: false, reachedMs: NOW, truncated: expect.stringMatching(/archive/) });
      expect(truncations).toMatchObject([{ kind: 'trades', detail: old.truncated }]);
      routes['/markets'] = json(200, {
        markets: [market('A', { open_time: new Date(NOW).toISOString() })],
        cursor: '',
      });
      const young = await adapter.pollHistory(request, live.position, context);
      expect(young.truncated).toBeUndefined();
    });

    it('rejects unreadable trades and keeps their neighbours', async () => {
      const trades = [print('t2', second + 5), print('bad', second + 3, { count_fp: '-1' }), print('t1', second)];
      routes['/markets/trades'] = json(200, { trades, cursor: '' });
      const page = await adapter.pollHistory(request, null, context);
      expect(page.records.map(({ tradeId }) => tradeId)).toEqual(['t2', 't1']);
      expect(page.rejected).toMatchObject([{ recordId: 'bad', reason: 'size_not_positive' }]);
    });
  });

  it('throws invalid_payload when the envelope changes', async () => {
    routes['/markets/trades'] = json(200, { prints: [] });
    await expect(adapter.pollTrades(null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });
});

describe('the Kalshi adapter on older and newer exchanges', () => {
  const catalog = async (options: ExchangeOptions) => {
    const venue = await startSimulatedKalshi(options);
    const adapter = venue.createAdapter();
    const context: CallContext = { signal: new AbortController().signal, now: () => venue.now() };
    const tickers = (await venue.marketIds()).slice(0, 30);
    const { records, rejected } = await adapter.fetchMarkets(tickers, context);
    await adapter.close();
    await venue.close();
    expect([records.length, rejected]).toEqual([30, []]);
    return records;
  };

  it('reads the same markets with and without batches of events and categories of events', async () => {
    const now = await catalog({});
    // The series has a second category.
    expect(now[0]).toMatchObject({ category: 'Simulated', tags: ['Simulation', 'Exercises', 'Simulator'] });
    expect(now.some((record) => record.isSummary)).toBe(false);
    expect(await catalog({ kalshiEventTickers: 'ignored' })).toEqual(now);
    expect(await catalog({ kalshiEventTickers: 'refused', kalshiEventCategory: false })).toEqual(now);
  });
});

describe('the Kalshi adapter between full walks', () => {
  it('reads markets that open, stop and settle, with their winner', async () => {
    const venue = await startSimulatedKalshi();
    const adapter = venue.createAdapter();
    const context: CallContext = { signal: new AbortController().signal, now: () => venue.now() };
    const known = new Map<string, MarketRecord>();
    const seenStatuses = new Map<string, Set<string>>();
    let position: unknown = null;
    const walk = async () => {
      for (let more = true; more; ) {
        const page = await adapter.pollMarkets(position, context);
        for (const record of page.records) {
          known.set(record.marketId, record);
          seenStatuses.set(record.marketId, (seenStatuses.get(record.marketId) ?? new Set()).add(record.status));
        }
        position = JSON.parse(JSON.stringify(page.position));
        more = page.more;
      }
    };
    await walk();
    const before = known.size;
    for (let round = 0; round < 20; round += 1) {
      venue.exchange.step(60);
      await walk();
      const phases = {
        scheduled: 'created',
        open: 'open',
        proposed: 'resolved',
        disputed: 'closed',
        resolved: 'settled',
      };
      const truth = venue.exchange.state().markets.map((market) => [market.id, phases[market.phase], market.winner]);
      const ours = truth.map(([id]) => {
        const record = known.get(`KXSIM-${id}`);
        const winner = record?.status === 'settled' ? Number(record.winningOutcomeId?.endsWith(':no')) : undefined;
        return [id, record?.status, winner];
      });
      expect(ours).toEqual(truth);
    }
    expect(known.size).toBeGreaterThan(before);
    const fullLives = [...seenStatuses.values()].filter((statuses) => statuses.size === 3);
    expect(fullLives.length).toBeGreaterThan(0);
    await adapter.close();
    await venue.close();
  });
});
