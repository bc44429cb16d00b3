import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatScaled, formatThreeDecimals, parseScaled } from '../../../sim/wire/decimal-text.ts';
import { isoMicros, spacedTime } from '../../../sim/wire/time-text.ts';

describe('formatScaled', () => {
  it.each([
    [90, 100, '0.9'],
    [5, 1000, '0.005'],
    [11, 2000, '0.0055'],
    [131, 200, '0.655'],
    [40_956_000_000, 1_000_000, '40956'],
    [16_998_400, 1_000_000, '16.9984'],
    [0, 100, '0'],
    [-6, 100, '-0.06'],
  ])('writes %i / %i as %s', (units, scale, text) => {
    expect(formatScaled(units, scale)).toBe(text);
  });

  it('is the inverse of parseScaled', () => {
    fc.assert(
      fc.property(fc.nat(2_000_000_000), fc.constantFrom(100, 1000, 1_000_000), (units, scale) => {
        expect(parseScaled(formatScaled(units, scale), scale)).toBe(units);
      }),
    );
  });
});

it.each(['', 'x', '-0.5', '0.5e1', '.5', '1.'])('parseScaled rejects %j', (text) => {
  expect(parseScaled(text, 100)).toBeUndefined();
});

it('parseScaled rejects a value between two ticks', () => {
  expect(parseScaled('0.505', 100)).toBeUndefined();
  expect(parseScaled('0.5000', 100)).toBe(50);
});

it('formatThreeDecimals writes three decimals for every tick size', () => {
  expect([formatThreeDecimals(43, 100), formatThreeDecimals(6, 1000)]).toEqual(['0.430', '0.006']);
});

it('the time texts have the formats of the venue', () => {
  expect(isoMicros(1_783_024_706, 375_208)).toBe('2026-07-02T20:38:26.375208Z');
  expect(isoMicros(1_783_024_706, 500_000)).toBe('2026-07-02T20:38:26.5Z');
  expect(spacedTime(1_784_851_216)).toBe('2026-07-24 00:00:16+00');
});
