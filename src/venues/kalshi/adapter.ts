import type { BookRecord, MarketRecord, PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { isHttpStatus, VenueError } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import { readingSize } from '../http/answer-memory.ts';
import { createBatchRoute } from '../http/batch-route.ts';
import type { VenueHttpSettings } from '../http/http.ts';
import { type Asked, joinAnswers, rejectMembers, unreadOf } from '../http/member-batches.ts';
import { createPageReader } from '../http/page-reader.ts';
import type { VenueObserver } from '../observer.ts';
import { withTime } from '../parsed-batch.ts';
import type {
  Batch,
  CallContext,
  HistoryPage,
  HistoryRequest,
  MarketPage,
  TapeContext,
  TapePage,
  VenueAdapter,
} from '../port.ts';
import { createReport } from '../report.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import { createHistoryTurns } from '../walk-back.ts';
import { createKalshiClient, KALSHI, type KalshiClient, type Parameters, REQUESTS_PER_SECOND } from './client.ts';
import { createEventDirectory } from './event-directory.ts';
import { createFeeChangeDirectory } from './fee-changes.ts';
import type { KalshiKey } from './feed/key.ts';
import { createUnknownMarketFilter, findMarkets, listMarkets } from './fetch-markets.ts';
import { fieldOf } from './models.ts';
import { parseBooks } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { parsePrices } from './parse-price.ts';
import { collectTrades } from './parse-trade.ts';
import { createSeriesDirectory } from './series-directory.ts';
import { createPriceSweep, type SweepSettings } from './sweep-prices.ts';
import { tickersOf } from './tickers.ts';
import { type HistoryStep, readHistoryPage } from './walk-history.ts';
import { advance, type MarketWalkSettings, openWalk } from './walk-markets.ts';
import { readTradePage, type TradeWalkSettings } from './walk-trades.ts';

interface KalshiOptions {
  /** Everything before `/markets`: `https://external-api.kalshi.com/trade-api/v2`. */
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
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
  overlapReads: 8,
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
    takeTurn: createHistoryTurns(KALSHI, options.url, REQUESTS_PER_SECOND, options.http),
  });
  const report = createReport(KALSHI, observer);
  const readPage = createPageReader();
  const routes = { quotes: client.members('quotes'), archived: client.members('archived_markets') };
  const skipUnknown = createUnknownMarketFilter(client, routes.quotes, MAX_TICKERS);
  const readBooks = createBookReader(client, MAX_TICKERS);
  const directories = {
    events: createEventDirectory(client, (detail) => report.truncated('markets', detail)),
    series: createSeriesDirectory(client, (detail) => report.truncated('markets', detail)),
    fees: createFeeChangeDirectory(client, (detail) => report.truncated('markets', detail)),
  };

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
        const batch = report.counted('markets', rejected.length, { records: [], rejected });
        return { ...batch, position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { rows } = step.answer;
      const batch = report.counted('markets', rows.length, parseMarkets(rows, context.now()));
      const next = advance(step.walk, step.answer, marketSettings);
      report.truncated('markets', next.cutShort);
      const page = { ...batch, position: next.position, more: next.position.phases.length > 0 };
      if (next.sweep === undefined) return page;
      const alsoListed = batch.rejected.flatMap((each) => each.recordId ?? []);
      return { ...page, sweep: { ...next.sweep, ...(alsoListed.length > 0 && { alsoListed }) } };
    },

    async fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>> {
      const asked = await findMarkets(client, { directories, ...routes, size: MAX_TICKERS }, marketIds, context);
      const { rows } = asked;
      const parsed = parseMarkets(rows, context.now());
      const refused = rejectMembers('markets', asked.refused, context.now());
      parsed.rejected.push(...refused);
      const batch = report.counted('markets', rows.length + refused.length, parsed);
      if (rows.length === 0 && asked.fault) throw asked.fault;
      return { ...batch, ...unreadOf(asked) };
    },

    async pollTrades(position: unknown, context: TapeContext): Promise<TapePage> {
      const list = (parameters: Parameters) => client.listTrades(parameters, context.signal);
      const { rows, truncated, ...page } = await readTradePage(position, context.now(), tradeSettings, list, context);
      report.truncated('trades', truncated);
      return { ...report.counted('trades', rows.length, collectTrades(rows)), ...page };
    },

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const { rows, ...page } = await readHistory(request, position, context);
      report.truncated('trades', page.truncated);
      return { ...report.counted('trades', rows.length, collectTrades(rows)), ...page };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      const asked = await routes.quotes.ask(
        tickersOf(outcomeIds),
        (tickers, request) => client.listQuotes(tickers, context.signal, request),
        { size: MAX_TICKERS },
      );
      const nowMs = context.now();
      const { rows, batch } = joinAnswers('prices', asked, nowMs, (answer, tickers) => ({
        rows: answer.rows.length,
        part: parsePrices(answer.rows, observedAtMs(answer, nowMs), tickers),
      }));
      return {
        ...report.requested('prices', report.counted('prices', rows, batch, 2), outcomeIds),
        ...unreadOf(asked),
      };
    },

    sweepPrices: createPriceSweep(client, { ...SWEEP_SETTINGS, ...options.prices }, report),

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      const asked = await readBooks(tickersOf(outcomeIds), context.signal);
      const nowMs = context.now();
      const { rows, batch } = joinAnswers('books', asked, nowMs, ({ reading, observedAt }) => ({
        rows: reading.rows,
        part: withTime(reading.books, observedAtMs({ observedAt }, nowMs)),
      }));
      const known = report.counted('books', rows, await skipUnknown(batch, context.signal), 2);
      if (known.records.length === 0 && known.fault) throw known.fault;
      return { ...report.requested('books', known, outcomeIds), ...unreadOf(asked) };
    },

    close: () => client.close(),
  };
}

