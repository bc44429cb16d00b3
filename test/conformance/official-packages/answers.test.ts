import { once } from 'node:events';
import { HttpClient, MarketFetcher } from '@limitless-exchange/sdk';
import {
  FetchOrderBookResponseSchema,
  LastTradePricesSchema,
  MidpointsSchema,
  OrderBooksSchema,
  SpreadsSchema,
} from '@polymarket/bindings/clob';
import {
  ListActivityResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
} from '@polymarket/bindings/data';
import { GammaEventSchema, GammaMarketSchema, ListMarketsKeysetResponseSchema } from '@polymarket/bindings/gamma';
import { CustomMarketEventSchema, MarketEventSchema } from '@polymarket/bindings/subscriptions';
import { Configuration, EventsApi, ExchangeApi, HistoricalApi, MarketApi } from 'kalshi-typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Exchange } from '../../../sim/exchange.ts';
import { SERIES_TICKER, tickerOf } from '../../../sim/kalshi/wire.ts';
import { FIRST_RETAIL } from '../../../sim/traders/wallets.ts';
import { walletOf } from '../../../sim/world/identity.ts';
import { type HttpExchange, NOW, startHttpExchange } from '../../integration/sim/http-exchange.ts';
import { type Claim, fieldsBeyond, judge, requiredFields } from './judge.ts';

/**
 * The venues' own packages read the simulator: their clients send the requests, and their types and schemas check every field of the
 * answers. A simulator that differs from a contract would let an adapter pass that the venue does not.
 */
let http: HttpExchange;
let exchange: Exchange;
beforeAll(async () => {
  http = await startHttpExchange({ markets: 20, historyHours: 0.5, kalshiLiveHours: 0.05, kalshiUnopened: true });
  ({ exchange } = http);
  exchange.step(120);
});
afterAll(() => exchange.close());

describe('the package of Kalshi', () => {
  const kalshi = (name: string, type: string, answer: unknown): Claim => {
    return { name, type, answer, package: 'kalshi-typescript' };
  };
  let markets: MarketApi;
  let events: EventsApi;
  let historical: HistoricalApi;
  let fees: ExchangeApi;
  beforeAll(() => {
    const configuration = new Configuration({ basePath: exchange.kalshiUrl });
    markets = new MarketApi(configuration);
    events = new EventsApi(configuration);
    historical = new HistoricalApi(configuration);
    fees = new ExchangeApi(configuration);
  });

  it('reads every route of the simulator, and finds no fault', async () => {
    const all = exchange.state().markets;
    const open = all.find((market) => market.phase === 'open' && market.negRisk);
    const ticker = open === undefined ? '' : tickerOf(open);
    const list = (await markets.getMarkets(1000)).data;
    const archived = (await historical.getHistoricalMarkets(1000)).data;
    const combination = list.markets.find((market) => market.mve_collection_ticker !== undefined);
    const old = archived.markets[0]?.ticker ?? '';
    const [from, to] = [NOW - 3600, NOW + 120];
    const event = (await events.getEvents(200, undefined, true)).data;
    const claims = [
      kalshi('markets', 'GetMarketsResponse', list),
      kalshi('market', 'GetMarketResponse', (await markets.getMarket(ticker)).data),
      kalshi('combination', 'GetMarketResponse', (await markets.getMarket(combination?.ticker ?? '')).data),
      kalshi('book', 'GetMarketOrderbookResponse', (await markets.getMarketOrderbook(ticker)).data),
      kalshi('books', 'GetMarketOrderbooksResponse', (await markets.getMarketOrderbooks([ticker, 'UNKNOWN'])).data),
      kalshi('trades', 'GetTradesResponse', (await markets.getTrades(1000)).data),
      kalshi('series', 'GetSeriesListResponse', (await markets.getSeriesList()).data),
      kalshi('one-series', 'GetSeriesResponse', (await markets.getSeries(SERIES_TICKER)).data),
      kalshi('fee-changes', 'GetSeriesFeeChangesResponse', (await fees.getSeriesFeeChanges()).data),
      kalshi(
        'candlesticks',
        'GetMarketCandlesticksResponse',
        (await markets.getMarketCandlesticks(SERIES_TICKER, ticker, from, to, 1)).data,
      ),
      kalshi(
        'batch-candlesticks',
        'BatchGetMarketCandlesticksResponse',
        (await markets.batchGetMarketCandlesticks(ticker, from, to, 1)).data,
      ),
      kalshi('events', 'GetEventsResponse', event),
      kalshi('event', 'GetEventResponse', (await events.getEvent(event.events[0]?.event_ticker ?? '')).data),
      kalshi('combinations', 'GetMultivariateEventsResponse', (await events.getMultivariateEvents(200)).data),
      kalshi('event-fee-changes', 'GetEventFeeChangesResponse', (await events.getEventFeeChanges()).data),
      kalshi('archived-markets', 'GetMarketsResponse', archived),
      kalshi('archived-market', 'GetMarketResponse', (await historical.getHistoricalMarket(old)).data),
      kalshi('archived-trades', 'GetTradesResponse', (await historical.getTradesHistorical()).data),
      kalshi('cutoff', 'GetHistoricalCutoffResponse', (await historical.getHistoricalCutoff()).data),
      kalshi(
        'archived-candlesticks',
        'GetMarketCandlesticksHistoricalResponse',
        (await historical.getMarketCandlesticksHistorical(old, NOW - 90_000, to, 60)).data,
      ),
    ];
    expect(await judge(claims)).toEqual([]);
    const empty = claims.filter(({ answer }) => rowsOf(answer) === 0);
    expect(empty.map(({ name }) => name)).toEqual(['fee-changes', 'event-fee-changes']);
  });

  it('knows every field of a market, and misses each of the required ones', async () => {
    const { market } = (await markets.getMarket((await markets.getMarkets(1)).data.markets[0]?.ticker ?? '')).data;
    const claim = kalshi('market', 'Market', market);
    expect(await fieldsBeyond(claim)).toEqual([]);
    expect(await requiredFields(claim)).toEqual(
      expect.arrayContaining([
        ...['latest_expiration_time', 'open_interest_fp', 'previous_price_dollars', 'previous_yes_ask_dollars'],
        ...['previous_yes_bid_dollars', 'price_level_structure', 'price_ranges', 'settlement_timer_seconds'],
        ...['status', 'ticker', 'yes_ask_dollars', 'yes_ask_size_fp', 'yes_bid_dollars', 'yes_bid_size_fp'],
      ]),
    );
  });

  it('gets 400 for a limit above the greatest', async () => {
    await expect(markets.getMarkets(2000)).rejects.toMatchObject({ response: { status: 400 } });
    await expect(events.getEvents(201)).rejects.toMatchObject({ response: { status: 400 } });
  });

  it('finds the faults of a wrong answer', async () => {
    const { trades } = (await markets.getTrades(1)).data;
    const [trade] = trades;
    const lines = await judge([
      kalshi('no-price', 'Trade', { ...trade, yes_price_dollars: undefined }),
      kalshi('number', 'Trade', { ...trade, count_fp: 2 }),
      kalshi('side', 'Trade', { ...trade, taker_outcome_side: 'maybe' }),
      kalshi('good', 'Trade', trade),
    ]);
    expect(lines.map((line) => line.split(':')[0]).sort()).toEqual(['no-price', 'number', 'side']);
  });
});

