import { describe, expect, it } from 'vitest';
import { advance, openWalk } from '../../../../src/venues/limitless/walk-markets.ts';

const NOW_MS = Date.UTC(2026, 10, 1);
const SETTINGS = { pageSize: 25, closedEveryMs: 300_000 };
const page = (slug: string, ageMs = 0) => ({ rows: [{ slug }], isEmpty: false, ageMs, observedAt: 0 });
const END = { rows: [], isEmpty: true, ageMs: 0, observedAt: 0 };

/** The steps of one walk over these pages. */
function walk(pages: readonly ReturnType<typeof page>[], stored: unknown = null, nowMs = NOW_MS) {
  let position: unknown = stored;
  return pages.map((answer) => {
    const step = advance(openWalk(position, nowMs, SETTINGS), answer, nowMs, SETTINGS);
    position = JSON.parse(JSON.stringify(step.position));
    return step;
  });
}

describe('the walk over the listing', () => {
  it('is a sweep that ends with the first empty page', () => {
    const steps = walk([page('a'), page('b'), END]);
    expect(steps.map(({ more }) => more)).toEqual([true, true, false]);
    expect(steps.map(({ sweep }) => [sweep.startedAtMs, sweep.ended])).toEqual([
      [NOW_MS, false],
      [NOW_MS, false],
      [NOW_MS, true],
    ]);
  });

  it('covers closed markets now and then', () => {
    const [, first] = walk([page('a'), END]);
    expect(first?.sweep.includesClosed).toBe(true);
    const [, soon] = walk([page('a'), END], first?.position, NOW_MS + 60_000);
    expect(soon?.sweep).toMatchObject({ ended: true });
    expect(soon?.sweep).not.toHaveProperty('includesClosed');
    const [, later] = walk([page('a'), END], soon?.position, NOW_MS + 300_000);
    expect(later?.sweep.includesClosed).toBe(true);
  });

  it.each([
    ['the venue lists nothing', [END]],
    ['the venue repeats a page', [page('a'), page('a')]],
  ])('ends no sweep when %s', (why, pages) => {
    const last = walk(pages).at(-1);
    expect(last).toMatchObject({ more: false, cutShort: why, sweep: { ended: false } });
  });

  it('names the age of the oldest page that a cache answered with', () => {
    const steps = walk([page('a', 20_000), page('b', 5_000), END]);
    expect(steps.at(-1)?.sweep.madeSinceMs).toBe(NOW_MS - 20_000);
  });
});
