import { describe, expect, it } from 'vitest';
import { parsePreciseVenueTimeMs, parseVenueTimeMs } from '../../../src/venues/venue-time.ts';

describe('parseVenueTimeMs', () => {
  it.each([
    ['2026-07-02T20:43:26.375208Z', Date.UTC(2026, 6, 2, 20, 43, 26, 375)],
    ['2026-07-25T05:51:39.54467Z', Date.UTC(2026, 6, 25, 5, 51, 39, 544)],
    ['2026-04-01T18:24:05.41Z', Date.UTC(2026, 3, 1, 18, 24, 5, 410)],
    ['2026-07-02T21:48:44Z', Date.UTC(2026, 6, 2, 21, 48, 44)],
    ['2026-07-24 00:00:16+00', Date.UTC(2026, 6, 24, 0, 0, 16)],
    ['2022-07-27 14:41:12.085+00', Date.UTC(2022, 6, 27, 14, 41, 12, 85)],
    ['2026-07-24 02:00:16+02', Date.UTC(2026, 6, 24, 0, 0, 16)],
    ['2026-07-23T19:30:00-04:30', Date.UTC(2026, 6, 24, 0, 0, 0)],
    ['2026-07-23T19:30:00-0430', Date.UTC(2026, 6, 24, 0, 0, 0)],
    ['2026-08-31', Date.UTC(2026, 7, 31)],
    ['2500-12-31', Date.UTC(2500, 11, 31)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
  ])('reads %s', (text, ms) => {
    expect(parseVenueTimeMs(text)).toBe(ms);
  });

  it.each([
    '',
    'soon',
    '2026-02-30T00:00:00Z',
    '2026-13-01',
    '2026-00-10',
    '2026-01-01T25:00:00Z',
    '2026-01-01T00:61:00Z',
    '0001-01-01T00:00:00Z',
    '1970-01-01T00:00:00Z',
    '20260101',
    '2026-07-24T00:00:16Z and more',
    1786275591068,
    null,
    undefined,
  ])('returns undefined for %s', (value) => {
    expect(parseVenueTimeMs(value)).toBeUndefined();
  });
});

describe('parsePreciseVenueTimeMs', () => {
  it.each([
    ['2026-07-25T05:51:39.54467Z', 544_670],
    ['2026-07-25T05:51:39.000001Z', 1],
    ['2026-07-25T05:51:39.999999999Z', 999_999],
    ['2026-07-25T07:51:39.25+02', 250_000],
  ])('keeps the microseconds of %s', (text, micros) => {
    expect(parsePreciseVenueTimeMs(text)).toBe((Date.UTC(2026, 6, 25, 5, 51, 39) * 1000 + micros) / 1000);
  });
});
