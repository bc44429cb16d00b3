import { z } from 'zod';
import { type ApiJson, decimalField, optionalDecimal } from '../../src/domain/api-json.ts';
import { INTERVAL_SECONDS } from '../../src/domain/candle.ts';
import { resolveSeriesRange, type TimeRange } from '../../src/domain/time-range.ts';
import type { MarketTokens } from '../../src/store/market-reads.ts';
import {
  readCandles,
  readCloseBefore,
  readSnapshots,
  readVolume,
  type StoredCandle,
} from '../../src/store/series-reads.ts';
import type { ApiContext, ApiDeps, ApiRouter } from '../deps.ts';
import { param, readQuery } from '../input.ts';
import type { Freshness } from '../latest-cache.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { sendMarketData } from '../respond.ts';
import { createTradeCoverages, lacks, presentCoverage, type TradeCoverage } from '../trade-coverage.ts';
import { chooseOutcome, marketOfPath, pathParam, venueScope } from './market-scope.ts';

const range = { start: param.start, end: param.end, outcome_id: param.outcomeId };
const candleQuery = z.object({
  ...range,
  interval: param.interval,
  fill: z.enum(['none', 'previous'], 'must be none or previous').default('none'),
});
const snapshotQuery = z.object({ ...range, interval: param.interval });
const volumeQuery = z.object({ ...range, window: param.interval });

/** GET candles, volume and snapshots of a market: series of buckets. */
export function seriesRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });
  const coverages = createTradeCoverages(deps);
  // What is known to be stored is read first: the rows read next are no fewer.
  const covering = async (market: MarketTokens, range: TimeRange) =>
    coverages.deepen(market, await coverages.read(market), range);

  const placeOf = (ctx: ApiContext) => [venueScope(ctx, deps).name, pathParam(ctx, 'market_id')];

  router.get('/v1/:venue/markets/:market_id/candles', enter, async (ctx) => {
    const query = readQuery(ctx, candleQuery);
    const seconds = INTERVAL_SECONDS[query.interval];
    const now = Math.floor(deps.now() / 1000);
    const asked = resolveSeriesRange(given(query), seconds, now);
    await sendMarketData(ctx, deps, {
      key: ['candles', ...placeOf(ctx), query.outcome_id, query.interval, query.fill, query.start, query.end],
      load: async () => {
        const market = await marketOfPath(ctx, deps);
        const outcome = chooseOutcome(market, query.outcome_id);
        const coverage = await covering(market, asked);
        let candles = outcome ? await readCandles(deps.db, outcome.tokenId, seconds, asked) : [];
        if (outcome && query.fill === 'previous') {
          const before = await readCloseBefore(deps.db, outcome.tokenId, seconds, asked.start);
          candles = filled(candles, before, seconds, {
            ...asked,
            end: Math.min(asked.end, firstUnfilled(market, now)),
          });
        }
        return {
          data: candles.map((candle) => presentCandle(candle, seconds, now)),
          meta: { interval: query.interval, outcome_id: outcome?.outcomeId, history: presentCoverage(coverage) },
          freshness: freshnessOf(asked, seconds, now, coverage),
        };
      },
    });
  });

  router.get('/v1/:venue/markets/:market_id/volume', enter, async (ctx) => {
    const query = readQuery(ctx, volumeQuery);
    const seconds = INTERVAL_SECONDS[query.window];
    const now = Math.floor(deps.now() / 1000);
    const asked = resolveSeriesRange(given(query), seconds, now);
    await sendMarketData(ctx, deps, {
      key: ['volume', ...placeOf(ctx), query.outcome_id, query.window, query.start, query.end],
      load: async () => {
        const market = await marketOfPath(ctx, deps);
        const outcome = query.outcome_id === undefined ? undefined : chooseOutcome(market, query.outcome_id);
        const tokenIds = (outcome ? [outcome] : market.outcomes).map(({ tokenId }) => tokenId);
        const coverage = await covering(market, asked);
        const windows = await readVolume(deps.db, tokenIds, seconds, asked);
        return {
          data: windows.map(({ bucket, volume, notional, trades }) => ({
            timestamp: bucket,
            volume: decimalField(volume),
            notional: decimalField(notional),
            trades,
          })),
          meta: { window: query.window, outcome_id: outcome?.outcomeId, history: presentCoverage(coverage) },
          freshness: freshnessOf(asked, seconds, now, coverage),
        };
      },
    });
  });

  router.get('/v1/:venue/markets/:market_id/snapshots', enter, async (ctx) => {
    const query = readQuery(ctx, snapshotQuery);
    const seconds = INTERVAL_SECONDS[query.interval];
    const now = Math.floor(deps.now() / 1000);
    const asked = resolveSeriesRange(given(query), seconds, now);
    await sendMarketData(ctx, deps, {
      key: ['snapshots', ...placeOf(ctx), query.outcome_id, query.interval, query.start, query.end],
      load: async () => {
        const market = await marketOfPath(ctx, deps);
        const outcome = chooseOutcome(market, query.outcome_id);
        // The future is not carried forward.
        const known = { start: Math.ceil(asked.start / seconds) * seconds, end: Math.min(asked.end, now + 1) };
        const snapshots = outcome ? await readSnapshots(deps.db, outcome.tokenId, seconds, known) : [];
        return {
          data: snapshots.map(({ ts, price, bid, ask }) => ({
            timestamp: ts,
            price: decimalField(price),
            best_bid: optionalDecimal(bid),
            best_ask: optionalDecimal(ask),
          })),
          meta: { interval: query.interval, outcome_id: outcome?.outcomeId },
          freshness: freshnessOf(asked, seconds, now),
        };
      },
    });
  });
}

function given({ start, end }: { start?: number | undefined; end?: number | undefined }): Partial<TimeRange> {
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

/** History once its last bucket has been over for two more, and no older trades are on their way into it. */
function freshnessOf(range: TimeRange, seconds: number, now: number, coverage?: TradeCoverage): Freshness {
  if (coverage?.status === 'backfilling' && lacks(coverage, range)) return 'latest';
  return range.end <= now - 2 * seconds ? 'history' : 'latest';
}

/** Nothing is carried into the future, nor past the end of a market that is over: the first second that gets no bucket. */
function firstUnfilled(market: MarketTokens, now: number): number {
  const future = now + 1;
  const isOver = ['closed', 'resolved', 'settled'].includes(market.status);
  const endedAt = market.resolvedAt ?? market.closeAt;
  return isOver && endedAt !== null ? Math.min(future, Math.floor(endedAt.getTime() / 1000)) : future;
}

/**
 * Candles with the gaps filled by the close before: no candle before the first trade, none that starts at or after
 * `range.end`. Candles of real trades always stay.
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

/** `timestamp` is the start of the bucket; `closed` says that it is over. */
function presentCandle(candle: StoredCandle, seconds: number, now: number): ApiJson {
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