describe('the package of Polymarket', () => {
  it('reads the markets of both protocols, and the outcomes of each', async () => {
    const closed = [false, true];
    const pages = await Promise.all(
      closed.map((each) => http.get<Raw>(http.gamma(`/markets/keyset?limit=100&closed=${each}&include_tag=true`))),
    );
    const { markets } = exchange.state();
    const states = new Map(markets.map((market) => [market.conditionId, market]));
    const versions = new Set<unknown>();
    for (const page of pages) {
      const { items } = ListMarketsKeysetResponseSchema.parse(page);
      expect(items.length).toBe((page as { markets: unknown[] }).markets.length);
      for (const { version, conditionId, outcomes } of items) {
        versions.add(version);
        const id = version === 'v2' ? 'positionId' : 'tokenId';
        const tokenIds = states.get(conditionId ?? '')?.outcomes.map(({ tokenId }) => tokenId);
        expect([outcomes.yes[id], outcomes.no[id]]).toEqual(tokenIds);
      }
      for (const market of (page as { markets: unknown[] }).markets) GammaMarketSchema.parse(market);
    }
    expect(versions).toEqual(new Set(['v1', 'v2']));
    const event = await http.get<Raw>(http.gamma('/events/90000'));
    expect(GammaEventSchema.parse(event).markets?.length).toBeGreaterThan(1);
  });

  it('reads books, midpoints, spreads and last trades of both protocols', async () => {
    const ids = exchange.state().markets.flatMap(({ phase, outcomes }) => (phase === 'open' ? outcomes : []));
    const body = ids.map(({ tokenId }) => ({ token_id: tokenId }));
    const books = OrderBooksSchema.parse(await http.post(http.clob('/books'), body));
    expect(books.map(({ tokenId }) => String(tokenId)).sort()).toEqual(ids.map(({ tokenId }) => tokenId).sort());
    for (const { token_id } of body) {
      FetchOrderBookResponseSchema.parse(await http.get(http.clob(`/book?token_id=${token_id}`)));
    }
    MidpointsSchema.parse(await http.post(http.clob('/midpoints'), body));
    SpreadsSchema.parse(await http.post(http.clob('/spreads'), body));
    expect(LastTradePricesSchema.parse(await http.post(http.clob('/last-trades-prices'), body)).length).toBeGreaterThan(
      4,
    );
  });

  it('reads trades, activity and positions', async () => {
    const user = walletOf(exchange.seed, FIRST_RETAIL).address;
    const trades = await http.get<Raw>(http.data('/v2/trades?limit=1000'));
    const activity = await http.get<Raw>(http.data(`/v2/activity?user=${user}&exclude_deposits_withdrawals=false`));
    const positions = await http.get<Raw>(http.data(`/v2/positions?user=${user}`));
    expect(ListTradesResponseSchema.parse(trades).items.length).toBe(1000);
    expect(ListActivityResponseSchema.parse(activity).items.length).toBeGreaterThan(4);
    expect(ListPositionsResponseSchema.parse(positions).items.length).toBeGreaterThan(0);
  });

  it('reads the frames of the market channel', async () => {
    const frames: unknown[] = [];
    const socket = new WebSocket(exchange.feedUrls.clob);
    socket.on('message', (data) => frames.push(...[JSON.parse(String(data)) as unknown].flat()));
    await once(socket, 'open');
    const assets_ids = exchange.state().markets.flatMap(({ outcomes }) => outcomes.map(({ tokenId }) => tokenId));
    socket.send(JSON.stringify({ assets_ids, type: 'market', custom_feature_enabled: true }));
    await expect.poll(() => frames.length).toBeGreaterThan(10);
    const market = exchange.state().markets.find(({ phase }) => phase === 'open');
    exchange.step(60);
    exchange.steer({ conditionId: market?.conditionId ?? '', action: 'resolve', winner: 0 });
    const types = () => new Set(frames.map((frame) => (frame as { event_type: string }).event_type));
    const expected = ['best_bid_ask', 'book', 'last_trade_price', 'market_resolved', 'price_change'];
    await expect.poll(() => [...types()].sort()).toEqual(expect.arrayContaining(expected));
    socket.close();
    const kinds = frames.map((frame) => MarketEventSchema.parse(frame).type);
    expect(new Set(kinds)).toEqual(types());
    const resolved = frames.find((frame) => (frame as { event_type: string }).event_type === 'market_resolved');
    expect(CustomMarketEventSchema.parse(resolved).type).toBe('market_resolved');
  });
});

