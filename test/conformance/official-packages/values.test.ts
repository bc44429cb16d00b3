import { HttpClient, MarketFetcher } from '@limitless-exchange/sdk';
import { OrderBooksSchema } from '@polymarket/bindings/clob';
import { ListTradesResponseSchema } from '@polymarket/bindings/data';
import { ListMarketsKeysetResponseSchema } from '@polymarket/bindings/gamma';
import { Configuration, MarketApi } from 'kalshi-typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../api/reads/venue-catalog.ts';
import type { Exchange } from '../../../sim/exchange.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { type Client, startTestApi, type TestApi } from '../../integration/api/api-harness.ts';
import { type HttpExchange, startHttpExchange } from '../../integration/sim/http-exchange.ts';
import { storePage } from '../store-page.ts';

/**
 * One state of the simulator, read twice: by the venues' own packages, and by oddswire's adapters into the store behind its API. The values
 * of the API equal those of the packages.
 */
const VENUES = ['polymarket', 'kalshi', 'limitless'] as const;
type Venue = (typeof VENUES)[number];

let http: HttpExchange;
let exchange: Exchange;
let api: TestApi;
let client: Client;
beforeAll(async () => {
  // The clock stands still, so both readers see the same second.
  http = await startHttpExchange({ markets: 12, historyHours: 0.3, rollingSeconds: 0, nowSecond: nowSecond() });
  ({ exchange } = http);
  exchange.step(30);
  api = await startTestApi({
    decimalFormat: 'string',
    venues: enabledVenues([...VENUES], { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 }),
  });
  client = await api.client();
  const partitions = new Partitions(api.db);
  for (const table of ['trade', 'price_history', 'book_history', 'observation'] as const) {
    await partitions.ensureAroundNow(table);
  }
  for (const venue of VENUES) await fill(venue, partitions);
});
afterAll(async () => {
  await api.close();
  await exchange.close();
});

function nowSecond(): number {
  return Math.floor(Date.now() / 1000);
}

function adapterOf(venue: Venue): VenueAdapter {
  const settings = { http: { requestsPerSecond: 10_000, burst: 1_000, maxAttempts: 1 } };
  const { gammaUrl, clobUrl, dataUrl, kalshiUrl, limitlessUrl } = exchange;
  if (venue === 'kalshi') return createKalshiAdapter({ url: kalshiUrl, ...settings });
  if (venue === 'limitless') return createLimitlessAdapter({ url: limitlessUrl, ...settings });
  return createPolymarketAdapter({ urls: { gamma: gammaUrl, clob: clobUrl, data: dataUrl }, ...settings });
}

/** Stores the catalog, the books, the prices and the trades of a venue. */
async function fill(venue: Venue, partitions: Partitions): Promise<void> {
  const adapter = adapterOf(venue);
  const nowMs = Date.now();
  const context = { signal: new AbortController().signal, now: () => nowMs };
  const outcomeIds: string[] = [];
  const requests: { marketId: string; outcomeIds: string[] }[] = [];
  for (let position: unknown = null, more = true; more; ) {
    const page = await adapter.pollMarkets(position, context);
    await storePage(api.db, partitions, { venue, kind: 'markets', nowMs }, page);
    for (const { marketId, hasBook, outcomes } of page.records) {
      const ids = outcomes.map(({ outcomeId }) => outcomeId);
      if (hasBook) outcomeIds.push(...ids);
      if (hasBook) requests.push({ marketId, outcomeIds: ids });
    }
    ({ position, more } = page);
  }
  for (const kind of ['prices', 'books'] as const) {
    const most = (kind === 'books' ? adapter.maxBooksPerFetch : undefined) ?? adapter.maxOutcomesPerFetch;
    for (let at = 0; at < outcomeIds.length; at += most) {
      const ids = outcomeIds.slice(at, at + most);
      const batch = kind === 'books' ? await adapter.fetchBooks(ids, context) : await adapter.fetchPrices(ids, context);
      await storePage(api.db, partitions, { venue, kind, nowMs }, batch);
    }
  }
  for (const request of requests) {
    for (let position: unknown = null, more = true; more; ) {
      const range = { fromMs: nowMs - 86_400_000, toMs: nowMs + 60_000 };
      const page = await adapter.pollHistory({ ...request, ...range }, position, context);
      await storePage(api.db, partitions, { venue, kind: 'trades', nowMs }, page);
      ({ position, more } = page);
    }
  }
  await adapter.close();
}

interface Level {
  price: string;
  size: string;
}
interface OurMarket {
  market_id: string;
  title: string;
  status: string;
  volume?: string;
  volume_24h?: string;
  outcomes: { outcome_id: string; name: string }[];
}
interface OurBook {
  bids: Level[];
  asks: Level[];
}
interface OurTrade {
  outcome_id: string;
  price: string;
  size: string;
  side: string;
}

async function ours<T>(path: string): Promise<T> {
  const answer = await client.market(path);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.body.data as T;
}

const pathOf = (venue: Venue, id: string) => `/v1/${venue}/markets/${encodeURIComponent(id)}`;
const bookOf = (venue: Venue, id: string, outcomeId: string) =>
  ours<OurBook>(`${pathOf(venue, id)}/orderbook?outcome_id=${encodeURIComponent(outcomeId)}&depth=200`);

/** Exact text of a number that a package gives as text or as number. */
const exact = (value: unknown) => decimal(String(value));
const exactLevels = (levels: readonly { price: unknown; size: unknown }[]) =>
  levels.map(({ price, size }) => `${exact(price)} x ${exact(size)}`);
const byPrice = (a: { price: unknown }, b: { price: unknown }) => Number(a.price) - Number(b.price);

