import { z } from 'zod';
import { INTERVAL_SECONDS, type Interval } from '../../src/domain/markets/candle.ts';
import { decimalField, optionalDecimal } from '../../src/domain/values/api-json.ts';
import { addDecimals, decimal } from '../../src/domain/values/decimal.ts';
import { resolveSeriesRange, type TimeRange } from '../../src/domain/values/time-range.ts';
import { findMarketTokens, type MarketTokens } from '../../src/store/catalog/market-reads.ts';
import {
  readMarketCandles,
  readMarketVolume,
  type SeriesRead,
  type VolumeWindow,
} from '../../src/store/series/market-series.ts';
import { readSnapshots, type StoredCandle } from '../../src/store/series/reads.ts';
import type { ColdAllowance } from '../access/cold-allowance.ts';
import {
  type CandleBody,
  candle,
  candleExample,
  candleMeta,
  candleQuery,
  historyExample,
  seriesMetaExample,
  snapshot,
  snapshotExample,
  snapshotMeta,
  snapshotQuery,
  volumeExample,
  volumeMeta,
  volumeQuery,
  volumeWindow,
} from '../contract/series.ts';
import { marketRoute, type Route } from '../http/route.ts';
import type { Freshness } from '../reads/answer-cache.ts';
import { readPastGaps } from '../reads/feed-states.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { createTradeCoverages, isUnread, lacks, presentCoverage, type TradeCoverage } from '../reads/trade-coverage.ts';
import { chooseOutcome, foundMarket, seriesValidity, venueScopes } from './market-scope.ts';

