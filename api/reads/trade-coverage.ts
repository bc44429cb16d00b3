import type { TimeRange } from '../../src/domain/values/time-range.ts';
import { withoutAddresses } from '../../src/domain/values/without-addresses.ts';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { Witness } from '../../src/store/series/completeness.ts';
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
import { presentMarketCoverage } from './completeness.ts';

/** How far back the trades, candles and volume of a market are stored. Epoch milliseconds. */
export interface TradeCoverage {
  /** `partial`: older trades were not requested, or are not available. `reason` holds the cause. */
  status: 'complete' | 'backfilling' | 'partial';
  /** All trades since this moment are stored. Null before the first poll of the venue. */
  coveredMs: number | null;
  /** The end of the backfill: the start of the market, or the trade retention. */
  wantedMs: number;
  reason: string | null;
  history: TradeHistory | null;
  /** The comparison with the venue's volume. */
  witness: Witness | null;
  /** The coverage changes with time alone after this time, milliseconds. 0: it changes without a change of the journal. */
  stableMs: number;
}

/** Judges the coverage of stored trades, and fetches missing trades. */
interface TradeCoverages {
  judge(market: MarketTokens, facts: TradeFacts): TradeCoverage;
  /**
   * Requests a backfill when this range (epoch seconds, open ends absent) lacks trades, no earlier request covers it and `cold` allows
   * it. Waits for the first page, at most `deps.coldWaitMs`. False when it requested and awaited nothing: the read before it holds.
   */
  deepen(
    market: MarketTokens,
    coverage: TradeCoverage,
    range: Partial<TimeRange>,
    cold: Pick<ColdAllowance, 'take'>,
  ): Promise<boolean>;
}

type CoverageDeps = Pick<
  ApiDeps,
  'db' | 'arrivals' | 'producer' | 'coldWaitMs' | 'venues' | 'tradeRetentionMs' | 'now'
>;

export function createTradeCoverages(deps: CoverageDeps): TradeCoverages {
  const walkable = new Set<string>(deps.venues.filter((venue) => venue.capabilities.history).map(({ venue }) => venue));

  function judgeOf(market: MarketTokens, facts: TradeFacts): TradeCoverage {
    return judge(facts, { floorMs: deps.now() - deps.tradeRetentionMs, isWalkable: walkable.has(market.venue) });
  }

  return {
    judge: judgeOf,
    async deepen(market, coverage, range, cold) {
      const { coveredMs, wantedMs, history } = coverage;
      if (!walkable.has(market.venue) || coveredMs === null || !lacks(coverage, range)) return false;
      const isNew = isWorthAsking(history, wantedMs);
      // A later request also waits for the first page, for the rest of the time.
      const waitMs = isNew || !history ? deps.coldWaitMs : deps.coldWaitMs - (history.asOfMs - history.requestedMs);
      if (!isNew && (!isUntouched(history) || waitMs <= 0)) return false;
      if (isNew && !cold.take()) return false;
      const wait = new AbortController();
      try {
        // Listen before the wake-up, which could cause an announcement at once.
        const arrival = deps.arrivals.waitFor(`history:${market.pk}`, waitMs, wait.signal);
        if (isNew && (await requestTradeHistory(deps.db, { marketPk: market.pk, fromMs: wantedMs, toMs: coveredMs }))) {
          deps.producer.wake('backfill-trades', { venue: market.venue });
        }
        const { history: before } = await readTradeFacts(deps.db, market.pk);
        if (isUntouched(before)) await arrival;
        // Also without an announcement, because a lost connection misses it.
        return true;
      } finally {
        wait.abort();
      }
    },
  };
}

/** Whether the range includes times without stored trades. */
export function lacks({ status, coveredMs, wantedMs }: TradeCoverage, range: Partial<TimeRange>): boolean {
  if (status === 'complete' || coveredMs === null) return false;
  const startMs = (range.start ?? 0) * 1000;
  const endMs = range.end === undefined ? Number.POSITIVE_INFINITY : range.end * 1000;
  return Math.max(startMs, wantedMs) < Math.min(endMs, coveredMs);
}

/** `meta.history` of an answer. */
export function presentCoverage({ status, coveredMs, reason, history, witness }: TradeCoverage): HistoryBody {
  // Rounds up, because a second is covered only as a whole. A complete history has no gap, so it rounds down.
  const round = status === 'complete' ? Math.floor : Math.ceil;
  return {
    status,
    covered_from: coveredMs === null ? undefined : round(coveredMs / 1000),
    trades: history?.trades,
    requested_at: history ? Math.floor(history.requestedMs / 1000) : undefined,
    reason: reason === null ? undefined : withoutAddresses(reason),
    coverage: presentMarketCoverage(witness),
  };
}

function isUntouched(history: TradeHistory | null): boolean {
  return history !== null && isOpen(history) && !history.isTouched;
}

function isOpen({ status }: TradeHistory): boolean {
  return status === 'queued' || status === 'walking';
}

function judge(facts: TradeFacts, bounds: { floorMs: number; isWalkable: boolean }): TradeCoverage {
  const { beganMs, liveMs, history, witness } = facts;
  const { floorMs } = bounds;
  const wantedMs = Math.max(beganMs ?? floorMs, floorMs);
  const reachedMs = history ? (history.reachedMs ?? history.toMs) : liveMs;
  // Live-born: live polls cover the market since its start. Reached: the backfill covers the whole wanted range.
  const isLiveBorn = liveMs !== null && beganMs !== null && beganMs >= liveMs;
  const isReached = reachedMs !== null && reachedMs <= wantedMs && history?.lastError == null;
  const coveredMs = isLiveBorn || reachedMs === null ? (isLiveBorn ? beganMs : null) : Math.max(reachedMs, floorMs);
  // The retention moves with time, and a walk in progress changes often.
  const isMoving = liveMs === null || coveredMs === floorMs || (history !== null && isOpen(history));
  const keptMs = beganMs !== null && beganMs >= floorMs ? beganMs - floorMs : Number.POSITIVE_INFINITY;
  const known = { coveredMs, wantedMs, history, witness, stableMs: isMoving ? 0 : keptMs };
  if (!isLiveBorn && history && isOpen(history)) {
    return { ...known, status: 'backfilling', reason: history.lastError };
  }
  if (isLiveBorn || isReached) {
    if (beganMs === null || beganMs >= floorMs) return { ...known, status: 'complete', reason: null };
    return { ...known, status: 'partial', reason: 'older trades are not kept' };
  }
  if (history?.lastError != null) return { ...known, status: 'partial', reason: history.lastError };
  if (liveMs === null) return { ...known, status: 'partial', reason: 'the venue has not been polled yet' };
  return { ...known, status: 'partial', reason: bounds.isWalkable ? null : 'the venue offers no older trades' };
}
