import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../domain/market.ts';
import { VENUES } from '../../domain/venue.ts';
import { VenueError } from '../errors.ts';
import type { VenueObserver } from '../observer.ts';
import type { Batch, CallContext, Page, VenueAdapter } from '../port.ts';
import { createReport } from '../report.ts';
import {
  createKalshiClient,
  isHttpStatus,
  KALSHI,
  type KalshiClient,
  type KalshiHttpSettings,
  type ListAnswer,
} from './client.ts';
import { createEventDirectory, type EventDirectory } from './event-directory.ts';
import {
  advance,
  afterRefusal,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  openWalk,
  withoutCombinations,
} from './market-walk.ts';
import { tickersOf } from './outcome-ids.ts';
import { parseBooks } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { parsePrices } from './parse-price.ts';
import { collectTrades } from './parse-trade.ts';
import { readTradePage, type TradeWalkSettings } from './trade-walk.ts';

export interface KalshiOptions {
  /** Everything before `/markets`: `https://external-api.kalshi.com/trade-api/v2`. */
  url: string;
  observer?: VenueObserver;
  http?: KalshiHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<TradeWalkSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = {
  // Nested events run to a hundred kilobytes; the venue allows 200.
  eventsPerPage: 100,
  // The venue allows 1,000; a page may have to ask for as many events.
  marketsPerPage: 200,
  fullWalkEveryMs: 30 * 60_000,
  firstSettledSeconds: 24 * 3_600,
  maxRecentPages: 200,
};
const TRADE_SETTINGS: TradeWalkSettings = {
  pageSize: 1_000,
  overlapSeconds: 120,
  initialLookbackSeconds: 6 * 3_600,
  longGapSeconds: 300,
  headEveryMs: 1_000,
};

/** The most tickers that `/markets/orderbooks` takes; `/markets` gets no more either, so that its address stays short. */
const MAX_TICKERS = 100;
/** Single book requests under way at once where the batch route cannot be used. */
const BOOKS_AT_ONCE = 8;

/** Kalshi over its trade API v2, without a key. Position formats are private to this folder. */
export function createKalshiAdapter(options: KalshiOptions): VenueAdapter {
  const { observer } = options;
  const client = createKalshiClient(options);
  const events = createEventDirectory(client);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };

  const report = createReport(KALSHI, observer);

  return {
    venue: KALSHI,
    ...VENUES.kalshi,
    // Both outcomes of a market come in one answer.
    maxOutcomesPerFetch: 2 * MAX_TICKERS,

    async pollMarkets(position: unknown, context: CallContext): Promise<Page<MarketRecord>> {
      const walk = openWalk(position, context.now(), marketSettings);
      const step = await listMarkets(client, events, walk, marketSettings, context.signal);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        return { records: [], rejected: [], position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { records, rejected, unknowns } = parseMarkets(step.answer.rows);
      report.unknowns(unknowns);
      const next = advance(step.walk, step.answer, marketSettings);
      report.truncated('markets', next.cutShort);
      return { records, rejected, position: next.position, more: next.position.phases.length > 0 };
    },

    async pollTrades(position: unknown, context: CallContext): Promise<Page<TradeRecord>> {
      const page = await readTradePage(position, context.now(), tradeSettings, (parameters) =>
        client.listTrades(parameters, context.signal),
      );
      report.truncated('trades', page.truncated);
      const { records, rejected, unknowns } = collectTrades(page.rows);
      report.unknowns(unknowns);
      return { records, rejected, position: page.position, more: page.more };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      return fetchByTicker(outcomeIds, async (tickers) => {
        const rows = await client.listQuotes(tickers, context.signal);
        const { unknowns, ...batch } = parsePrices(rows, context.now(), new Set(tickers));
        report.unknowns(unknowns);
        return batch;
      });
    },

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      return fetchByTicker(outcomeIds, async (tickers) => {
        const rows = await listBooks(client, tickers, context.signal);
        return parseBooks(rows, context.now(), new Set(tickers));
      });
    },

    close: () => client.close(),
  };
}

/** What was asked for of the records that the outcomes' markets give, a hundred markets a request. */
async function fetchByTicker<R extends { outcomeId: string }>(
  outcomeIds: readonly string[],
  fetch: (tickers: readonly string[]) => Promise<Batch<R>>,
): Promise<Batch<R>> {
  const asked = new Set(outcomeIds);
  const tickers = tickersOf(outcomeIds);
  const batch: Batch<R> = { records: [], rejected: [] };
  for (let start = 0; start < tickers.length; start += MAX_TICKERS) {
    const { records, rejected } = await fetch(tickers.slice(start, start + MAX_TICKERS));
    batch.records.push(...records.filter((record) => asked.has(record.outcomeId)));
    batch.rejected.push(...rejected);
  }
  return batch;
}

interface MarketStep {
  walk: MarketPosition;
  answer?: ListAnswer;
  skipped?: string;
}

/** One page with the events of its markets, and a way around a cursor that expired and a filter that is not known. */
async function listMarkets(
  client: KalshiClient,
  events: EventDirectory,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  signal: AbortSignal,
): Promise<MarketStep> {
  const { listing, parameters } = nextQuery(walk, settings);
  let answer: ListAnswer;
  try {
    answer = await (listing === 'events'
      ? client.listEvents(parameters, signal)
      : client.listMarkets(parameters, signal));
  } catch (error) {
    const without = isHttpStatus(error, [400, 422]) ? afterRefusal(walk) : undefined;
    if (without === undefined) throw error;
    const statusCode = error instanceof VenueError ? error.statusCode : undefined;
    return {
      walk: without,
      skipped: `the venue refused a page of the ${walk.phases[0]?.name} markets: HTTP ${statusCode}`,
    };
  }
  if (listing === 'events') {
    events.learn(answer.rows);
    return { walk, answer };
  }
  return { walk, answer: { ...answer, rows: await events.complete(withoutCombinations(answer.rows), signal) } };
}

/** By the batch route, or one by one where it is missing or wants a key that the single route does not. */
async function listBooks(client: KalshiClient, tickers: readonly string[], signal: AbortSignal): Promise<unknown[]> {
  try {
    return await client.listBooks(tickers, signal);
  } catch (error) {
    if (!isHttpStatus(error, [400, 401, 403, 404, 405])) throw error;
    return getBooks(client, tickers, signal);
  }
}

async function getBooks(client: KalshiClient, tickers: readonly string[], signal: AbortSignal): Promise<unknown[]> {
  const rows: unknown[] = [];
  const waiting = [...tickers];
  const work = async () => {
    for (let ticker = waiting.shift(); ticker !== undefined; ticker = waiting.shift()) {
      try {
        rows.push(await client.getBook(ticker, signal));
      } catch (error) {
        // The venue's way to say that it does not know a market.
        if (isHttpStatus(error, [404])) continue;
        waiting.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: BOOKS_AT_ONCE }, work));
  return rows;
}
