import { expect, it } from 'vitest';
import { easternMidnightFrom } from '../../../sim/kalshi/eastern-days.ts';

const seconds = (text: string) => Date.parse(text) / 1000;

it('a day of New York has 23 hours when the clocks go forward and 25 when they go back', () => {
  const ends = ['2026-03-07T05:00:00Z', '2026-03-08T05:00:00Z', '2026-03-09T04:00:00Z'].map(seconds);
  expect(ends.map(easternMidnightFrom)).toEqual(ends);
  expect(easternMidnightFrom(seconds('2026-03-08T05:00:01Z'))).toBe(seconds('2026-03-09T04:00:00Z'));
  // As in the recording: 04:00 before 2025-11-02, 05:00 after it.
  expect(easternMidnightFrom(seconds('2025-11-02T04:00:01Z'))).toBe(seconds('2025-11-03T05:00:00Z'));
  expect(easternMidnightFrom(seconds('2025-11-01T04:00:01Z'))).toBe(seconds('2025-11-02T04:00:00Z'));
});
