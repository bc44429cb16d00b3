import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../domain/market.ts';
import { VENUES } from '../../domain/venue.ts';
import { observedAtMs } from '../age.ts';
import type { VenueObserver } from '../observer.ts';
import type { Batch, CallContext, HistoryPage, HistoryRequest, MarketPage, Page, VenueAdapter } from '../port.ts';
import { createReport } from '../report.ts';
import { createKalshiClient, KALSHI, type KalshiHttpSettings, REQUESTS_PER_SECOND } from './client.ts';
import { createEventDirectory } from './event-directory.ts';
import { advance, type MarketWalkSettings, openWalk } from './market-walk.ts';
import { tickersOf } from './outcome-ids.ts';
import { parseBooks } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { parsePrices } from './parse-price.ts';
import { collectTrades } from './parse-trade.ts';
import { listBooks } from './read-books.ts';
import { createHistoryReader } from './read-history.ts';
import { findMarkets, listMarkets } from './read-markets.ts';
import { readTradePage, type TradeWalkSettings } from './trade-walk.ts';

interface KalshiOptions {
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

/** Kalshi over its trade API v2, without a key. Position formats are private to this folder. */
export function createKalshiAdapter(options: KalshiOptions): VenueAdapter {
  const { observer } = options;
  const client = createKalshiClient(options);
  const events = createEventDirectory(client);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };
  const readHistory = createHistoryReader(client, {
    pageSize: tradeSettings.pageSize,
    hostRequestsPerSecond: options.http?.requestsPerSecond ?? REQUESTS_PER_SECOND,
  });
  const report = createReport(KALSHI, observer);

  return {
    venue: KALSHI,
    ...VENUES.kalshi,
    // Both outcomes of a market come in one answer.
    maxOutcomesPerFetch: 2 * MAX_TICKERS,
    maxMarketsPerFetch: MAX_TICKERS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const walk = openWalk(position, context.now(), marketSettings);
      const step = await listMarkets(client, events, walk, marketSettings, context.signal);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        return { records: [], rejected: [], position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { records, rejected, unknowns } = parseMarkets(step.answer.rows, context.now());
      report.unknowns(unknowns);
      const next = advance(step.walk, step.answer, marketSettings);
      report.truncated('markets', next.cutShort);
      const page = { records, rejected, position: next.position, more: next.position.phases.length > 0 };
      if (next.sweep === undefined) return page;
      const alsoListed = rejected.flatMap((each) => each.recordId ?? []);
      return { ...page, sweep: { ...next.sweep, ...(alsoListed.length > 0 && { alsoListed }) } };
    },

    async fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>> {
      const batch: Batch<MarketRecord> = { records: [], rejected: [] };
      for (let start = 0; start < marketIds.length; start += MAX_TICKERS) {
        const ids = marketIds.slice(start, start + MAX_TICKERS);
        const { records, rejected, unknowns } = parseMarkets(
          await findMarkets(client, events, ids, context.signal),
          context.now(),
        );
        report.unknowns(unknowns);
        batch.records.push(...records);
        batch.rejected.push(...rejected);
      }
      return batch;
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

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const { rows, ...page } = await readHistory(request, position, context);
      report.truncated('trades', page.truncated);
      const { records, rejected, unknowns } = collectTrades(rows);
      report.unknowns(unknowns);
      return { records, rejected, ...page };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      return fetchByTicker(outcomeIds, async (tickers) => {
        const answer = await client.listQuotes(tickers, context.signal);
        const asOfMs = observedAtMs(answer, context.now());
        const { unknowns, ...batch } = parsePrices(answer.rows, asOfMs, new Set(tickers));
        report.unknowns(unknowns);
        return batch;
      });
    },

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      return fetchByTicker(outcomeIds, async (tickers) => {
        const answers = await listBooks(client, tickers, context.signal);
        const nowMs = context.now();
        const requested = new Set(tickers);
        const parts = answers.map((answer) => parseBooks(answer.rows, observedAtMs(answer, nowMs), requested));
        return { records: parts.flatMap((part) => part.records), rejected: parts.flatMap((part) => part.rejected) };
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