describe('the API beside the package of the venue', () => {
  it('shows the titles, states, volumes, books and trades of kalshi-typescript', async () => {
    const kalshi = new MarketApi(new Configuration({ basePath: exchange.kalshiUrl }));
    const { markets } = (await kalshi.getMarkets(1000)).data;
    const open = markets.filter(({ status, mve_collection_ticker: mve }) => status === 'active' && mve === undefined);
    expect(open.length).toBeGreaterThan(5);
    for (const theirs of open) {
      const { ticker } = theirs;
      const market = await ours<OurMarket>(pathOf('kalshi', ticker));
      expect([market.market_id, market.status]).toEqual([ticker, 'open']);
      expect(market.title).toContain(theirs.title);
      expect([exact(market.volume), exact(market.volume_24h)]).toEqual([
        exact(theirs.volume_fp),
        exact(theirs.volume_24h_fp),
      ]);
      const book = await bookOf('kalshi', ticker, `${ticker}:yes`);
      const { orderbook_fp: sides } = (await kalshi.getMarketOrderbook(ticker)).data;
      const bids = sides.yes_dollars.map(([price, size]) => ({ price, size })).sort(byPrice);
      expect(exactLevels(book.bids)).toEqual(exactLevels(bids).reverse());
      expect([exact(book.bids[0]?.price), exact(book.bids[0]?.size)]).toEqual([
        exact(theirs.yes_bid_dollars),
        exact(theirs.yes_bid_size_fp),
      ]);
      expect([exact(book.asks[0]?.price), exact(book.asks[0]?.size)]).toEqual([
        exact(theirs.yes_ask_dollars),
        exact(theirs.yes_ask_size_fp),
      ]);
      const trades = await ours<OurTrade[]>(`${pathOf('kalshi', ticker)}/trades?limit=1000`);
      const { trades: tape } = (await kalshi.getTrades(1000, undefined, ticker)).data;
      const lines = tape.map((row) => `${exact(row.yes_price_dollars)} ${exact(row.count_fp)}`);
      expect(trades.map(({ price, size }) => `${exact(price)} ${exact(size)}`).sort()).toEqual(lines.sort());
    }
  });

  it('shows the outcomes, volumes, books and trades of @polymarket/bindings in both protocols', async () => {
    const page = await http.get(http.gamma('/markets/keyset?limit=100&closed=false'));
    const open = ListMarketsKeysetResponseSchema.parse(page).items.filter(({ state }) => state.acceptingOrders);
    expect(new Set(open.map(({ version }) => version))).toEqual(new Set(['v1', 'v2']));
    for (const theirs of open) {
      const { conditionId, version, outcomes, metrics } = theirs;
      const id = conditionId ?? '';
      const market = await ours<OurMarket>(pathOf('polymarket', id));
      const field = version === 'v2' ? 'positionId' : 'tokenId';
      const ids = [outcomes.yes[field], outcomes.no[field]].map(String);
      expect(market.outcomes.map(({ outcome_id }) => outcome_id)).toEqual(ids);
      expect([market.title, market.status]).toEqual([theirs.question, 'open']);
      expect(exact(market.volume ?? 0)).toBe(exact(metrics.volume ?? 0));
      const books = OrderBooksSchema.parse(
        await http.post(
          http.clob('/books'),
          ids.map((token_id) => ({ token_id })),
        ),
      );
      for (const { tokenId, bids, asks } of books) {
        const book = await bookOf('polymarket', id, String(tokenId));
        expect(exactLevels(book.bids)).toEqual(exactLevels(bids.toSorted(byPrice)).reverse());
        expect(exactLevels(book.asks)).toEqual(exactLevels(asks.toSorted(byPrice)));
      }
      const trades = await ours<OurTrade[]>(`${pathOf('polymarket', id)}/trades?limit=1000`);
      const answer = await http.get(http.data(`/v2/trades?condition=${id}&limit=1000&filter_amount=0.000001`));
      const { items } = ListTradesResponseSchema.parse(answer);
      const lines = items.map(
        (row) => `${row.tokenId} ${exact(row.price)} ${exact(row.size)} ${row.side.toLowerCase()}`,
      );
      const shown = trades.map(
        ({ outcome_id, price, size, side }) => `${outcome_id} ${exact(price)} ${exact(size)} ${side}`,
      );
      expect(shown.sort()).toEqual(lines.sort());
    }
  });

  it('shows the titles, volumes and books of @limitless-exchange/sdk', async () => {
    const fetcher = new MarketFetcher(new HttpClient({ baseURL: exchange.limitlessUrl }));
    const { data } = await fetcher.getActiveMarkets({ page: 1, limit: 25 });
    const markets = data.flatMap((each) => each.markets ?? [each]).filter(({ tradeType }) => tradeType === 'clob');
    expect(markets.length).toBeGreaterThan(5);
    for (const { slug, title, tokens, volumeFormatted } of markets) {
      const market = await ours<OurMarket>(pathOf('limitless', slug));
      expect(market.title).toContain(title);
      expect(market.outcomes.map(({ outcome_id }) => outcome_id)).toEqual([tokens?.yes, tokens?.no]);
      expect(exact(market.volume)).toBe(exact(volumeFormatted));
      const theirs = await fetcher.getOrderBook(slug);
      const shares = (levels: readonly { price: number; size: number }[]) =>
        levels.map(({ price, size }) => ({ price, size: size / 1e6 }));
      const book = await bookOf('limitless', slug, tokens?.yes ?? '');
      expect(exactLevels(book.bids)).toEqual(exactLevels(shares(theirs.bids)));
      expect(exactLevels(book.asks)).toEqual(exactLevels(shares(theirs.asks)));
    }
  });
});