describe('the package of Limitless', () => {
  const limitless = (name: string, type: string, answer: unknown): Claim => {
    return { name, type, answer, package: '@limitless-exchange/sdk' };
  };

  it('reads markets, groups and books of the simulator, and finds no fault', async () => {
    const client = new HttpClient({ baseURL: exchange.limitlessUrl });
    const fetcher = new MarketFetcher(client);
    const active = await fetcher.getActiveMarkets({ page: 1, limit: 25 }, { withRawResponse: true });
    const list = active.getRaw().data as unknown as {
      data: { slug: string; tradeType: string; markets?: { slug: string }[] }[];
    };
    const group = list.data.find(({ tradeType }) => tradeType === 'group');
    const single = list.data.find(({ tradeType }) => tradeType === 'clob');
    const pages = [group?.slug, single?.slug, group?.markets?.[0]?.slug].map((slug = '') =>
      fetcher.getMarket(slug, { withRawResponse: true }),
    );
    const [groupPage, page, option] = (await Promise.all(pages)).map((each) => each.getRaw().data);
    const claims = [
      limitless('active', 'ActiveMarketsResponse', list),
      limitless('group', 'MarketInterface', groupPage),
      limitless('market', 'MarketInterface', page),
      limitless('option', 'MarketInterface', option),
      limitless('book', 'OrderBook', await fetcher.getOrderBook(single?.slug ?? '')),
    ];
    expect(await judge(claims)).toEqual([]);
    expect(await fieldsBeyond(limitless('market', 'MarketInterface', page))).toEqual([]);
    expect(page).toMatchObject({ volumeFormatted: expect.stringMatching(/^\d+\.\d{6}$/) });
    expect(await requiredFields(limitless('market', 'MarketInterface', page))).toEqual(
      expect.arrayContaining(['creator', 'expirationDate', 'metadata', 'priorityIndex', 'proxyTitle', 'updatedAt']),
    );
  });
});

type Raw = Record<string, unknown>;

/** The rows of the first list of an answer; undefined for an answer without one. */
function rowsOf(answer: unknown): number | undefined {
  return Object.values(answer as object).find(Array.isArray)?.length as number | undefined;
}
