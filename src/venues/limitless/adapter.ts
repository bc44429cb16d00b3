import type { BookRecord, MarketRecord, PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { isHttpStatus } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import type { VenueHttpSettings } from '../http/http.ts';
import { type Asked, joinAnswers, unreadOf } from '../http/member-batches.ts';
import type { VenueObserver } from '../observer.ts';
import { addPart, emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { Batch, CallContext, HistoryPage, HistoryRequest, MarketPage, TapePage, VenueAdapter } from '../port.ts';
import { createReport } from '../report.ts';
import { createHistoryTurns } from '../walk-back.ts';
import {
  AT_ONCE,
  createLimitlessClient,
  LIMITLESS,
  type LimitlessClient,
  type ListedPage,
  MAX_EVENTS,
  MAX_LISTED,
  REQUESTS_PER_SECOND,
  rejectSkipped,
} from './client.ts';
import { createMarketDirectory, createMarketPages } from './fetch-markets.ts';
import { listingSizeAt } from './listing.ts';
import { type OutcomeIds, SLUG } from './outcome-ids.ts';
import { parseBooks } from './parse-book.ts';
import { parseMarkets } from './parse-market.ts';
import { parsePrices } from './parse-price.ts';
import { identifyTrades } from './parse-trade.ts';
import { readHistoryPage } from './walk-history.ts';
import { advance, type MarketWalkSettings, nextQuery, openWalk, reasonToStop } from './walk-markets.ts';
import { readTradePage, type TradeWalkSettings } from './walk-trades.ts';

interface LimitlessOptions {
  /** Everything before `/markets`: `https://api.limitless.exchange`. */
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<TradeWalkSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = { pageSize: MAX_LISTED, closedEveryMs: 5 * 60_000 };
const TRADE_SETTINGS: TradeWalkSettings = {
  listingPageSize: MAX_LISTED,
  pageSize: MAX_EVENTS,
  pagesPerCall: 4,
  feedsPerCall: 8,
  roundEveryMs: 10_000,
  overlapMs: 120_000,
  initialLookbackMs: 6 * 3_600_000,
};

/** Each is a request of its own, and two for an option of a group: some seconds' worth of the budget. */
const MAX_MARKETS = 10;
/** The whole venue: one call of the price poll is one walk over the listing. */
const MAX_PRICES = 5_000;
/** A market each: some seconds' worth of the budget, so that a poll ends within its deadline. */
const MAX_BOOKS = 40;

/** Limitless over its REST API, without a key. Position formats are private to this folder. */
export function createLimitlessAdapter(options: LimitlessOptions): VenueAdapter {
  const { observer } = options;
  const client = createLimitlessClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };
  const directory = createMarketDirectory(client, marketSettings.pageSize);
  const readMarketPages = createMarketPages(client, directory);
  const readBooks = createBookReader(client);
  const takeHistoryTurn = createHistoryTurns(LIMITLESS, options.url, REQUESTS_PER_SECOND, options.http);
  const report = createReport(LIMITLESS, observer);
  const readPrices = createPriceReader(client, marketSettings.pageSize, (answer, batch) => {
    directory.learn(answer.rows);
    return report.counted('prices', answer.rows.length + (answer.skipped?.length ?? 0), batch, 2);
  });

  return {
    venue: LIMITLESS,
    ...VENUES.limitless,
    maxOutcomesPerFetch: MAX_PRICES,
    maxBooksPerFetch: MAX_BOOKS,
    pricesWithoutBooks: true,
    maxMarketsPerFetch: MAX_MARKETS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const nowMs = context.now();
      const at = openWalk(position, nowMs, marketSettings);
      const answer = await client.listMarkets(nextQuery(at), context.signal);
      directory.learn(answer.rows);
      const parsed = parseMarkets(answer.rows, nowMs, answer.ageMs);
      const alsoListed = parsed.rejected.flatMap(({ recordId = '' }) => (SLUG.test(recordId) ? [recordId] : []));
      const unlisted = rejectSkipped('markets', answer);
      parsed.rejected.push(...unlisted);
      const batch = report.counted('markets', answer.rows.length + unlisted.length, parsed);
      const { cutShort, sweep, ...next } = advance(at, answer, nowMs, marketSettings);
      report.truncated('markets', cutShort);
      return { ...batch, ...next, sweep: { ...sweep, ...(alsoListed.length > 0 && { alsoListed }) } };
    },

    async fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>> {
      const slugs = [...new Set(marketIds)].filter((id) => SLUG.test(id));
      const { answers, failed, ...rest } = await readMarketPages(slugs, context.signal);
      const batch = { ...emptyBatch<MarketRecord>(), rejected: failed };
      for (const { row, ageMs } of answers) addPart(batch, parseMarkets([row], context.now(), ageMs));
      return { ...report.counted('markets', answers.length + failed.length, batch), ...unreadOf(rest) };
    },

    async pollTrades(position: unknown, context: CallContext): Promise<TapePage> {
      const { rows, unread, truncated, ...page } = await readTradePage(position, context.now(), tradeSettings, {
        async listMarkets(query) {
          const answer = await client.listMarkets(query, context.signal);
          directory.learn(answer.rows);
          return answer;
        },
        listEvents: (slug, query) => client.listEvents(slug, query, context.signal),
      });
      report.truncated('trades', truncated);
      const parsed = identifyTrades(rows);
      parsed.skipped.push(...Array(unread).fill('pool'));
      const batch = report.counted('trades', rows.length + unread, parsed);
      const { round, queue, roundAtMs, markets } = page.position;
      const isEnd = round === undefined && queue.length === 0 && page.fault === undefined;
      // A feed that failed, or that a cache answered from before the change, has left the queue, although its trades were not read.
      const behind = Object.values(markets).filter(({ c, r }) => r < c);
      const caughtUpMs = Math.min(roundAtMs, ...behind.map(({ r }) => r));
      return { ...batch, ...page, ...(isEnd && caughtUpMs > 0 && { caughtUpMs }) };
    },

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const { rows, ...page } = await readHistoryPage(
        request,
        position,
        context.now(),
        tradeSettings,
        async (query) => {
          await takeHistoryTurn(context.signal);
          return client.listEvents(request.marketId, query, context.signal);
        },
      );
      report.truncated('trades', page.truncated);
      return { ...report.counted('trades', rows.length, identifyTrades(rows)), ...page };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      return report.requested('prices', await readPrices(outcomeIds, context), outcomeIds);
    },

    async fetchBooks(outcomeIds: readonly string[], context: CallContext): Promise<Batch<BookRecord>> {
      const asked = await readBooks(await directory.placesOf(outcomeIds, context), context.signal);
      const nowMs = context.now();
      const { rows, batch } = joinAnswers('books', asked, nowMs, (answer) => ({
        rows: 1,
        part: parseBooks([answer.row], observedAtMs(answer, nowMs)),
      }));
      return { ...report.requested('books', report.counted('books', rows, batch, 2), outcomeIds), ...unreadOf(asked) };
    },

    close: () => client.close(),
  };
}

