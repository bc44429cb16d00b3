import type { BookRecord, MarketRecord, PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { createHistoryTurns } from '../history-turns.ts';
import { observedAtMs } from '../http/age.ts';
import type { VenueObserver } from '../observer.ts';
import { emptyBatch } from '../parsed-batch.ts';
import type { Batch, CallContext, HistoryPage, HistoryRequest, MarketPage, TapePage, VenueAdapter } from '../port.ts';
import { createReport, type Report } from '../report.ts';
import { tapePage } from '../tape-page.ts';
import { createKalshiClient, KALSHI, type KalshiHttpSettings, REQUESTS_PER_SECOND } from './client.ts';
import { createEventDirectory } from './event-directory.ts';
import { listBooks } from './fetch-books.ts';
import { createHistoryReader } from './fetch-history.ts';
import { findMarkets, listMarkets } from './fetch-markets.ts';
import { tickersOf } from './outcome-ids.ts';
import { parseBooks } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { parsePrices } from './parse-price.ts';
import { collectTrades } from './parse-trade.ts';
import { createSeriesDirectory } from './series-directory.ts';
import { createPriceSweep, type SweepSettings } from './sweep-prices.ts';
import { createUnknownMarketFilter } from './unknown-markets.ts';
import { advance, type MarketWalkSettings, openWalk } from './walk-markets.ts';
import { readTradePage, type TradeWalkSettings } from './walk-trades.ts';

interface KalshiOptions {
  /** Everything before `/markets`: `https://external-api.kalshi.com/trade-api/v2`. */
  url: string;
  observer?: VenueObserver;
  http?: KalshiHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<TradeWalkSettings>;
  prices?: Partial<SweepSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = {
  // Events with their markets reach a hundred kilobytes; the venue allows 200.
  eventsPerPage: 100,
  // The venue allows 1,000; the events of a page may need as many requests.
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
/** Four pages of 0.4 s at once use the client's rate of ten requests per second. */
const SWEEP_SETTINGS: SweepSettings = { marketsPerPage: 1_000, atOnce: 4 };

/** The limit of `/markets/orderbooks`. `/markets` gets no more either, which keeps its address short. */
const MAX_TICKERS = 100;

/** Kalshi over its trade API v2, without a key. Position formats are private to this folder. */
export function createKalshiAdapter(options: KalshiOptions): VenueAdapter {
  const { observer } = options;
  const client = createKalshiClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };
  const readHistory = createHistoryReader(client, {
    pageSize: tradeSettings.pageSize,
    takeTurn: createHistoryTurns(KALSHI, {
      baseUrl: options.url,
      requestsPerSecond: options.http?.requestsPerSecond ?? REQUESTS_PER_SECOND,
      openLedger: options.http?.openLedger,
    }),
  });
  const report = createReport(KALSHI, observer);
  const skipUnknown = createUnknownMarketFilter(client);
  const directories = {
    events: createEventDirectory(client),
    series: createSeriesDirectory(client, (detail) => report.truncated('markets', detail)),
  };

  return {
    venue: KALSHI,
    ...VENUES.kalshi,
    // One row of an answer has both outcomes of a market.
    maxOutcomesPerFetch: 2 * MAX_TICKERS,
    maxMarketsPerFetch: MAX_TICKERS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const walk = openWalk(position, context.now(), marketSettings);
      const step = await listMarkets(client, directories, walk, marketSettings, context);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        return { records: [], rejected: [], position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { records, rejected, unknowns, skipped } = parseMarkets(step.answer.rows, context.now());
      report.unknowns(unknowns);
      report.received('markets', step.answer.rows.length);
      report.skipped('markets', skipped);
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
        const rows = await findMarkets(client, directories, ids, context);
        const { records, rejected, unknowns, skipped } = parseMarkets(rows, context.now());
        report.unknowns(unknowns);
        report.received('markets', rows.length);
        report.skipped('markets', skipped);
        batch.records.push(...records);
        batch.rejected.push(...rejected);
      }
      return batch;
    },

    async pollTrades(position: unknown, context: CallContext): Promise<TapePage> {
      const page = await readTradePage(position, context.now(), tradeSettings, (parameters) =>
        client.listTrades(parameters, context.signal),
      );
      return tapePage(report, page, collectTrades(page.rows));
    },

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const { rows, ...page } = await readHistory(request, position, context);
      report.truncated('trades', page.truncated);
      const { records, rejected, unknowns, skipped } = collectTrades(rows);
      report.unknowns(unknowns);
      report.received('trades', rows.length);
      report.skipped('trades', skipped);
      return { records, rejected, ...page };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      return fetchByTicker('prices', outcomeIds, report, async (tickers) => {
        const answer = await client.listQuotes(tickers, context.signal);
        const asOfMs = observedAtMs(answer, context.now());
        const { unknowns, skipped, ...batch } = parsePrices(answer.rows, asOfMs, new Set(tickers));
        report.unknowns(unknowns);
        report.received('prices', answer.rows.length, { ...batch, skipped }, 2);
        report.skipped('prices', skipped);
        return batch;
      });
    },

    sweepPrices: createPriceSweep(client, { ...SWEEP_SETTINGS, ...options.prices }, report),

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      return fetchByTicker('books', outcomeIds, report, async (tickers) => {
        const answers = await listBooks(client, tickers, context.signal);
        const nowMs = context.now();
        const requested = new Set(tickers);
        const parsed = emptyBatch<BookRecord>();
        for (const answer of answers) {
          const part = parseBooks(answer.rows, observedAtMs(answer, nowMs), requested);
          parsed.records.push(...part.records);
          parsed.rejected.push(...part.rejected);
          parsed.skipped.push(...part.skipped);
        }
        const received = answers.reduce((sum, { rows }) => sum + rows.length, 0);
        const { skipped, ...batch } = await skipUnknown(parsed, context.signal);
        report.received('books', received, { ...batch, skipped }, 2);
        report.skipped('books', skipped);
        return batch;
      });
    },

    close: () => client.close(),
  };
}

/** The requested records among those of the outcomes' markets, a hundred markets per request. */
async function fetchByTicker<R extends { outcomeId: string }>(
  kind: 'prices' | 'books',
  outcomeIds: readonly string[],
  report: Report,
  fetch: (tickers: readonly string[]) => Promise<Batch<R>>,
): Promise<Batch<R>> {
  const asked = new Set(outcomeIds);
  const tickers = tickersOf(outcomeIds);
  const batch: Batch<R> = { records: [], rejected: [] };
  for (let start = 0; start < tickers.length; start += MAX_TICKERS) {
    const { records, rejected } = await fetch(tickers.slice(start, start + MAX_TICKERS));
    const wanted = records.filter((record) => asked.has(record.outcomeId));
    report.skipped(kind, Array(records.length - wanted.length).fill('not_requested'));
    batch.records.push(...wanted);
    batch.rejected.push(...rejected);
  }
  return batch;
}
