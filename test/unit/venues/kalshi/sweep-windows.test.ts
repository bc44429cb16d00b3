import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterPage, afterRefusal, nextFilters, openParts } from '../../../../src/venues/kalshi/sweep-windows.ts';

type Part = Parameters<typeof nextFilters>[0];

const NOW_MS = Date.UTC(2026, 10, 22, 12);
const NOW = NOW_MS / 1000;

/** The parts of a sweep that read one page of each part, with these creation times on each page of each window. */
function swept(parts: readonly Part[], createdOf: (part: Part) => readonly number[][]): Part[] {
  return parts.map((part) =>
    createdOf(part).reduce((at, created, page) => afterPage(at, `cursor ${page}`, created).part, part),
  );
}

const windowsOf = (parts: readonly Part[]) => parts.filter(({ listing }) => listing === 'window');

/** Whether the filters of a part accept this creation time, in seconds with a fraction. `isInclusive`: bounds belong to the range. */
function accepts(part: Part, created: number, isInclusive: boolean): boolean {
  const { min_created_ts: min = Number.NEGATIVE_INFINITY, max_created_ts: max = Number.POSITIVE_INFINITY } =
    nextFilters(part);
  const [low, high] = [Number(min), Number(max)];
  return isInclusive ? created >= low && created <= high : created > low && created < high;
}

const creations = fc.double({ min: -62_135_596_800, max: NOW + 86_400, noNaN: true });
const seconds = fc.integer({ min: NOW - 400 * 86_400, max: NOW });
/** Pages of creation times in any order, as the windows of the last sweep listed them. */
const lastSweeps = fc.array(fc.array(seconds, { minLength: 1, maxLength: 4 }), { maxLength: 200 });

describe('openParts', () => {
  it('covers every creation time whatever the bounds include, at the first sweep and after any sweep', () => {
    fc.assert(
      fc.property(lastSweeps, fc.array(creations, { minLength: 1 }), fc.boolean(), (pages, created, isInclusive) => {
        const first = openParts(NOW_MS, []);
        const next = openParts(
          NOW_MS + 60_000,
          swept(windowsOf(first).slice(0, 1), () => pages),
        );
        for (const parts of [first, next])
          for (const each of created)
            expect(windowsOf(parts).some((part) => accepts(part, each, isInclusive))).toBe(true);
      }),
    );
  });

  it('lists a market in two windows only when it was created within a second of their bound', () => {
    fc.assert(
      fc.property(lastSweeps, creations, (pages, created) => {
        const parts = windowsOf(
          openParts(
            NOW_MS,
            swept(windowsOf(openParts(NOW_MS, [])).slice(0, 1), () => pages),
          ),
        );
        const isNearBound = parts.some(({ to }) => to !== undefined && Math.abs(created - to) <= 1);
        if (isNearBound) return;
        expect(parts.filter((part) => accepts(part, created, true))).toHaveLength(1);
      }),
    );
  });

  it('gives each window about the same number of pages', () => {
    for (const pages of [5, 30, 104, 400]) {
      // Most markets are young: the creation times are exponential in their age.
      const listed = Array.from({ length: pages }, (_, page) =>
        Array.from({ length: 1_000 }, (__, row) =>
          Math.floor(NOW - 1.09 ** (((page * 1_000 + row) / (pages * 1_000)) * 200)),
        ),
      );
      const all = listed.flat();
      const [single] = windowsOf(openParts(NOW_MS, []));
      const windows = windowsOf(
        openParts(
          NOW_MS,
          swept(single ? [single] : [], () => listed),
        ),
      );
      const pagesOf = windows.map(
        ({ from = 0, to = Number.POSITIVE_INFINITY }) => all.filter((at) => at >= from && at < to).length / 1_000,
      );
      expect(Math.max(...pagesOf)).toBeLessThanOrEqual(Math.max(8, Math.min(18, (pages / 12) * 1.6)));
      if (pages >= 30) expect(windows.length).toBeGreaterThan(8);
      else expect(windows.length).toBeLessThanOrEqual(2);
    }
  });

  it('lists everything as one part after a sweep of a few pages, without a second listing of the same', () => {
    const last = swept(openParts(NOW_MS, []), ({ listing }) => (listing === 'window' ? [] : [[NOW]]));
    expect(openParts(NOW_MS, last).map(({ listing, from, to }) => [listing, from, to])).toEqual([
      ['window', undefined, undefined],
      ['paused', undefined, undefined],
    ]);
  });

  it('continues the listing without windows where the last sweep left it', () => {
    const parts = openParts(NOW_MS, []);
    const rest = parts.find(({ listing }) => listing === 'rest') as Part;
    const pages = ['a', 'b', 'c', 'd'];
    let step = { part: rest, more: true };
    for (const cursor of pages) {
      expect(step.more).toBe(true);
      step = afterPage(step.part, cursor, [NOW]);
    }
    expect(step).toMatchObject({ more: false, part: { cursor: 'd' } });
    const others = swept(windowsOf(parts), () => Array.from({ length: 3 }, () => [NOW - 1, NOW, NOW + 1, NOW + 2]));
    expect(openParts(NOW_MS, [...others, step.part])).toContainEqual({ ...rest, cursor: 'd' });
  });

  it('reads one listing after a refused window, and windows again after that', () => {
    const parts = openParts(NOW_MS, []);
    const refused = parts.map((part) => (part.listing === 'window' ? afterRefusal(part, 'HTTP 400').part : part));
    const plain = openParts(NOW_MS, refused);
    expect(windowsOf(plain).map(nextFilters)).toEqual([{ status: 'open' }]);
    const pages = Array.from({ length: 60 }, (_, page) => [NOW - page * 1_000, NOW - page * 1_000 - 500]);
    expect(
      windowsOf(
        openParts(
          NOW_MS,
          swept(plain, () => pages),
        ),
      ).length,
    ).toBeGreaterThan(5);
  });

  it('ignores parts of another format', () => {
    expect(openParts(NOW_MS, [{ v: 1 }, null, 'x'])).toEqual(openParts(NOW_MS, []));
  });
});

describe('a part', () => {
  const [, second] = windowsOf(openParts(NOW_MS, [])) as [Part, Part];

  it('begins again without its pages when the venue repeats its cursor, and ends after two restarts', () => {
    let step = afterPage(second, 'a', [NOW]);
    for (const restarts of [1, 2]) {
      step = afterPage(step.part, 'a', [NOW]);
      expect(step).toEqual({ part: { ...second, restarts }, more: true });
      step = afterPage(step.part, 'a', [NOW]);
    }
    expect(afterPage(step.part, 'a', [NOW])).toMatchObject({ more: false, cutShort: 'the venue repeats a cursor' });
  });

  it('begins again when its cursor expires, and ends when the venue refuses its filters', () => {
    const { part } = afterPage(second, 'a', [NOW]);
    expect(afterRefusal(part, 'HTTP 400')).toEqual({ part: { ...second, restarts: 1 }, more: true });
    expect(afterRefusal(second, 'HTTP 400')).toEqual({
      part: { ...second, isRefused: true },
      more: false,
      cutShort: 'HTTP 400',
    });
  });

  it('ends at a page without a cursor', () => {
    const { part } = afterPage(second, 'a', [NOW]);
    expect(afterPage(part, undefined, [])).toEqual({ part: { ...second, pages: 2, samples: [NOW, NOW] }, more: false });
  });
});