/** Single book requests in flight at once, where the batch route is unusable. */
const BOOKS_AT_ONCE = 8;

interface BooksAnswer {
  reading: ReturnType<typeof readBookRows>;
  observedAt: number;
}

/** The books of an answer to a request for these tickers, with the time of the answer at 0. */
function readBookRows(rows: readonly unknown[], tickers: readonly string[]) {
  const books = parseBooks(rows, 0, new Set(tickers));
  const levels = books.records.reduce((sum, { bids, asks }) => sum + bids.length + asks.length, 0);
  return {
    size: readingSize(rows.length, books.rejected) + Math.ceil(levels / LEVELS_OF_A_ROW),
    rows: rows.length,
    books,
  };
}

/** Levels of a book that take the memory of one raw record of another route. */
const LEVELS_OF_A_ROW = 5;

/** Answers with books; undefined for a market that the venue does not know. Throws VenueError. */
type ReadBooks = (tickers: readonly string[], signal: AbortSignal) => Promise<Asked<BooksAnswer | undefined>>;

/** Reads books by the batch route, or one by one where that route is absent or requires a key; `size` is the limit of the batch route. */
function createBookReader(client: Pick<KalshiClient, 'readBooks' | 'getBook' | 'members'>, size: number): ReadBooks {
  const books = client.members('books');
  const book = client.members('book');
  const ask = createBatchRoute({
    isCertain: (error) => isHttpStatus(error, [401, 403, 404, 405]),
    isPossible: (error) => isHttpStatus(error, [400]),
  });
  return (tickers, signal) =>
    ask<BooksAnswer>(tickers, {
      many: {
        batches: books,
        size,
        get: (each, request) => client.readBooks(each, signal, request, (rows) => readBookRows(rows, each)),
      },
      one: {
        batches: book,
        atOnce: BOOKS_AT_ONCE,
        async get(ticker, request) {
          try {
            const { rows, observedAt } = await client.getBook(ticker, signal, request);
            return { reading: readBookRows(rows, [ticker]), observedAt };
          } catch (error) {
            if (isHttpStatus(error, [404])) return undefined;
            throw error;
          }
        },
      },
    });
}

/** The cutoff moves by days; the walk allows for more than this age. */
const CUTOFF_MAX_AGE_MS = 3_600_000;

/** The next page of a market's trades; see `pollHistory` of the port. */
type ReadHistory = (request: HistoryRequest, position: unknown, context: CallContext) => Promise<HistoryStep>;

function createHistoryReader(
  client: KalshiClient,
  settings: { pageSize: number; takeTurn(signal: AbortSignal): Promise<void> },
): ReadHistory {
  const { takeTurn } = settings;
  let known: { atMs: number; second: number | undefined } | undefined;

  async function cutoffSecond({ signal, now }: CallContext): Promise<number | undefined> {
    const ageMs = now() - (known?.atMs ?? Number.NEGATIVE_INFINITY);
    if (known === undefined || ageMs < 0 || ageMs >= CUTOFF_MAX_AGE_MS) {
      await takeTurn(signal);
      known = { atMs: now(), second: await readCutoff(client, signal) };
    }
    return known.second;
  }

  return (request, position, context) =>
    readHistoryPage(request, position, context.now(), settings, {
      async list(route, parameters) {
        await takeTurn(context.signal);
        const query = { ticker: request.marketId, ...parameters };
        return route === 'live'
          ? client.listTrades(query, context.signal)
          : client.listArchivedTrades(query, context.signal);
      },
      cutoffSecond: () => cutoffSecond(context),
      async hasBegunBefore(second) {
        await takeTurn(context.signal);
        const { records } = parseMarkets((await client.listQuotes([request.marketId], context.signal)).rows);
        const market = records.find((record) => record.marketId === request.marketId);
        const beganAtMs = market?.openAtMs ?? market?.createdAtMs;
        return beganAtMs === undefined || beganAtMs < second * 1000;
      },
    });
}

/**
 * Undefined without an archive.
 * @throws VenueError, also for an answer without the time: a walk without a cutoff ends above the archive
 */
async function readCutoff(client: KalshiClient, signal: AbortSignal): Promise<number | undefined> {
  let answer: unknown;
  try {
    answer = await client.getCutoff(signal);
  } catch (error) {
    if (isHttpStatus(error, [404])) return undefined;
    throw error;
  }
  const cutoffMs = parseVenueTimeMs(fieldOf(answer, 'trades_created_ts'));
  if (cutoffMs !== undefined) return Math.ceil(cutoffMs / 1000);
  throw new VenueError(KALSHI, 'invalid_payload', 'historical cutoff: no time', { retryable: true });
}
