import type { MarketRecord, PriceRecord, TradeRecord } from '../../domain/market.ts';
import { VENUES } from '../../domain/venue.ts';
import { VenueError } from '../errors.ts';
import type { VenueObserver } from '../observer.ts';
import type { Batch, CallContext, Page, RejectedRecord, VenueAdapter } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { createReport } from '../report.ts';
import { type BetWalkSettings, readBetPage } from './bet-walk.ts';
import { createManifoldClient, MANIFOLD, type ManifoldClient, type ManifoldHttpSettings } from './client.ts';
import { advance, hasMore, isListing, type MarketWalkSettings, nextQuery, openWalk } from './market-walk.ts';
import { partsOfOutcomeId } from './outcome-ids.ts';
import { betTimeMs, parseBets } from './parse-bet.ts';
import { parseMarkets } from './parse-market.ts';
import { parseProbs } from './parse-prob.ts';

export interface ManifoldOptions {
  /** With the version path: `https://api.manifold.markets/v0`. */
  url: string;
  observer?: VenueObserver;
  http?: ManifoldHttpSettings;
  markets?: Partial<MarketWalkSettings>;
  trades?: Partial<BetWalkSettings>;
}

const MARKET_SETTINGS: MarketWalkSettings = {
  pageSize: 1_000,
  fullWalkEveryMs: 2 * 3_600_000,
  answersOfResolvedMs: 30 * 86_400_000,
  maxRecentPages: 20,
  answersPerCall: 20,
};
const TRADE_SETTINGS: BetWalkSettings = {
  pageSize: 1_000,
  overlapMs: 120_000,
  initialLookbackMs: 6 * 3_600_000,
};

/** The most contracts `GET /market-probs` takes. */
const MAX_PROBS = 100;
const MAX_OUTCOMES = 1_000;
/** Market pages under way at once: few, so that prices and trades get their turn at the budget. */
const PAGES_AT_ONCE = 2;
/** So many bets, all refused, are no bad records but a changed format: going on would skip them for good. */
const SYSTEMIC_ROWS = 20;

/** Manifold, play money. Position formats are private to this folder. */
export function createManifoldAdapter(options: ManifoldOptions): VenueAdapter {
  const { observer } = options;
  const client = createManifoldClient(options);
  const marketSettings = { ...MARKET_SETTINGS, ...options.markets };
  const tradeSettings = { ...TRADE_SETTINGS, ...options.trades };

  const report = createReport(MANIFOLD, observer);

  return {
    venue: MANIFOLD,
    ...VENUES.manifold,
    maxOutcomesPerFetch: MAX_OUTCOMES,

    async pollMarkets(position: unknown, context: CallContext): Promise<Page<MarketRecord>> {
      const nowMs = context.now();
      const at = openWalk(position, nowMs, marketSettings);
      if (!isListing(at)) {
        const contractIds = at.pending.slice(0, marketSettings.answersPerCall);
        const { rows, failed } = await readMarketPages(client, contractIds, context.signal);
        const { records, rejected, unknowns } = parseMarkets(rows, nowMs);
        report.unknowns(unknowns);
        const rest = { ...at, pending: at.pending.slice(contractIds.length) };
        return { records, rejected: [...rejected, ...failed], position: rest, more: hasMore(rest) };
      }
      const rows = await client.listMarkets(nextQuery(at, marketSettings), context.signal);
      const next = advance(at, rows, nowMs, marketSettings);
      report.truncated('markets', next.cutShort);
      const { records, rejected, unknowns } = parseMarkets(next.fresh, nowMs);
      report.unknowns(unknowns);
      return { records, rejected, position: next.position, more: hasMore(next.position) };
    },

    async pollTrades(position: unknown, context: CallContext): Promise<Page<TradeRecord>> {
      const nowMs = context.now();
      const page = await readBetPage(position, nowMs, tradeSettings, (query) => client.listBets(query, context.signal));
      const { records, rejected, unknowns } = parseBets(page.rows, nowMs);
      if (page.rows.length >= SYSTEMIC_ROWS && rejected.length === page.rows.length) {
        const [first] = rejected;
        const message = `no bet of ${page.rows.length} is readable: ${first?.reason}, ${first?.detail}`;
        throw new VenueError(MANIFOLD, 'invalid_payload', message, { retryable: true });
      }
      report.truncated('trades', page.truncated);
      const firstSeen = freshRefusals(page.rows, page.reportedMs, nowMs, rejected);
      report.unknowns(unknowns);
      return { records, rejected: firstSeen, position: page.position, more: page.more };
    },

    async fetchPrices(outcomeIds: readonly string[], context: CallContext): Promise<Batch<PriceRecord>> {
      const wanted = new Set(outcomeIds);
      const contractIds = [...new Set(outcomeIds.flatMap((id) => partsOfOutcomeId(id)?.contractId ?? []))];
      const batch: Batch<PriceRecord> = { records: [], rejected: [] };
      for (let start = 0; start < contractIds.length; start += MAX_PROBS) {
        const probs = await client.listProbs(contractIds.slice(start, start + MAX_PROBS), context.signal);
        const { records, rejected } = parseProbs(probs, context.now(), wanted);
        batch.records.push(...records);
        batch.rejected.push(...rejected);
      }
      return batch;
    },

    fetchBooks: async () => ({ records: [], rejected: [] }),

    close: () => client.close(),
  };
}

/** Refusals of the overlap were reported when those bets were first read. */
function freshRefusals(
  rows: readonly unknown[],
  reportedMs: number,
  nowMs: number,
  rejected: readonly RejectedRecord[],
): RejectedRecord[] {
  if (rejected.length === 0) return [];
  const fresh = rows.filter((row) => (betTimeMs(row, nowMs) ?? Number.POSITIVE_INFINITY) > reportedMs);
  return parseBets(fresh, nowMs).rejected;
}

/**
 * The pages of these markets. One that the venue cannot serve is refused, so that it never holds up the catalog; when it can
 * serve none, the venue is what is broken.
 */
async function readMarketPages(client: ManifoldClient, contractIds: readonly string[], signal: AbortSignal) {
  const rows: unknown[] = [];
  const failed: RejectedRecord[] = [];
  const waiting = [...contractIds];
  let lastError: VenueError | undefined;
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        rows.push(await client.getMarket(id, signal));
      } catch (error) {
        if (!(error instanceof VenueError) || !isOfOnePage(error)) {
          waiting.length = 0;
          throw error;
        }
        if (error.statusCode !== 404) lastError = error;
        failed.push(rejectRecord('markets', { id }, { reason: 'page_unavailable', detail: error.message }, id));
      }
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, work));
  if (rows.length === 0 && lastError !== undefined) throw lastError;
  return { rows, failed };
}

function isOfOnePage(error: VenueError): boolean {
  return ['http_status', 'invalid_payload', 'response_too_large'].includes(error.code);
}