/** GET candles, volume and snapshots of a market: series of buckets. */
export function seriesRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const coverages = createTradeCoverages(deps);
  /** Reads a series with its coverage, again after old trades arrived. */
  const covered = async <Part>(
    read: () => Promise<SeriesRead<Part> | null>,
    { range, outcomeId, cold }: { range: TimeRange; outcomeId: string | undefined; cold: ColdAllowance },
  ) => {
    const once = async () => {
      const found = foundMarket(deps, await read());
      return { ...found, coverage: coverages.judge(found.market, found.facts) };
    };
    const first = await once();
    chooseOutcome(first.market, outcomeId);
    return (await coverages.deepen(first.market, first.coverage, range, cold)) ? once() : first;
  };
  /** The inputs of any series; times are epoch seconds. */
  const seriesOf = (params: { venue: string; market_id: string }, interval: Interval, range: GivenRange) => {
    const seconds = INTERVAL_SECONDS[interval];
    const now = Math.floor(deps.now() / 1000);
    const wanted = resolveSeriesRange(given(range), seconds, now);
    return { scope: scopeOf(params.venue), marketId: params.market_id, seconds, now, wanted };
  };

  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/candles',
        operationId: 'listCandles',
        summary: 'Read candles of one outcome',
        description: 'Oldest first. Buckets without trades are omitted, or filled with `fill=previous`.',
        query: candleQuery,
        answer: {
          description: 'Candles.',
          data: z.array(candle),
          example: [candleExample],
          meta: candleMeta,
          metaExample: { ...seriesMetaExample, history: historyExample },
        },
      },
      ({ params, query }) => {
        const { outcome_id, interval, fill, start, end } = query;
        const { scope, marketId, seconds, now, wanted } = seriesOf(params, interval, query);
        return {
          key: ['candles', scope.name, marketId, outcome_id, interval, fill, start, end],
          load: async (cold) => {
            const target = { venues: scope.venues, marketId, outcomeId: outcome_id };
            const query = { seconds, range: wanted, withCloseBefore: fill === 'previous' };
            const read = await covered(() => readMarketCandles(deps.db, target, query), {
              range: wanted,
              outcomeId: outcome_id,
              cold,
            });
            const { market, coverage, stamp } = read;
            const outcome = chooseOutcome(market, outcome_id);
            let { candles, closeBefore } = read;
            if (outcome && wanted.start < read.seam) {
              const start = fill === 'previous' ? Math.floor(wanted.start / DAY_SECONDS) * DAY_SECONDS : wanted.start;
              const range = { start, end: Math.min(wanted.end, read.seam) };
              const past = await deps.history.candles(market, { outcomeId: outcome.outcomeId, seconds, range });
              closeBefore = past.findLast(({ bucket }) => bucket < wanted.start)?.close ?? closeBefore;
              candles = [...past.filter(({ bucket }) => bucket >= wanted.start), ...candles];
            }
            if (outcome && fill === 'previous') {
              const until = Math.min(wanted.end, firstUnfilled(market, now));
              candles = filled(candles, closeBefore, seconds, { ...wanted, end: until });
            }
            return {
              data: candles.map((one) => presentCandle(one, seconds, now)),
              meta: { interval, outcome_id: outcome?.outcomeId, history: presentCoverage(coverage) },
              freshness: freshnessOf(wanted, seconds, now, coverage),
              validity: seriesValidity(scope, marketId, 'candle', {
                stamp,
                forMs: Math.min(coverage.stableMs, untilNextBucketMs(wanted, seconds, deps.now())),
              }),
            };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/volume',
        operationId: 'listVolume',
        summary: 'Read volume per window, of the market or of one outcome',
        description: 'Oldest first. Windows without trades are omitted.',
        query: volumeQuery,
        answer: {
          description: 'Windows.',
          data: z.array(volumeWindow),
          example: [volumeExample],
          meta: volumeMeta,
          metaExample: { window: '1h', history: historyExample },
        },
      },
      ({ params, query }) => {
        const { outcome_id, window, start, end } = query;
        const { scope, marketId, seconds, now, wanted } = seriesOf(params, window, query);
        return {
          key: ['volume', scope.name, marketId, outcome_id, window, start, end],
          load: async (cold) => {
            const target = { venues: scope.venues, marketId, outcomeId: outcome_id };
            const read = await covered(() => readMarketVolume(deps.db, target, { seconds, range: wanted }), {
              range: wanted,
              outcomeId: outcome_id,
              cold,
            });
            const { market, coverage, stamp } = read;
            const outcome = outcome_id === undefined ? undefined : chooseOutcome(market, outcome_id);
            let { windows } = read;
            if (wanted.start < read.seam) {
              const range = { start: wanted.start, end: Math.min(wanted.end, read.seam) };
              const past = await deps.history.candles(market, { outcomeId: outcome_id, seconds, range });
              windows = [...summed(past), ...windows];
            }
            return {
              data: windows.map(({ bucket, volume, notional, trades }) => ({
                timestamp: bucket,
                volume: decimalField(volume),
                notional: decimalField(notional),
                trades,
              })),
              meta: { window, outcome_id: outcome?.outcomeId, history: presentCoverage(coverage) },
              freshness: freshnessOf(wanted, seconds, now, coverage),
              validity: seriesValidity(scope, marketId, 'candle', {
                stamp,
                forMs: Math.min(coverage.stableMs, untilNextBucketMs(wanted, seconds, deps.now())),
              }),
            };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/snapshots',
        operationId: 'listSnapshots',
        summary: 'Read sampled prices of one outcome',
        description: 'Last price, bid and ask at each boundary. Gaps repeat the previous values. Oldest first.',
        query: snapshotQuery,
        answer: {
          description: 'Snapshots.',
          data: z.array(snapshot),
          example: [snapshotExample],
          meta: snapshotMeta,
          metaExample: seriesMetaExample,
        },
      },
      ({ params, query }) => {
        const { outcome_id, interval, start, end } = query;
        const { scope, marketId, seconds, now, wanted } = seriesOf(params, interval, query);
        return {
          key: ['snapshots', scope.name, marketId, outcome_id, interval, start, end],
          load: async () => {
            const found = await findMarketTokens(deps.db, scope.venues, marketId);
            const { market } = foundMarket(deps, found && { market: found });
            const outcome = chooseOutcome(market, outcome_id);
            // No snapshots in the future.
            const known = { start: Math.ceil(wanted.start / seconds) * seconds, end: Math.min(wanted.end, now + 1) };
            const [snapshots, { feed_gaps, hasOpen }] = await Promise.all([
              outcome ? readSnapshots(deps.db, outcome.tokenId, seconds, known) : [],
              readPastGaps(deps.db, market, known),
            ]);
            return {
              data: snapshots.map(({ ts, price, bid, ask }) => ({
                timestamp: ts,
                price: decimalField(price),
                best_bid: optionalDecimal(bid),
                best_ask: optionalDecimal(ask),
              })),
              meta: { interval, outcome_id: outcome?.outcomeId, feed_gaps },
              freshness: hasOpen ? 'latest' : freshnessOf(wanted, seconds, now),
            };
          },
        };
      },
    ),
  ];
}

const DAY_SECONDS = INTERVAL_SECONDS['1d'];

/** The windows of sorted candles of several outcomes. */
function summed(candles: readonly StoredCandle[]): VolumeWindow[] {
  const windows: VolumeWindow[] = [];
  for (const { bucket, volume, notional, trades } of candles) {
    const last = windows.at(-1);
    if (last?.bucket !== bucket) windows.push({ bucket, volume, notional, trades });
    else {
      last.volume = addDecimals(decimal(last.volume), decimal(volume));
      last.notional = addDecimals(decimal(last.notional), decimal(notional));
      last.trades += trades;
    }
  }
  return windows;
}

interface GivenRange {
  start?: number | undefined;
  end?: number | undefined;
}

function given({ start, end }: GivenRange): Partial<TimeRange> {
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

/** `history` when the range ended at least two buckets ago, and neither a backfill nor the reading of new trades adds trades to it. */
function freshnessOf(range: TimeRange, seconds: number, now: number, coverage?: TradeCoverage): Freshness {
  if (coverage && isUnread(coverage, range.end)) return 'latest';
  if (coverage?.status === 'backfilling' && lacks(coverage, range)) return 'latest';
  return range.end <= now - 2 * seconds ? 'history' : 'latest';
}

/** The time to the end of the present bucket, which changes the default range and `closed`; endless for a range of the past. */
function untilNextBucketMs(range: TimeRange, seconds: number, nowMs: number): number {
  const bucketMs = seconds * 1_000;
  return range.end * 1_000 <= nowMs - 2 * bucketMs ? Number.POSITIVE_INFINITY : bucketMs - (nowMs % bucketMs);
}

/** The first second without filled buckets: the next second, or the end of a finished market. */
function firstUnfilled(market: MarketTokens, now: number): number {
  const future = now + 1;
  const isOver = ['closed', 'resolved', 'settled'].includes(market.status);
  const endedAt = market.resolvedAt ?? market.closeAt;
  return isOver && endedAt !== null ? Math.min(future, Math.floor(endedAt.getTime() / 1000)) : future;
}

/**
 * Fills the gaps between candles with the previous close: not before the first trade, and not at or after `range.end`. Candles of
 * real trades always stay.
 */
function filled(
  candles: readonly StoredCandle[],
  closeBefore: string | null,
  seconds: number,
  range: TimeRange,
): StoredCandle[] {
  const result: StoredCandle[] = [];
  let close = closeBefore;
  let bucket = Math.ceil(range.start / seconds) * seconds;
  const carryTo = (end: number) => {
    for (; bucket < end; bucket += seconds) {
      if (close !== null) {
        const empty = { volume: '0', notional: '0', trades: 0 };
        result.push({ bucket, open: close, high: close, low: close, close, ...empty });
      }
    }
  };
  for (const candle of candles) {
    carryTo(Math.min(candle.bucket, range.end));
    result.push(candle);
    close = candle.close;
    bucket = candle.bucket + seconds;
  }
  carryTo(range.end);
  return result;
}

/** `timestamp` is the start of the bucket; `closed` means that the bucket has ended. */
function presentCandle(candle: StoredCandle, seconds: number, now: number): CandleBody {
  return {
    timestamp: candle.bucket,
    open: decimalField(candle.open),
    high: decimalField(candle.high),
    low: decimalField(candle.low),
    close: decimalField(candle.close),
    volume: decimalField(candle.volume),
    notional: decimalField(candle.notional),
    trades: candle.trades,
    closed: candle.bucket + seconds <= now,
  };
}
