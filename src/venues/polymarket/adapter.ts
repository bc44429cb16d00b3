import type { MarketRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { isOfHost, VenueError } from '../errors.ts';
import type { VenueHttpSettings } from '../http/http.ts';
import { createPageReader, isOfRow } from '../http/page-reader.ts';
import type { VenueObserver } from '../observer.ts';
import type {
  Batch,
  CallContext,
  HistoryPage,
  HistoryRequest,
  MarketPage,
  RejectedRecord,
  TapeContext,
  TapePage,
  VenueAdapter,
} from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { createReport } from '../report.ts';
import { createHistoryTurns } from '../walk-back.ts';
import {
  createPolymarketClient,
  type MarketsAnswer,
  type MarketsQuery,
  PER_SECOND,
  POLYMARKET,
  type PolymarketClient,
  type PolymarketUrls,
  type TradesQuery,
} from './client.ts';
import { createBookReader, MAX_BOOKS } from './fetch-books.ts';
import { findMarkets, MAX_CONDITION_IDS } from './fetch-markets.ts';
import { createResolutionReader } from './fetch-resolutions.ts';
import { parseMarkets } from './parse-market.ts';
import { identifyTrades } from './parse-trade.ts';
import { readHistoryPage } from './walk-history.ts';
import {
  advance,
  afterFailure,
  afterRefusal,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  openWalk,
  switchListing,
  withoutPhase,
} from './walk-markets.ts';
import { readTradePage, type TradeWalkSettings } from './walk-trades.ts';

/**
 * The client allows 40 requests per second to the CLOB, and a batch of 500 books takes 0.2 s or more: eight at once use the rate. A batch
 * is some megabytes of JSON, so more at once would cost memory without a gain.
 */
const FETCHES_AT_ONCE = 8;

interface PolymarketOptions {
  urls: PolymarketUrls;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
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
  pagesPerCall: 4,
  overlapSeconds: 120,
  // Of four pages each, of which three are new.
  overlapReads: 3,
  initialLookbackSeconds: 6 * 3_600,
  longGapSeconds: 300,
  headEveryMs: 1_000,
};

/** Polymarket over its three public hosts. Position formats are private to this folder. */
export function createPolymarketAdapter(options: PolymarketOptions): VenueAdapter {
  const { observer } = options;
  const client = createPolymarketClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };
  const takeHistoryTurn = createHistoryTurns(POLYMARKET, options.urls.data, PER_SECOND.data, options.http);

  const report = createReport(POLYMARKET, observer);
  const readPage = createPageReader();
  const books = createBookReader(client, report);
  const withProposals = createResolutionReader(client, report);
  const lookUps = client.members('gamma', 'markets_by_id');

  return {
    venue: POLYMARKET,
    ...VENUES.polymarket,
    maxOutcomesPerFetch: MAX_BOOKS,
    maxMarketsPerFetch: MAX_CONDITION_IDS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const nowMs = context.now();
      const walk = openWalk(position, nowMs, marketSettings);
      const step = await listMarkets(client, readPage, walk, marketSettings, context.signal);
      report.truncated('markets', step.skipped);
      if (step.answer === undefined) {
        const rejected = step.failed ? [step.failed] : [];
        const batch = report.counted('markets', rejected.length, { records: [], rejected });
        return { ...batch, position: step.walk, more: step.walk.phases.length > 0 };
      }
      const { rows, ageMs } = step.answer;
      const batch = report.counted('markets', rows.length, parseMarkets(rows, nowMs, ageMs));
      const next = advance(step.walk, step.answer, nowMs, marketSettings);
      report.truncated('markets', next.cutShort);
      return {
        ...batch,
        records: await withProposals(batch.records, context),
        position: next.position,
        more: next.position.phases.length > 0,
        ...(next.sweep && { sweep: { ...next.sweep, alsoListed: idsOf(batch.rejected) } }),
      };
    },

    async pollTrades(position: unknown, context: TapeContext): Promise<TapePage> {
      const list = (query: TradesQuery) => client.listTrades(query, context.signal);
      const { rows, truncated, ...page } = await readTradePage(position, context.now(), tradeSettings, list, context);
      report.truncated('trades', truncated);
      return { ...report.counted('trades', rows.length, identifyTrades(rows)), ...page };
    },

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const { rows, ...page } = await readHistoryPage(
        request,
        position,
        context.now(),
        tradeSettings,
        async (query) => {
          await takeHistoryTurn(context.signal);
          return client.listTrades(query, context.signal);
        },
      );
      report.truncated('trades', page.truncated);
      return { ...report.counted('trades', rows.length, identifyTrades(rows)), ...page };
    },

    async fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>> {
      const { rows, batch, ...unread } = await findMarkets(client, lookUps, marketIds, context);
      const records = await withProposals(batch.records, context);
      return { ...report.counted('markets', rows, batch), records, ...unread };
    },

    fetchPrices: books.fetchPrices,
    fetchesAtOnce: FETCHES_AT_ONCE,
    mirrorsOutcomes: true,

    fetchBooks: books.fetchBooks,

    close: () => client.close(),
  };
}

