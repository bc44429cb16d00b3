import { expect, it } from 'vitest';
import { MAX_GAPS } from '../../../api/contract/feed.ts';
import { lineGaps } from '../../../api/pages/console/chart/gaps.ts';

const HOUR = 3_600;
const NOW = 1_000 * HOUR;
const WHY = 'the feed lost changes; polls continued';

/** An hour of coverage with a gap of the feed. */
const hourAt = (hour: number) => ({
  from: hour * HOUR,
  to: (hour + 1) * HOUR,
  kind: 'gap' as const,
  why: WHY,
  isCarried: false,
  breaks: false,
});

it.each([
  ['replaces hours by the exact gaps of the feed when the answer has all of them', 3, []],
  ['keeps the hours behind the exact gaps when the answer has the oldest ones only', MAX_GAPS, [[900, 901]]],
])('lineGaps %s', (_, count, kept) => {
  const feedGaps = Array.from({ length: count }, (__, at) => ({ start: at * HOUR + 60, end: at * HOUR + 120 }));
  const series = { firstQuote: 0, feedGaps } as unknown as Parameters<typeof lineGaps>[0];
  const hours = [...feedGaps.map((__, at) => hourAt(at)), ...(kept.length > 0 ? [hourAt(900)] : [])];
  const found = lineGaps(series, { prices: hours, trades: [] }, NOW * 1_000);
  const exact = feedGaps.map(({ start, end }) => [start, end]);
  const whole = found.map(({ from, to }) => [from, to]);
  expect(whole.filter(([from = 0]) => from % HOUR === 60)).toEqual(exact);
  expect(whole.filter(([from = 0, to = 0]) => from >= count * HOUR && to > 0)).toEqual(
    kept.map(([from = 0, to = 0]) => [from * HOUR, to * HOUR]),
  );
});
