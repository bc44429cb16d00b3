import { describe, expect, it } from 'vitest';
import { parseAgeMs } from '../../../src/venues/http/age.ts';

describe('parseAgeMs', () => {
  it.each([
    ['0', 0],
    ['219', 219_000],
    [' 7 ', 7_000],
    [['3', '9'], 3_000],
    ['86400', 86_400_000],
    ['3, 9', 3_000],
  ])('reads %j', (header, ms) => {
    expect(parseAgeMs(header)).toBe(ms);
  });

  it.each(['', '-1', '1.5', 'old', '86401', '9'.repeat(400)])('returns the longest age for %j', (header) => {
    expect(parseAgeMs(header)).toBe(86_400_000);
  });

  it('returns undefined without a header', () => {
    expect(parseAgeMs(undefined)).toBeUndefined();
  });
});
