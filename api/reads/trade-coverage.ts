import { isTapeBehind, tapeToleranceMs } from '../../src/domain/markets/trade-tape.ts';
import { coveredShare, volumeRuleOf } from '../../src/domain/markets/volume-witness.ts';
import { withoutAddresses } from '../../src/domain/values/failure-reasons.ts';
import type { TimeRange } from '../../src/domain/values/time-range.ts';
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
import { presentMarketCoverage } from './completeness.ts';
import type { MarketReadDeps } from './read-deps.ts';

/** Of which time the trades, candles and volume of a market are stored. Epoch milliseconds. */
export interface TradeCoverage {
  /** `partial`: trades were not requested, are not available, or are not read yet. `reason` holds the cause. */
  status: 'complete' | 'backfilling' | 'partial';
  /** All trades since this moment are stored. Null before the first poll of the venue. */
  coveredMs: number | null;
  /** All trades from `coveredMs` until this moment are stored; null while the tape was never read without a gap. */
  coveredToMs: number | null;
  /** The backfill reached its end. */
  isReached: boolean;
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
   * it. Waits for the first page, at most `cold.waitMs`. False when it requested and awaited nothing: the read before it holds.
   */
  deepen(
    market: MarketTokens,
    coverage: TradeCoverage,
    range: Partial<TimeRange>,
    cold: Pick<ColdAllowance, 'take' | 'waitMs'>,
  ): Promise<boolean>;
}

type CoverageDeps = Pick<MarketReadDeps, 'db' | 'arrivals' | 'producer' | 'venues' | 'tradeRetentionMs' | 'now'>;

