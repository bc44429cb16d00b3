import type { TimeRange } from '../../src/domain/values/time-range.ts';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import {
  isWorthAsking,
  readTradeFacts,
  requestTradeHistory,
  type TradeFacts,
  type TradeHistory,
} from '../../src/store/series/trade-history.ts';
import type { ColdAllowance } from '../access/cold-allowance.ts';
import type { HistoryBody } from '../contract/series.ts';
import type { ApiDeps } from '../deps.ts';

/** How far back a market's trades are stored, and so its candles and volume. Epoch milliseconds. */
export interface TradeCoverage {
  /** `partial`: the venue may have older trades that nobody asked for, or that cannot be had: then `reason` says why. */
  status: 'complete' | 'backfilling' | 'partial';
  /** Everything from here on is stored; null while the venue was never polled. */
  coveredMs: number | null;
  /** Where the walk back ends: the market's start, or the oldest trades that are kept. */
  wantedMs: number;
  reason: string | null;
  history: TradeHistory | null;
}

/** Reads that know how much is stored, and fetch what is not (DESIGN section 4, "Cold reads"). */
interface TradeCoverages {
  read(market: MarketTokens): Promise<TradeCoverage>;
  /**
   * Fetches what this range (epoch seconds, open ends absent) lacks, when it was not asked for before and `cold` allows it: the
   * walk back is requested, and its first page waited for, `deps.coldWaitMs` at most. The same object when there was nothing to
   * do.
   */
  deepen(
    market: MarketTokens,
    coverage: TradeCoverage,
    range: Partial<TimeRange>,
    cold: Pick<ColdAllowance, 'take'>,
  ): Promise<TradeCoverage>;
}

type CoverageDeps = Pick<
  ApiDeps,
  'db' | 'arrivals' | 'producer' | 'coldWaitMs' | 'venues' | 'tradeRetentionMs' | 'now'
>;

export function createTradeCoverages(deps: CoverageDeps): TradeCoverages {
  const walkable = new Set<string>(deps.venues.filter((venue) => venue.capabilities.history).map(({ venue }) => venue));

  async function read(market: MarketTokens): Promise<TradeCoverage> {
    const facts = await readTradeFacts(deps.db, market.pk);
    return judge(facts, { floorMs: deps.now() - deps.tradeRetentionMs, isWalkable: walkable.has(market.venue) });
  }

  return {
    read,
    async deepen(market, coverage, range, cold) {
      const { coveredMs, wantedMs, history } = coverage;
      if (!walkable.has(market.venue) || coveredMs === null || !lacks(coverage, range)) return coverage;
      const isNew = isWorthAsking(history, wantedMs);
      // Whoever comes while the first page is on its way waits for it too, for the rest of the time.
      const waitMs = isNew || !history ? deps.coldWaitMs : deps.coldWaitMs - (history.asOfMs - history.requestedMs);
      if (!isNew && (!isUntouched(history) || waitMs <= 0)) return coverage;
      if (isNew && !cold.take()) return coverage;
      const ear = new AbortController();
      try {
        // First the ear, then the call: what comes at once would be missed otherwise.
        const arrival = deps.arrivals.waitFor(`history:${market.pk}`, waitMs, ear.signal);
        if (isNew && (await requestTradeHistory(deps.db, { marketPk: market.pk, fromMs: wantedMs, toMs: coveredMs }))) {
          deps.producer.wake('backfill-trades', { venue: market.venue });
        }
        const before = await read(market);
        if (!isUntouched(before.history)) return before;
        await arrival;
        // Also when nothing was heard: a connection lost meanwhile hears nothing.
        return await read(market);
      } finally {
        ear.abort();
      }
    },
  };
}

/** Whether the range reaches into what is not stored. */
export function lacks({ status, coveredMs, wantedMs }: TradeCoverage, range: Partial<TimeRange>): boolean {
  if (status === 'complete' || coveredMs === null) return false;
  const startMs = (range.start ?? 0) * 1000;
  const endMs = range.end === undefined ? Number.POSITIVE_INFINITY : range.end * 1000;
  return Math.max(startMs, wantedMs) < Math.min(endMs, coveredMs);
}

/** `meta.history` of an answer. */
export function presentCoverage({ status, coveredMs, reason, history }: TradeCoverage): HistoryBody {
  // A whole second of which a part is missing is not covered; nothing is missing of a complete history.
  const round = status === 'complete' ? Math.floor : Math.ceil;
  return {
    status,
    covered_from: coveredMs === null ? undefined : round(coveredMs / 1000),
    trades: history?.trades,
    requested_at: history ? Math.floor(history.requestedMs / 1000) : undefined,
    reason: reason ?? undefined,
  };
}

function isUntouched(history: TradeHistory | null): boolean {
  return history !== null && isOpen(history) && !history.isTouched;
}

function isOpen({ status }: TradeHistory): boolean {
  return status === 'queued' || status === 'walking';
}

function judge(facts: TradeFacts, bounds: { floorMs: number; isWalkable: boolean }): TradeCoverage {
  const { beganMs, liveMs, history } = facts;
  const { floorMs } = bounds;
  const wantedMs = Math.max(beganMs ?? floorMs, floorMs);
  const reachedMs = history ? (history.reachedMs ?? history.toMs) : liveMs;
  // From its first trade on its venue was followed, or all there is was asked for and came.
  const isLiveBorn = liveMs !== null && beganMs !== null && beganMs >= liveMs;
  const isReached = reachedMs !== null && reachedMs <= wantedMs && history?.lastError == null;
  const coveredMs = isLiveBorn || reachedMs === null ? (isLiveBorn ? beganMs : null) : Math.max(reachedMs, floorMs);
  const known = { coveredMs, wantedMs, history };
  if (!isLiveBorn && history && isOpen(history)) {
    return { ...known, status: 'backfilling', reason: history.lastError };
  }
  if (isLiveBorn || isReached) {
    if (beganMs === null || beganMs >= floorMs) return { ...known, status: 'complete', reason: null };
    return { ...known, status: 'partial', reason: 'older trades are not kept' };
  }
  if (history?.lastError != null) return { ...known, status: 'partial', reason: history.lastError };
  if (liveMs === null) return { ...known, status: 'partial', reason: 'the venue was not polled yet' };
  return { ...known, status: 'partial', reason: bounds.isWalkable ? null : 'the venue gives no older trades' };
}
