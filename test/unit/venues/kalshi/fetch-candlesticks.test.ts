import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { KalshiClient, Parameters as Query } from '../../../../src/venues/kalshi/client.ts';
import {
  type Candlestick,
  fetchCandlesticks,
  parseCandlesticks,
} from '../../../../src/venues/kalshi/fetch-candlesticks.ts';
import { readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';

type CandlesticksOf = Parameters<KalshiClient['listCandlesticks']>[0];

const MINUTE = 1_786_293_600;
/** An Eastern midnight in summer. */
const DAY = 1_760_500_800;
const signal = new AbortController().signal;

const dollars = { open_dollars: '0.4300', high_dollars: '0.4500', low_dollars: '0.4100', close_dollars: '0.4400' };
const traded = { open: '0.43', high: '0.45', low: '0.41', close: '0.44' };

describe('parseCandlesticks', () => {
  it('reads the fixed-point keys, and periods without trades, oldest first', () => {
    const rows = [
      { end_period_ts: MINUTE + 120, price: { previous_dollars: '0.4400' }, volume_fp: '0.00' },
      { end_period_ts: MINUTE + 60, price: { ...dollars, mean_dollars: '0.4300' }, volume_fp: '12.61' },
    ];
    expect(parseCandlesticks(rows, 1)).toEqual([
      { start: MINUTE, end: MINUTE + 60, ...traded, volume: '12.61' },
      { start: MINUTE + 60, end: MINUTE + 120, volume: '0' },
    ]);
  });

  it('reads dollars beside cents, and nulls as absent', () => {
    const price = { ...dollars, open: 43, high: 45, low: 41, close: 44, max: null, previous: 40 };
    const none = { open: null, high: null, low: null, close: null, previous: 44, previous_dollars: '0.4400' };
    const rows = [
      { end_period_ts: MINUTE, price, volume: 28 },
      { end_period_ts: MINUTE + 3600, price: none, volume: 0 },
    ];
    expect(parseCandlesticks(rows, 60)).toEqual([
      { start: MINUTE - 3600, end: MINUTE, ...traded, volume: '28' },
      { start: MINUTE, end: MINUTE + 3600, volume: '0' },
    ]);
  });

  it('reads text without a suffix as dollars, and numbers alone as cents', () => {
    const archived = { open: '0.4300', high: '0.4500', low: '0.4100', close: '0.4400', mean: null };
    const cents = { open: 43, high: 45, low: 41, close: 44 };
    const rows = [
      { end_period_ts: MINUTE, price: archived, volume: '7.00' },
      { end_period_ts: MINUTE + 60, price: cents, volume: 7 },
    ];
    expect(parseCandlesticks(rows, 1)).toEqual([
      { start: MINUTE - 60, end: MINUTE, ...traded, volume: '7' },
      { start: MINUTE, end: MINUTE + 60, ...traded, volume: '7' },
    ]);
  });

  it('starts a day at the end of the day before, and after a gap 24 hours before its own end', () => {
    const day = (end: number) => ({ end_period_ts: end, price: {}, volume_fp: '0.00' });
    const autumn = DAY + 90_000;
    const later = autumn + 3 * 86_400;
    const starts = parseCandlesticks([day(DAY), day(autumn), day(later)], 1440).map(({ start }) => start);
    expect(starts).toEqual([DAY - 86_400, DAY, later - 86_400]);
  });

  it.each([
    ['an invalid end', { end_period_ts: '5', price: {}, volume_fp: '1' }],
    ['a price above 1', { end_period_ts: MINUTE, price: { ...dollars, high_dollars: '1.2' }, volume_fp: '1' }],
    ['three prices of four', { end_period_ts: MINUTE, price: { ...dollars, low_dollars: null }, volume_fp: '1' }],
    ['a negative volume', { end_period_ts: MINUTE, price: dollars, volume_fp: '-1' }],
    ['no volume', { end_period_ts: MINUTE, price: dollars }],
    ['no object', 7],
  ])('throws on %s instead of skipping the candle', (_, row) => {
    expect(() => parseCandlesticks([row], 1)).toThrow(VenueError);
  });
});

const folder = venueDataFolder('kalshi');
const read = (file: string) => readRecordedJson(join(folder ?? '', file));
type Rows = { candlesticks: unknown[] };
const withTrades = (candles: readonly Candlestick[]) => candles.filter(({ open }) => open !== undefined);

describe.skipIf(folder === undefined)('recorded candlesticks', () => {
  it('contain 90 days in the shape of January 2026: 22 without trades, one of 25 hours', () => {
    const { response } = read('2026-01_golden/series_candlesticks_response.json') as { response: Rows };
    const candles = parseCandlesticks(response.candlesticks, 1440);
    expect(candles).toHaveLength(90);
    expect(withTrades(candles)).toHaveLength(90 - 22);
    expect(withTrades(candles)[0]).toMatchObject({ open: '0.11', high: '0.11', low: '0.08', close: '0.08' });
    const lengths = candles.map(({ start, end }) => end - start);
    expect(lengths.filter((seconds) => seconds !== 86_400)).toEqual([90_000]);
    const batch = read('2026-01_golden/candlesticks_batch_response.json') as { response: { markets: Rows[] } };
    expect(parseCandlesticks(batch.response.markets[0]?.candlesticks ?? [], 1440)).toEqual(candles);
    const event = read('2026-01_golden/event_candlesticks_response.json') as {
      response: { market_candlesticks: unknown[][] };
    };
    const ofEvent = parseCandlesticks(event.response.market_candlesticks[0] ?? [], 1440);
    expect(ofEvent.slice(1).filter((each) => each.end < 1_768_000_000)).toEqual(
      candles.filter((each) => each.end > (ofEvent[0]?.end ?? 0) && each.end < 1_768_000_000),
    );
  });

  it('contain 50 minutes of August 2026: 4 without trades', () => {
    const { candlesticks_response: answer } = read('2026-08_cockpit/candlesticks_pregame_mlb.json') as {
      candlesticks_response: Rows;
    };
    const candles = parseCandlesticks(answer.candlesticks, 1);
    expect([candles.length, withTrades(candles).length]).toEqual([50, 46]);
    expect(candles[0]).toMatchObject({ start: 1_786_293_540, end: 1_786_293_600, open: '0.43', volume: '22.36' });
    expect(candles.every(({ open, volume }) => (open === undefined) === (volume === '0'))).toBe(true);
    const { markets } = read('2026-08_cockpit/candlesticks_mlb.json') as { markets: Record<string, Rows> };
    for (const { candlesticks } of Object.values(markets)) {
      const minutes = parseCandlesticks(candlesticks, 1);
      expect(minutes).toHaveLength(16);
      expect(minutes.every(({ open, volume }) => (open === undefined) === (volume === '0'))).toBe(true);
    }
  });
});

describe('fetchCandlesticks', () => {
  const request = { ticker: 'KXT-1', seriesTicker: 'KXT', periodMinutes: 1 as const };
  const notFound = new VenueError('kalshi', 'http_status', 'HTTP 404', { retryable: false, statusCode: 404 });

  /** A venue with a candle at every whole period, both ends inclusive. */
  function venueOf(route: 'live' | 'archive' | 'nowhere', periodSeconds = 60) {
    const asked: (CandlesticksOf & Query)[] = [];
    const listCandlesticks = async (of: CandlesticksOf, parameters: Query) => {
      asked.push({ ...of, ...parameters });
      if ((of.seriesTicker === undefined ? 'archive' : 'live') !== route) throw notFound;
      const rows: unknown[] = [];
      const from = Math.ceil(Number(parameters['start_ts']) / periodSeconds) * periodSeconds;
      for (let end = from; end <= Number(parameters['end_ts']); end += periodSeconds) {
        rows.push({ end_period_ts: end, price: {}, volume_fp: '0.00' });
      }
      return rows;
    };
    return { asked, listCandlesticks };
  }

  it('returns each candle of the range once, some thousands per request', async () => {
    const venue = venueOf('live');
    const range = { startSeconds: MINUTE, endSeconds: MINUTE + 600_000 };
    const candles = await fetchCandlesticks(venue, { ...request, ...range }, signal);
    expect(candles).toHaveLength(10_000);
    expect([candles[0]?.start, candles.at(-1)?.start]).toEqual([MINUTE, MINUTE + 600_000 - 60]);
    expect(venue.asked).toHaveLength(3);
    expect(venue.asked[0]).toEqual({
      ticker: 'KXT-1',
      seriesTicker: 'KXT',
      start_ts: MINUTE,
      end_ts: MINUTE + 240_000,
      period_interval: 1,
    });
  });

  it('finds the start of the first day of a range', async () => {
    const venue = venueOf('live', 86_400);
    const midnight = Math.ceil(DAY / 86_400) * 86_400;
    const range = { startSeconds: midnight, endSeconds: midnight + 2 * 86_400, periodMinutes: 1440 as const };
    const candles = await fetchCandlesticks(venue, { ...request, ...range }, signal);
    expect(candles.map(({ start }) => start)).toEqual([midnight, midnight + 86_400]);
    expect(venue.asked[0]?.['start_ts']).toBeLessThanOrEqual(midnight - 86_400);
  });

  it('uses the archive when the live route has no candles, and throws when neither has any', async () => {
    const range = { startSeconds: MINUTE, endSeconds: MINUTE + 300 };
    expect(await fetchCandlesticks(venueOf('archive'), { ...request, ...range }, signal)).toHaveLength(5);
    await expect(fetchCandlesticks(venueOf('nowhere'), { ...request, ...range }, signal)).rejects.toMatchObject({
      statusCode: 404,
    });
  });
});
