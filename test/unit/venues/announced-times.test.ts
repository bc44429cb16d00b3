import { describe, expect, it } from 'vitest';
import { announcedTimes } from '../../../src/venues/market-fields.ts';

const NOW = Date.UTC(2026, 10, 26);

describe('announcedTimes', () => {
  it('has whole milliseconds, and no time when it lies ahead of every clock', () => {
    const times = { resolved: NOW - 5_000.6, disputed: NOW + 300_000, settled: NOW + 300_001 };
    expect(announcedTimes(times, NOW)).toEqual({ resolved: NOW - 5_001, disputed: NOW + 300_000 });
  });
});
