import type { MarketRecord, PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { DAY_MS } from '../../domain/values/durations.ts';
import { isOfHost, VenueError } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import { readingSize } from '../http/answer-memory.ts';
import type { BatchRequest, VenueHttpSettings } from '../http/http.ts';
import { type Asked, joinAnswers, unreadOf } from '../http/member-batches.ts';
import { createPageReader } from '../http/page-reader.ts';
import type { VenueObserver } from '../observer.ts';
import { withTime } from '../parsed-batch.ts';
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
import { refuseUnreadable, rejectRecord } from '../rejection.ts';
import { createReport } from '../report.ts';
import { createHistoryTurns } from '../walk-back.ts';
import { type BetsQuery, createManifoldClient, MANIFOLD, type ManifoldClient, PER_SECOND } from './client.ts';
import { partsOfOutcomeId, VENUE_ID } from './outcome-ids.ts';
import { contractIdOf, parseMarkets } from './parse-market.ts';
import { countProbs, parseProbs } from './parse-price.ts';
import { betTimeMs, parseBets } from './parse-trade.ts';
import { readHistoryPage } from './walk-history.ts';
import {
  advance,
  afterFailure,
  closeSweep,
  hasMore,
  isListing,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  openWalk,
  withoutPending,
  withoutSweep,
} from './walk-markets.ts';
import { type BetWalkSettings, readBetPage } from './walk-trades.ts';

interface ManifoldOptions {
  /** With the version path: `https://api.manifold.markets/v0`. */
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<BetWalkSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = {
  pageSize: 1_000,
  fullWalkEveryMs: 2 * 3_600_000,
  answersOfResolvedMs: 30 * DAY_MS,
  maxRecentPages: 20,
  answersPerCall: 20,
};
const TRADE_SETTINGS: BetWalkSettings = {
  pageSize: 1_000,
  overlapMs: 120_000,
  overlapReads: 8,
  initialLookbackMs: 6 * 3_600_000,
};

/** The limit of `GET /market-probs`, contracts. */
const MAX_PROBS = 100;
const MAX_OUTCOMES = 1_000;
/** Each is a request of its own: two seconds' worth of the budget. */
const MAX_MARKETS = 16;

/** Manifold, play money. Position formats are private to this folder. */
export function createManifoldAdapter(options: ManifoldOptions): VenueAdapter {
  const { observer } = options;
  const client = createManifoldClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };

  const takeHistoryTurn = createHistoryTurns(MANIFOLD, options.url, PER_SECOND, options.http);
  const report = createReport(MANIFOLD, observer);
  const readPage = createPageReader();
  const readMarketPages = createMarketPages(client);
  const probs = client.members('market_probs');

  function countedMarkets(rows: readonly unknown[], failed: readonly RejectedRecord[], nowMs: number) {
    const parsed = parseMarkets(rows, nowMs);
    parsed.rejected.push(...failed);
    return report.counted('markets', rows.length + failed.length, parsed);
  }

  /** The page of these raw markets; markets without a record are on the venue's list too. */
  function marketPage(
    rows: readonly unknown[],
    failed: RejectedRecord[],
    at: MarketPosition,
    nowMs: number,
  ): MarketPage {
    const batch = countedMarkets(rows, failed, nowMs);
    const { position, sweep } = closeSweep(at);
    const page = { ...batch, position, more: hasMore(position) };
    if (sweep === undefined) return page;
    const isRecord = new Set(batch.records.map((record) => record.marketId));
    const alsoListed = rows
      .flatMap((row) => contractIdOf(row) ?? [])
      .filter((id) => VENUE_ID.test(id) && !isRecord.has(id));
    return { ...page, sweep: { ...sweep, ...(alsoListed.length > 0 && { alsoListed }) } };
  }

  return {
    venue: MANIFOLD,
    ...VENUES.manifold,
    maxOutcomesPerFetch: MAX_OUTCOMES,
    maxMarketsPerFetch: MAX_MARKETS,

    async pollMarkets(position: unknown, context: CallContext): Promise<MarketPage> {
      const nowMs = context.now();
      const at = openWalk(position, nowMs, marketSettings);
      if (!isListing(at)) {
        const contractIds = at.pending.slice(0, marketSettings.answersPerCall);
        try {
          const { rows, unknown, failed, unread, fault } = await readMarketPages(contractIds, context.signal);
          const rejected = [...failed, ...unknown.map((id) => unavailable(id, 'listed, but unknown by its id'))];
          const deferred = [...unread, ...failed.flatMap(({ recordId }) => recordId ?? [])];
          const page = marketPage(rows, rejected, withoutPending(at, contractIds.length, deferred), nowMs);
          return fault ? { ...page, fault } : page;
        } catch (error) {
          if (!(error instanceof VenueError) || isOfHost(error)) throw error;
          const page = marketPage([], [], withoutPending(at, contractIds.length, contractIds), nowMs);
          return { ...page, isIdle: true, fault: error };
        }
      }
      const query = nextQuery(at, marketSettings);
      const page = await readPage({
        size: query.limit,
        isFirst: at.walk.page === 0,
        // The page repeats the markets that were seen before: a smaller one has a new market beside them.
        read: (limit, batch) => {
          const narrowed = { ...query, limit: Math.min(query.limit, limit + at.walk.seen.length) };
          return client.listMarkets(narrowed, context.signal, batch);
        },
        probe: (batch) => {
          const sort = query.sort === 'created-time' ? 'updated-time' : 'created-time';
          return client.listMarkets({ sort, limit: 1 }, context.signal, batch);
        },
      });
      if ('failure' in page) {
        const detail = `${at.walk.kind} walk, behind ${at.walk.page} pages: ${page.failure.message} for the next market alone`;
        return marketPage([], [unavailable(`${at.walk.kind} walk`, detail)], afterFailure(at), nowMs);
      }
      const rows = page.answer;
      const next = advance(page.isNarrowed ? withoutSweep(at) : at, rows, nowMs, marketSettings);
      report.truncated('markets', next.cutShort);
      return marketPage(next.fresh, [], next.position, nowMs);
    },

    async fetchMarkets(marketIds: readonly string[], context: CallContext): Promise<Batch<MarketRecord>> {
      const contractIds = [...new Set(marketIds)].filter((id) => VENUE_ID.test(id));
      const { rows, failed, ...rest } = await readMarketPages(contractIds, context.signal);
      return { ...countedMarkets(rows, failed, context.now()), ...unreadOf(rest) };
    },

    async pollTrades(position: unknown, context: TapeContext): Promise<TapePage> {
      const nowMs = context.now();
      const list = (query: BetsQuery) => client.listBets(query, context.signal);
      const { rows, reportedMs, truncated, ...page } = await readBetPage(position, nowMs, tradeSettings, list, context);
      let bets = parseBets(rows, nowMs, context.isStored);
      // A changed format shows in known bets too: without them, a few bad bets would pass as single faults.
      const isSuspect = bets.rejected.length > 0 && bets.rejected.length + (bets.known ?? 0) === rows.length;
      if (isSuspect) bets = parseBets(rows, nowMs);
      const { rejected: all, ...parsed } = bets;
      refuseUnreadable(MANIFOLD, 'bet', rows.length, all);
      report.truncated('trades', truncated);
      const rejected = freshRejections(rows, reportedMs, nowMs, all);
      parsed.skipped.push(...Array(all.length - rejected.length).fill('rejected_before'));
      const batch = report.counted('trades', rows.length, { ...parsed, rejected });
      return { ...batch, ...page };
    },

    async pollHistory(request: HistoryRequest, position: unknown, context: CallContext): Promise<HistoryPage> {
      const nowMs = context.now();
      const { rows, ...page } = await readHistoryPage(request, position, nowMs, tradeSettings, async (query) => {
        await takeHistoryTurn(context.signal);
        return client.listBets(query, context.signal);
      });
      const parsed = parseBets(rows, nowMs);
      refuseUnreadable(MANIFOLD, 'bet', rows.length, parsed.rejected);
      report.truncated('trades', page.truncated);
      return { ...report.counted('trades', rows.length, parsed), ...page };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      const contractIds = [...new Set(outcomeIds.flatMap((id) => partsOfOutcomeId(id)?.contractId ?? []))];
      const ask = (ids: readonly string[], request: BatchRequest) =>
        client.readProbs(ids, context.signal, request, readProbs);
      const asked = await probs.ask(contractIds, ask, { size: MAX_PROBS });
      const nowMs = context.now();
      const { rows, batch } = joinAnswers('prices', asked, nowMs, (answer) => ({
        rows: answer.reading.rows,
        part: withTime(answer.reading.prices, observedAtMs(answer, nowMs)),
      }));
      return { ...report.requested('prices', report.counted('prices', rows, batch), outcomeIds), ...unreadOf(asked) };
    },

    fetchBooks: async () => ({ records: [], rejected: [] }),

    close: () => client.close(),
  };
}

/** An answer, with its time at 0. */
function readProbs(probs: Readonly<Record<string, unknown>>) {
  const rows = countProbs(probs);
  const prices = parseProbs(probs, 0);
  return { size: readingSize(rows, prices.rejected), rows, prices };
}

/** Rejections within the overlap were reported when the bets were first read. */
function freshRejections(
  rows: readonly unknown[],
  reportedMs: number,
  nowMs: number,
  rejected: readonly RejectedRecord[],
): RejectedRecord[] {
  if (rejected.length === 0) return [];
  const fresh = rows.filter((row) => (betTimeMs(row, nowMs) ?? Number.POSITIVE_INFINITY) > reportedMs);
  return parseBets(fresh, nowMs).rejected;
}

/** Market pages in flight at once: few, so that prices and trades get their share of the budget. */
const PAGES_AT_ONCE = 2;

interface MarketPages extends Pick<Asked<unknown>, 'unread' | 'fault'> {
  rows: unknown[];
  /** Contracts that the venue does not know. */
  unknown: string[];
  /** Contracts whose pages the venue cannot serve. */
  failed: RejectedRecord[];
}

type ReadMarketPages = (contractIds: readonly string[], signal: AbortSignal) => Promise<MarketPages>;

/** The pages of markets. One whose page fails is rejected, so it never delays the catalog. Throws VenueError when every page fails. */
function createMarketPages(client: Pick<ManifoldClient, 'getMarket' | 'members'>): ReadMarketPages {
  const pages = client.members('market');
  return async (contractIds, signal) => {
    const { answers, refused, ...rest } = await pages.ask(
      contractIds,
      async ([id = ''], request) => {
        try {
          return { row: await client.getMarket(id, signal, request) };
        } catch (error) {
          if (error instanceof VenueError && error.statusCode === 404) return undefined;
          throw error;
        }
      },
      { size: 1, atOnce: PAGES_AT_ONCE },
    );
    return {
      rows: answers.flatMap(({ answer }) => (answer ? [answer.row] : [])),
      unknown: answers.flatMap(({ members, answer }) => (answer ? [] : members)),
      failed: refused.map(({ member, reason }) => unavailable(member, reason)),
      ...rest,
    };
  };
}

/** The rejection of a listed market without a readable page. */
function unavailable(id: string, detail: string): RejectedRecord {
  return rejectRecord('markets', { id }, { reason: 'page_unavailable', detail }, id);
}