interface MarketStep {
  walk: MarketPosition;
  answer?: MarketsAnswer;
  skipped?: string;
  /** Stands for a market that fails in the listing. */
  failed?: RejectedRecord;
}

/** One page. It goes around a listing that is gone, an expired cursor, an unknown order, and a market that fails. */
async function listMarkets(
  client: PolymarketClient,
  readPage: ReturnType<typeof createPageReader>,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  signal: AbortSignal,
): Promise<MarketStep> {
  try {
    const query = nextQuery(walk, settings);
    const { cursor: _, offset: __, ...first } = query;
    const page = await readPage({
      size: query.limit,
      isFirst: walk.phases[0]?.page === 0,
      read: (limit, batch) => client.listMarkets({ ...query, limit }, signal, batch),
      probe: (batch) => client.listMarkets({ ...first, closed: !query.closed, limit: 1 }, signal, batch),
    });
    if ('answer' in page) return { walk, answer: page.answer };
    const isByOffset = walk.listing === 'offset' || (await servesOffsets(client, first, signal));
    return failedStep(walk, page.failure, isByOffset);
  } catch (error) {
    const statusCode = error instanceof VenueError ? (error.statusCode ?? 0) : 0;
    if (walk.listing === 'keyset' && [404, 405, 410].includes(statusCode)) {
      return listMarkets(client, readPage, switchListing(walk, 'offset'), settings, signal);
    }
    const without = statusCode === 400 || statusCode === 422 ? afterRefusal(walk) : undefined;
    if (without === undefined) throw error;
    return {
      walk: without,
      skipped: `the venue refused a page of the ${walk.phases[0]?.name} markets: HTTP ${statusCode}`,
    };
  }
}

/**
 * The step past a market that fails. Only a page by offset can begin behind it: a walk by cursor begins its phase again by offset, where
 * the venue still has that listing.
 */
function failedStep(walk: MarketPosition, { message }: VenueError, isByOffset: boolean): MarketStep {
  const { name, offset } = walk.phases[0] ?? {};
  if (walk.listing === 'keyset' && isByOffset) {
    const skipped = `${name} markets: ${message} for the market behind ${offset} others; the walk begins again by offset`;
    return { walk: switchListing(walk, 'offset'), skipped };
  }
  const place = `${name} markets, place ${offset}`;
  const rejection = { reason: 'page_unavailable', detail: `${place}: ${message}` };
  const failed = rejectRecord('markets', { phase: name, place: offset }, rejection, place);
  return { walk: walk.listing === 'offset' ? afterFailure(walk) : withoutPhase(walk), failed };
}

async function servesOffsets(
  client: PolymarketClient,
  query: Omit<MarketsQuery, 'cursor' | 'offset'>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.listMarkets({ ...query, listing: 'offset', limit: 1 }, signal, { isPart: true });
    return true;
  } catch (error) {
    if (!(error instanceof VenueError) || isOfHost(error)) throw error;
    return isOfRow(error);
  }
}

/** A rejected market is listed too. */
function idsOf(rejected: readonly RejectedRecord[]): string[] {
  return rejected.map((each) => each.recordId).filter((id) => id !== undefined);
}
