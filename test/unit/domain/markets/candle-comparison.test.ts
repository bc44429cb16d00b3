import { describe, expect, it } from 'vitest';
import { compareCandles } from '../../../../src/domain/markets/candle.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';

const candle = (start: number, close: string, volume = '3') => ({
  start,
  open: decimal('0.5'),
  high: decimal('0.9'),
  low: decimal('0.1'),
  close: decimal(close),
  volume: decimal(volume),
});

describe('the comparison of candles of two sources', () => {
  it('finds no difference between equal values with different digits', () => {
    expect(compareCandles([candle(60, '0.50')], [candle(60, '0.5', '3.00')])).toEqual([]);
  });

  it('lists differences by bucket and field, oldest first', () => {
    expect(
      compareCandles([candle(120, '0.4'), candle(60, '0.5')], [candle(60, '0.6', '4'), candle(120, '0.4')]),
    ).toEqual([
      { start: 60, field: 'close', ours: '0.5', theirs: '0.6' },
      { start: 60, field: 'volume', ours: '3', theirs: '4' },
    ]);
  });

  it('reports a bucket that one source lacks', () => {
    const found = compareCandles([], [candle(60, '0.5')]);
    expect(found.map(({ field }) => field)).toEqual(['open', 'high', 'low', 'close', 'volume']);
    expect(found[0]).toEqual({ start: 60, field: 'open', theirs: '0.5' });
  });

  it('reports a price that only one source has', () => {
    const { open, ...withoutOpen } = candle(60, '0.5');
    expect(compareCandles([candle(60, '0.5')], [withoutOpen])).toStrictEqual([
      { start: 60, field: 'open', ours: open },
    ]);
    expect(compareCandles([withoutOpen], [candle(60, '0.5')])).toStrictEqual([
      { start: 60, field: 'open', theirs: open },
    ]);
    expect(compareCandles([withoutOpen], [withoutOpen])).toEqual([]);
  });

  it('lists differences oldest first, whichever source has the bucket', () => {
    const found = compareCandles([candle(180, '0.5'), candle(60, '0.5')], [candle(120, '0.5'), candle(1000, '0.5')]);
    expect([...new Set(found.map(({ start }) => start))]).toEqual([60, 120, 180, 1000]);
  });

  it('ignores a bucket without trades', () => {
    expect(compareCandles([], [{ start: 60, close: decimal('0.3'), volume: decimal('0.00') }])).toEqual([]);
  });
});
