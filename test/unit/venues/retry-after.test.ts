import { describe, expect, it } from 'vitest';
import { parseRetryAfterMs } from '../../../src/venues/retry-after.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('parseRetryAfterMs', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    [['3', '9'], 3_000],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5_000],
    ['Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ])('reads %j', (header, ms) => {
    expect(parseRetryAfterMs(header, NOW)).toBe(ms);
  });

  it.each([undefined, '', 'later', '-5', '1.5x'])('returns undefined for %j', (header) => {
    expect(parseRetryAfterMs(header, NOW)).toBeUndefined();
  });
});
