import type { BookRecord, MarketRecord, PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { createHistoryTurns } from '../history-turns.ts';
import { observedAtMs } from '../http/age.ts';
import { type Asked, rejectMembers, unreadOf } from '../http/member-batches.ts';
import { createPageReader } from '../http/page-reader.ts';
import type { VenueObserver } from '../observer.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { Batch, CallContext, HistoryPage, HistoryRequest, MarketPage, TapePage, VenueAdapter } from '../port.ts';
import { createReport } from '../report.ts';
import { tapePage } from '../tape-page.ts';
import { createKalshiClient, KALSHI, type KalshiHttpSettings, REQUESTS_PER_SECOND } from './client.ts';
import { createEventDirectory } from './event-directory.ts';
import type { KalshiKey } from './feed/key.ts';
import { createBookReader } from './fetch-books.ts';
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
  /** Signs the requests; they need none. */
  key?: KalshiKey;
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

/** Kalshi over its trade API v2, with or without a key. Position formats are private to this folder. */
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
  const readPage = createPageReader();
  const routes = { quotes: client.members('quotes'), archived: client.members('archived_markets') };
  const skipUnknown = createUnknownMarketFilter(client, routes.quotes, MAX_TICKERS);
  const readBooks = createBookReader(client, MAX_TICKERS);
  const directories = {
    events: createEventDirectory(client, (detail) => report.truncated('markets', detail)),
    series: createSeriesDirectory(client, (detail) => report.truncated('markets', detail)),
  };

  /** The requested records among those of the outcomes' markets. */
  function requested<R extends { outcomeId: string }>(
    kind: 'prices' | 'books',
    outcomeIds: readonly string[],
    { skipped, fault, ...batch }: ParsedBatch<R>,
    asked: Asked<unknown>,
    nowMs: number,
  ): Batch<R> {
    const wanted = new Set(outcomeIds);
    const records = batch.records.filter((record) => wanted.has(record.outcomeId));
    const refused = rejectMembers(kind, asked.refused, nowMs);
    report.received(kind, refused.length);
    report.skipped(kind, [...skipped, ...Array(batch.records.length - records.length).fill('not_requested')]);
    return {
      records,
      rejected: [...batch.rejected, ...refused],
      ...(fault && { fault }),
      ...unreadOf(asked),
    };
  }

  return {
    venue: KALSHI,
    ...VENUES.kalshi,
    // One row of an answer has both outcomes of a market.
    maxOutcomesPerFetch: 2 * MAX_TICKERS,
    maxMarketsPerFetch: MAX_TICKERS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const walk = openWalk(position, context.now(), marketSettings);
      const step = await listMarkets(client, readPage, directories, walk, marketSettings, context);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        const rejected = step.failed ? [step.failed] : [];
        report.received('markets', rejected.length);
        return { records: [], rejected, position: step.walk, more: step.walk.phases.length > 0 };
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
      const asked = await findMarkets(client, { directories, ...routes, size: MAX_TICKERS }, marketIds, context);
      const { records, rejected, unknowns, skipped } = parseMarkets(asked.rows, context.now());
      const refused = rejectMembers('markets', asked.refused, context.now());
      report.unknowns(unknowns);
      report.received('markets', asked.rows.length + refused.length);
      report.skipped('markets', skipped);
      if (asked.rows.length === 0 && asked.fault) throw asked.fault;
      return { records, rejected: [...rejected, ...refused], ...unreadOf(asked) };
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
      const asked = await routes.quotes.ask(
        tickersOf(outcomeIds),
        (tickers, request) => client.listQuotes(tickers, context.signal, request),
        { size: MAX_TICKERS },
      );
      const nowMs = context.now();
      const batch = emptyBatch<PriceRecord>();
      for (const { members, answer } of asked.answers) {
        const part = parsePrices(answer.rows, observedAtMs(answer, nowMs), new Set(members));
        report.unknowns(part.unknowns);
        report.received('prices', answer.rows.length, part, 2);
        batch.records.push(...part.records);
        batch.rejected.push(...part.rejected);
        batch.skipped.push(...part.skipped);
      }
      return requested('prices', outcomeIds, batch, asked, nowMs);
    },

    sweepPrices: createPriceSweep(client, { ...SWEEP_SETTINGS, ...options.prices }, report),

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      const asked = await readBooks(tickersOf(outcomeIds), context.signal);
      const nowMs = context.now();
      const parsed = emptyBatch<BookRecord>();
      let received = 0;
      for (const { members, answer } of asked.answers) {
        if (answer === undefined) continue;
        const part = parseBooks(answer.rows, observedAtMs(answer, nowMs), new Set(members));
        parsed.records.push(...part.records);
        parsed.rejected.push(...part.rejected);
        parsed.skipped.push(...part.skipped);
        received += answer.rows.length;
      }
      const known = await skipUnknown(parsed, context.signal);
      report.received('books', received, known, 2);
      if (known.records.length === 0 && known.fault) throw known.fault;
      return requested('books', outcomeIds, known, asked, nowMs);
    },

    close: () => client.close(),
  };
}
