import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../domain/market.ts';
import { VENUES } from '../../domain/venue.ts';
import { VenueError } from '../errors.ts';
import type { VenueObserver } from '../observer.ts';
import type { Batch, CallContext, Page, VenueAdapter } from '../port.ts';
import { createReport } from '../report.ts';
import {
  createPolymarketClient,
  type MarketsAnswer,
  POLYMARKET,
  type PolymarketClient,
  type PolymarketHttpSettings,
  type PolymarketUrls,
} from './client.ts';
import {
  advance,
  afterRefusal,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  openWalk,
  switchListing,
} from './market-walk.ts';
import { isTight, parseBooks, parseLastTrades, priceOfBook } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { identifyTrades } from './parse-trade.ts';
import { readTradePage, type TradeWalkSettings } from './trade-walk.ts';

export interface PolymarketOptions {
  urls: PolymarketUrls;
  observer?: VenueObserver;
  http?: PolymarketHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<TradeWalkSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = {
  pageSize: 100,
  fullWalkEveryMs: 10 * 60_000,
  firstClosedPages: 10,
  maxRecentPages: 50,
  maxCatchUpPages: 500,
};
const TRADE_SETTINGS: TradeWalkSettings = {
  pageSize: 1_000,
  overlapSeconds: 120,
  initialLookbackSeconds: 6 * 3_600,
  longGapSeconds: 300,
  headEveryMs: 1_000,
};

/** The most tokens `POST /books` takes. */
const MAX_BOOKS = 500;
/** Single book requests under way at once where the batch route is missing. */
const BOOKS_AT_ONCE = 8;
const TOKEN_ID = /^\d{1,100}$/;

/** Polymarket over its three public hosts. Position formats are private to this folder. */
export function createPolymarketAdapter(options: PolymarketOptions): VenueAdapter {
  const { observer } = options;
  const client = createPolymarketClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };

  const report = createReport(POLYMARKET, observer);

  return {
    venue: POLYMARKET,
    ...VENUES.polymarket,
    maxOutcomesPerFetch: MAX_BOOKS,

    async pollMarkets(position: unknown, context: CallContext): Promise<Page<MarketRecord>> {
      const nowMs = context.now();
      const walk = openWalk(position, nowMs, marketSettings);
      const step = await listMarkets(client, walk, marketSettings, context.signal);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        return { records: [], rejected: [], position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { records, rejected, unknowns } = parseMarkets(step.answer.rows, nowMs);
      report.unknowns(unknowns);
      const next = advance(step.walk, step.answer, nowMs, marketSettings);
      report.truncated('markets', next.cutShort);
      return { records, rejected, position: next.position, more: next.position.phases.length > 0 };
    },

    async pollTrades(position: unknown, context: CallContext): Promise<Page<TradeRecord>> {
      const page = await readTradePage(position, context.now(), tradeSettings, (query) =>
        client.listTrades(query, context.signal),
      );
      report.truncated('trades', page.truncated);
      const { records, rejected, unknowns } = identifyTrades(page.rows);
      report.unknowns(unknowns);
      return { records, rejected, position: page.position, more: page.more };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      const books = await fetchBooks(client, 'prices', outcomeIds, context);
      const loose = books.records.filter((book) => !isTight(book)).map((book) => book.outcomeId);
      const last = await fetchLastTrades(client, loose, context.signal);
      const prices = books.records.map((book) => priceOfBook(book, last.prices.get(book.outcomeId)));
      return {
        records: prices.filter((price) => price !== undefined),
        rejected: [...books.rejected, ...last.rejected],
      };
    },

    fetchBooks: (outcomeIds, context) => fetchBooks(client, 'books', outcomeIds, context),

    close: () => client.close(),
  };
}

interface MarketStep {
  walk: MarketPosition;
  answer?: MarketsAnswer;
  skipped?: string;
}

/** One page, with a way around a listing that is gone, a cursor that expired and an order that is not known. */
async function listMarkets(
  client: PolymarketClient,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  signal: AbortSignal,
): Promise<MarketStep> {
  try {
    return { walk, answer: await client.listMarkets(nextQuery(walk, settings), signal) };
  } catch (error) {
    const statusCode = error instanceof VenueError ? (error.statusCode ?? 0) : 0;
    if (walk.listing === 'keyset' && [404, 405, 410].includes(statusCode)) {
      return listMarkets(client, switchListing(walk, 'offset'), settings, signal);
    }
    const without = statusCode === 400 || statusCode === 422 ? afterRefusal(walk) : undefined;
    if (without === undefined) throw error;
    return {
      walk: without,
      skipped: `the venue refused a page of the ${walk.phases[0]?.name} markets: HTTP ${statusCode}`,
    };
  }
}

async function fetchBooks(
  client: PolymarketClient,
  kind: 'books' | 'prices',
  outcomeIds: readonly string[],
  context: CallContext,
): Promise<Batch<BookRecord>> {
  // Made-up ids of markets without tokens have no book, and one bad id would make the venue refuse the whole batch.
  const tokenIds = [...new Set(outcomeIds)].filter((id) => TOKEN_ID.test(id));
  const batch: Batch<BookRecord> = { records: [], rejected: [] };
  for (let start = 0; start < tokenIds.length; start += MAX_BOOKS) {
    const chunk = tokenIds.slice(start, start + MAX_BOOKS);
    const rows = await listBooks(client, chunk, context.signal);
    const parsed = parseBooks(kind, rows, context.now(), new Set(chunk));
    batch.records.push(...parsed.records);
    batch.rejected.push(...parsed.rejected);
  }
  return batch;
}

async function fetchLastTrades(client: PolymarketClient, tokenIds: readonly string[], signal: AbortSignal) {
  const last: ReturnType<typeof parseLastTrades> = { prices: new Map(), rejected: [] };
  for (let start = 0; start < tokenIds.length; start += MAX_BOOKS) {
    const chunk = tokenIds.slice(start, start + MAX_BOOKS);
    try {
      const { prices, rejected } = parseLastTrades(await client.listLastTrades(chunk, signal), new Set(chunk));
      for (const [tokenId, price] of prices) last.prices.set(tokenId, price);
      last.rejected.push(...rejected);
    } catch (error) {
      // Without the route there is no last trade to fall back on; the books' middles still stand.
      if (!isHttpStatus(error, [400, 404, 405])) throw error;
    }
  }
  return last;
}

async function listBooks(
  client: PolymarketClient,
  tokenIds: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  try {
    return await client.listBooks(tokenIds, signal);
  } catch (error) {
    if (!isHttpStatus(error, [400, 404, 405])) throw error;
    return getBooks(client, tokenIds, signal);
  }
}

async function getBooks(
  client: PolymarketClient,
  tokenIds: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const rows: unknown[] = [];
  const waiting = [...tokenIds];
  const work = async () => {
    for (let tokenId = waiting.shift(); tokenId !== undefined; tokenId = waiting.shift()) {
      try {
        rows.push(await client.getBook(tokenId, signal));
      } catch (error) {
        // The venue's way to say that a token has no book.
        if (isHttpStatus(error, [400, 404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return rows;
}

function isHttpStatus(error: unknown, statusCodes: readonly number[]): boolean {
  return error instanceof VenueError && error.code === 'http_status' && statusCodes.includes(error.statusCode ?? 0);
}