export function createTradeCoverages(deps: CoverageDeps): TradeCoverages {
  const walkable = new Set<string>(deps.venues.filter((venue) => venue.capabilities.history).map(({ venue }) => venue));
  const pollMsOf = new Map<string, number | undefined>(deps.venues.map(({ venue, pollMs }) => [venue, pollMs.trades]));

  function judgeOf(market: MarketTokens, facts: TradeFacts): TradeCoverage {
    const nowMs = deps.now();
    const { venue, status, resolvedAt } = market;
    const isOver = status === 'resolved' || status === 'settled';
    return judge(facts, {
      nowMs,
      floorMs: nowMs - deps.tradeRetentionMs,
      isWalkable: walkable.has(venue),
      pollMs: pollMsOf.get(venue),
      endMs: isOver ? (resolvedAt?.getTime() ?? null) : null,
      relativeTolerance: volumeRuleOf(venue)?.relative ?? 0,
    });
  }

  return {
    judge: judgeOf,
    async deepen(market, coverage, range, cold) {
      const { coveredMs, wantedMs, history } = coverage;
      if (!walkable.has(market.venue) || coveredMs === null || !lacks(coverage, range)) return false;
      const isNew = isWorthAsking(history, wantedMs);
      // A later request also waits for the first page, for the rest of the time.
      const waitMs = isNew || !history ? cold.waitMs : cold.waitMs - (history.asOfMs - history.requestedMs);
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

/** Whether the range includes times before the stored trades. */
export function lacks({ isReached, coveredMs, wantedMs }: TradeCoverage, range: Partial<TimeRange>): boolean {
  if (isReached || coveredMs === null) return false;
  const startMs = (range.start ?? 0) * 1000;
  const endMs = range.end === undefined ? Number.POSITIVE_INFINITY : range.end * 1000;
  return Math.max(startMs, wantedMs) < Math.min(endMs, coveredMs);
}

/** Whether the stored trades of a range that ends here, epoch seconds, may still change: the tape has not passed its end. */
export function isUnread({ coveredToMs }: TradeCoverage, end: number): boolean {
  return coveredToMs === null || coveredToMs < end * 1000;
}

/**
 * `meta.history` of an answer. The end of the covered time is that of its minute, because each change makes a new ETag, but not before the
 * start while it is behind it.
 */
export function presentCoverage(coverage: TradeCoverage): HistoryBody {
  const { status, coveredMs, coveredToMs, isReached, reason, history, witness } = coverage;
  // Rounds up, because a second is covered only as a whole. A history that begins with the market has no gap, so it rounds down.
  const round = isReached ? Math.floor : Math.ceil;
  const from = coveredMs === null ? undefined : round(coveredMs / 1000);
  const second = coveredToMs === null ? undefined : Math.floor(coveredToMs / 1000);
  const minute = second === undefined ? undefined : second - (second % 60);
  return {
    status,
    covered_from: from,
    covered_to: second === undefined ? undefined : Math.max(minute ?? 0, Math.min(second, from ?? 0)),
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

interface Bounds {
  nowMs: number;
  /** The retention: older trades are not kept. */
  floorMs: number;
  isWalkable: boolean;
  /** The interval of the polls of trades. */
  pollMs: number | undefined;
  /** The market has no later trades; null while it may trade. */
  endMs: number | null;
  /** The part of the venue's volume that its totals may state beyond its trades. */
  relativeTolerance: number;
}

function judge(facts: TradeFacts, bounds: Bounds): TradeCoverage {
  const { beganMs, liveMs, caughtUpMs, history, witness } = facts;
  const { floorMs, nowMs, pollMs } = bounds;
  const wantedMs = Math.max(beganMs ?? floorMs, floorMs);
  const reachedMs = history ? (history.reachedMs ?? history.toMs) : liveMs;
  // Live-born: live polls cover the market since its start. Reached: the backfill covers the whole wanted range.
  const isLiveBorn = liveMs !== null && beganMs !== null && beganMs >= liveMs;
  const isReached =
    isLiveBorn || (reachedMs !== null && reachedMs <= wantedMs && history?.lastError == null && !isOpenWalk(history));
  const coveredMs = isLiveBorn || reachedMs === null ? (isLiveBorn ? beganMs : null) : Math.max(reachedMs, floorMs);
  const isEnded = bounds.endMs !== null && caughtUpMs !== null && caughtUpMs >= bounds.endMs;
  const isBehind = !isEnded && isTapeBehind(caughtUpMs, nowMs, pollMs);
  // The retention moves with time, and a walk in progress and a tape that is behind change without a change of the journal.
  const isMoving = liveMs === null || coveredMs === floorMs || isBehind || isOpenWalk(history);
  const keptMs = beganMs !== null && beganMs >= floorMs ? beganMs - floorMs : Number.POSITIVE_INFINITY;
  const currentMs = isEnded ? Number.POSITIVE_INFINITY : (caughtUpMs ?? 0) + tapeToleranceMs(pollMs) - nowMs;
  const known = { coveredMs, coveredToMs: caughtUpMs, isReached, wantedMs, history, witness };
  const coverage = { ...known, stableMs: isMoving ? 0 : Math.max(0, Math.min(keptMs, currentMs)) };
  const partial = (reason: string | null): TradeCoverage => ({ ...coverage, status: 'partial', reason });
  if (!isLiveBorn && isOpenWalk(history)) {
    return { ...coverage, status: 'backfilling', reason: history?.lastError ?? null };
  }
  if (isReached) {
    if (beganMs !== null && beganMs < floorMs) return partial('older trades are not kept');
    if (caughtUpMs === null) return partial('the trades of the venue were not read without a gap yet');
    if (isBehind) return partial('the reading of new trades is behind: trades after covered_to may be missing');
    if (witness && isContradicted(witness, bounds.relativeTolerance)) {
      return partial("the venue's volume is greater than that of the stored trades");
    }
    return { ...coverage, status: 'complete', reason: null };
  }
  if (history?.lastError != null) return partial(history.lastError);
  if (liveMs === null) return partial('the venue has not been polled yet');
  return partial(bounds.isWalkable ? null : 'the venue offers no older trades');
}

/** Also without a proven loss: a small volume proves neither a loss nor complete trades. */
function isContradicted({ missingSince, storedVolume, venueVolume }: Witness, relativeTolerance: number): boolean {
  return missingSince !== null || coveredShare(storedVolume, venueVolume) < 1 - relativeTolerance;
}

function isOpenWalk(history: TradeHistory | null): boolean {
  return history !== null && isOpen(history);
}