interface Place {
  slug: string;
  outcomeIds: OutcomeIds;
}

interface BookAnswer {
  /** The book of YES with the `outcomeIds` of its market. */
  row: unknown;
  observedAt: number;
}

/** The books of markets, one request each. Unknown ones have an empty answer. Throws VenueError when no book is served. */
type ReadBooks = (places: readonly Place[], signal: AbortSignal) => Promise<Asked<BookAnswer | undefined>>;

function createBookReader(client: Pick<LimitlessClient, 'getBook' | 'members'>): ReadBooks {
  const books = client.members('book');
  return (places, signal) => {
    const placeOf = new Map(places.map((place) => [place.slug, place]));
    return books.ask(
      [...placeOf.keys()],
      async ([slug = ''], request) => {
        try {
          const { json, observedAt } = await client.getBook(slug, signal, request);
          const isObject = json !== null && typeof json === 'object' && !Array.isArray(json);
          return { row: isObject ? { ...json, outcomeIds: placeOf.get(slug)?.outcomeIds } : json, observedAt };
        } catch (error) {
          // Markets that closed since the listing named them, and markets without a book.
          if (isHttpStatus(error, [400, 404])) return undefined;
          throw error;
        }
      },
      { size: 1, atOnce: AT_ONCE },
    );
  };
}

/** Half the deadline of a price poll, so that the pages read so far are stored. */
const TURN_MS = 25_000;

type ReadPrices = (outcomeIds: readonly string[], context: CallContext) => Promise<Batch<PriceRecord>>;

/**
 * Reads prices from the listing, 25 markets a request: one request per book would take ten times as long. A call goes on at the page where
 * the last one ran out of time or failed, so every page has its turn at any request rate. Only the process keeps this place; its loss
 * costs a walk. `takePage` gets each page with its batch, and counts it. The result has every price on the pages, also of other outcomes. A
 * call throws VenueError when its first page fails.
 */
function createPriceReader(
  client: Pick<LimitlessClient, 'listMarkets'>,
  pageSize: number,
  takePage: (answer: ListedPage, batch: ParsedBatch<PriceRecord>) => Batch<PriceRecord>,
): ReadPrices {
  const start = (nowMs: number) => ({ page: 1, limit: listingSizeAt(pageSize, nowMs) });
  let next: ReturnType<typeof start> | undefined;

  return async (outcomeIds, { signal, now }) => {
    const missing = new Set(outcomeIds);
    const read: Batch<PriceRecord> = { records: [], rejected: [] };
    const enoughAtMs = performance.now() + TURN_MS;
    let at = next ?? start(now());
    let pages = 0;
    while (missing.size > 0 && performance.now() < enoughAtMs) {
      let answer: ListedPage;
      try {
        answer = await client.listMarkets(at, signal);
      } catch (error) {
        if (pages === 0 || signal.aborted) throw error;
        return read;
      }
      if (answer.isEmpty || reasonToStop(at, answer) !== undefined) {
        next = undefined;
        return read;
      }
      const batch = parsePrices(answer.rows, observedAtMs(answer, now()));
      batch.rejected.push(...rejectSkipped('prices', answer));
      const { records, rejected } = takePage(answer, batch);
      read.records.push(...records);
      read.rejected.push(...rejected);
      for (const { outcomeId } of records) missing.delete(outcomeId);
      pages += 1;
      at = { ...at, page: at.page + 1 };
      next = at;
    }
    if (missing.size === 0) next = undefined;
    return read;
  };
}
