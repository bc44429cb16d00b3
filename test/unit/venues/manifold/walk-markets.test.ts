import { describe, expect, it } from 'vitest';
import {
  advance,
  afterFailure,
  closeSweep,
  hasMore,
  isListing,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  openWalk,
  withoutPending,
  withoutSweep,
} from '../../../../src/venues/manifold/walk-markets.ts';

const NOW = 1_790_000_000_000;
const DAY_MS = 86_400_000;
const SETTINGS: MarketWalkSettings = {
  pageSize: 3,
  fullWalkEveryMs: 3_600_000,
  answersOfResolvedMs: 30 * DAY_MS,
  maxRecentPages: 4,
  answersPerCall: 2,
};

interface Row {
  id: string;
  createdTime: number;
  lastUpdatedTime?: number;
  outcomeType: string;
  mechanism: string;
  isResolved: boolean;
  resolutionTime?: number;
  closeTime?: number;
}

function row(id: string, createdAgo: number, more: Partial<Row> = {}): Row {
  const created = NOW - createdAgo;
  const kind = { outcomeType: 'BINARY', mechanism: 'cpmm-1', isResolved: false };
  return { id, createdTime: created, lastUpdatedTime: created, ...kind, ...more };
}

function multiple(id: string, createdAgo: number, more: Partial<Row> = {}): Row {
  return row(id, createdAgo, { outcomeType: 'MULTIPLE_CHOICE', mechanism: 'cpmm-multi-1', ...more });
}

/** Walks to the end over a listing with the venue's paging: strictly below the time of `before`. */
function walk(stored: unknown, rows: readonly Row[], nowMs = NOW, settings = SETTINGS) {
  let at: MarketPosition = openWalk(stored, nowMs, settings);
  const listed: string[] = [];
  const pages: string[] = [];
  const cuts: string[] = [];
  const sweeps: { startedAtMs: number; ended: boolean }[] = [];
  const close = (after: MarketPosition) => {
    const { position, sweep } = closeSweep(after);
    if (sweep) sweeps.push(sweep);
    return position;
  };
  const kind = at.walk?.kind;
  for (let calls = 0; hasMore(at); calls += 1) {
    if (calls > 100) throw new Error('no end');
    at = JSON.parse(JSON.stringify(openWalk(at, nowMs, settings)));
    if (!isListing(at)) {
      pages.push(...at.pending.slice(0, settings.answersPerCall));
      at = close(withoutPending(at, settings.answersPerCall));
      continue;
    }
    const { sort, before, limit } = nextQuery(at, settings);
    const timeOf = (each: Row) => (sort === 'created-time' ? each.createdTime : (each.lastUpdatedTime ?? 0));
    const anchor = rows.find((each) => each.id === before);
    const below = rows.filter((each) => !anchor || timeOf(each) < timeOf(anchor));
    const page = below.sort((a, b) => timeOf(b) - timeOf(a)).slice(0, limit);
    const next = advance(at, page, nowMs, settings);
    listed.push(...next.fresh.map((each) => (each as Row).id));
    if (next.cutShort) cuts.push(next.cutShort);
    at = close(next.position);
  }
  return { listed, pages, cuts, sweeps, position: at, kind };
}

describe('the walk over the catalog', () => {
  it('visits every market once, even when a page ends between markets of one millisecond', () => {
    const rows = [row('a', 10), row('b', 20), row('c', 30), row('d', 30), row('e', 30), row('f', 40), row('g', 50)];
    const { listed, kind, cuts } = walk(null, rows, NOW, { ...SETTINGS, pageSize: 4 });
    expect(kind).toBe('full');
    expect(listed).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect(cuts).toEqual([]);
  });

  it('lists by latest change between full walks, down to the last change seen', () => {
    const rows = Array.from({ length: 20 }, (_, index) => row(`m${index}`, 200_000 + index * 60_000));
    const first = walk(null, rows);
    const later = NOW + 120_000;
    const second = walk(first.position, rows, later);
    expect(second.kind).toBe('recent');
    expect(second.listed.length).toBeLessThan(10);
    const changed = rows.map((each) => (each.id === 'm19' ? { ...each, lastUpdatedTime: later - 5_000 } : each));
    expect(walk(second.position, changed, later).listed[0]).toBe('m19');
  });

  it('reads a change that the venue shows late', () => {
    const rows = [row('a', 400_000), row('b', 500_000)];
    const first = walk(null, rows);
    const second = walk(first.position, rows, NOW + 60_000);
    // Stamped before the second walk, shown after it.
    const lagging = [...rows, row('c', 350_000)];
    expect(walk(second.position, lagging, NOW + 120_000).listed).toContain('c');
  });

  it('begins a full walk after its interval', () => {
    const rows = [row('a', 10)];
    const { position } = walk(null, rows);
    expect(walk(position, rows, NOW + 3_599_999).kind).toBe('recent');
    expect(walk(position, rows, NOW + 3_600_000).kind).toBe('full');
  });

  it('reads the same changes again after a walk by change was cut short', () => {
    const first = walk(null, [row('old', DAY_MS)]);
    const busy = Array.from({ length: 40 }, (_, index) => row(`m${index}`, -60_000 - index * 100));
    const later = NOW + 120_000;
    const second = walk(first.position, busy, later);
    expect(second.cuts).toEqual(['recent walk: more than 4 changed pages']);
    expect(second.position.mark).toBe(first.position.mark);
  });

  it('ends when the venue repeats a page', () => {
    const at = openWalk(null, NOW, SETTINGS);
    const page = [row('a', 10), row('b', 20), row('c', 30)];
    if (!isListing(at)) throw new Error('not listing');
    const second = advance(at, page, NOW, SETTINGS).position;
    if (!isListing(second)) throw new Error('not listing');
    const third = advance(second, page, NOW, SETTINGS);
    expect(third.cutShort).toBe('full walk: the venue repeats a page');
    expect(hasMore(third.position)).toBe(false);
  });

  it('ends when the venue repeats its only market', () => {
    let at = openWalk(null, NOW, SETTINGS);
    for (let calls = 0; isListing(at); calls += 1) {
      expect(calls).toBeLessThan(3);
      at = advance(at, [row('a', 10)], NOW, SETTINGS).position;
    }
  });

  it('ends at a page without ids', () => {
    const at = openWalk(null, NOW, SETTINGS);
    if (!isListing(at)) throw new Error('not listing');
    expect(advance(at, [{}, null, 5], NOW, SETTINGS).cutShort).toBe('full walk: a page without ids');
  });
});

describe('sweeps', () => {
  const many = Array.from({ length: 7 }, (_, index) => row(`m${index}`, 1_000 + index));

  it('are the pages of a full walk, pending markets included, and end with the last page', () => {
    const binaries = walk(null, many);
    expect(binaries.sweeps.map(({ ended }) => ended)).toEqual([...binaries.sweeps.slice(1).map(() => false), true]);
    expect(new Set(binaries.sweeps.map(({ startedAtMs }) => startedAtMs))).toEqual(new Set([NOW]));
    const answered = walk(null, [...many, multiple('x', 2_000), multiple('y', 2_001), multiple('z', 2_002)]);
    expect(answered.pages).toEqual(['x', 'y', 'z']);
    expect(answered.sweeps.filter(({ ended }) => ended)).toHaveLength(1);
    expect(answered.sweeps.at(-1)?.ended).toBe(true);
    expect(walk(binaries.position, many, NOW + 60_000).sweeps).toEqual([]);
  });

  it('begin anew with each full walk', () => {
    const { position } = walk(null, many);
    const { sweeps } = walk(position, many, NOW + 3_600_000);
    expect(sweeps.at(-1)).toEqual({ startedAtMs: NOW + 3_600_000, ended: true });
  });

  it('never end when the listing was cut short or is empty', () => {
    expect(walk(null, []).sweeps.filter(({ ended }) => ended)).toEqual([]);
    const first = openWalk(null, NOW, SETTINGS);
    if (!isListing(first)) throw new Error('not listing');
    const second = advance(first, many.slice(0, 3), NOW, SETTINGS).position;
    if (!isListing(second)) throw new Error('not listing');
    const cut = advance(second, many.slice(0, 3), NOW, SETTINGS);
    expect(cut.cutShort).toMatch(/repeats a page/);
    expect(closeSweep(cut.position).sweep).toBeUndefined();
  });
});

describe('a market that fails in the listing', () => {
  const many = Array.from({ length: 7 }, (_, index) => row(`m${index}`, 1_000 + index));
  const listing = (stored: unknown, nowMs = NOW) => {
    const at = openWalk(stored, nowMs, SETTINGS);
    if (!isListing(at)) throw new Error('not listing');
    return at;
  };

  it('ends the walk without a sweep, and the next full walk is a sweep', () => {
    const second = listing(advance(listing(null), many.slice(0, 3), NOW, SETTINGS).position);
    const after = afterFailure(second);
    expect({ more: hasMore(after), sweep: closeSweep(after).sweep }).toEqual({ more: false, sweep: undefined });
    expect(after).toEqual({ v: 1, fullWalkAtMs: NOW, mark: NOW - 60_000, pending: [] });
    expect(walk(after, many, NOW + 3_600_000).sweeps.at(-1)?.ended).toBe(true);
  });

  it('keeps the mark of a walk by change', () => {
    const { position } = walk(null, many);
    const changed = many.map((each) => ({ ...each, lastUpdatedTime: NOW + 1_000 }));
    const recent = listing(position, NOW + 60_000);
    const next = advance(recent, changed.slice(0, 3), NOW + 60_000, SETTINGS);
    expect(next.position.walk?.nextMark).toBe(NOW + 1_000);
    expect(afterFailure({ ...recent, ...next.position, walk: next.position.walk ?? recent.walk }).mark).toBe(
      position.mark,
    );
  });

  it('lets no sweep end that read a narrowed page', () => {
    const last = advance(withoutSweep(listing(null)), [], NOW, SETTINGS);
    expect(closeSweep(last.position).sweep).toBeUndefined();
  });
});

describe('new markets', () => {
  const known = [row('old', DAY_MS), multiple('old-multiple', DAY_MS)];

  it('are read from their own pages once, binary ones too', () => {
    const first = walk(null, known);
    expect(first.pages).toEqual(['old-multiple']);
    const later = NOW + 120_000;
    const rows = [row('new', -100_000), row('changed', DAY_MS, { lastUpdatedTime: NOW + 115_000 }), ...known];
    const second = walk(first.position, rows, later);
    expect(second.pages).toEqual(['new']);
    const third = walk(second.position, [row('newer', -200_000), ...rows], later + 120_000);
    expect(third.pages).toEqual(['newer']);
  });

  it('of other kinds are not read', () => {
    const { position } = walk(null, known);
    const poll = row('poll', -100_000, { outcomeType: 'POLL', mechanism: 'none' });
    expect(walk(position, [poll, ...known], NOW + 120_000).pages).toEqual([]);
  });
});

describe('answers', () => {
  const old = 40 * DAY_MS;

  it('are read for unresolved and lately resolved markets in the first walk', () => {
    const rows = [
      multiple('open', old),
      multiple('resolved-lately', old, { isResolved: true, resolutionTime: NOW - DAY_MS }),
      multiple('resolved-long-ago', old, { isResolved: true, resolutionTime: NOW - 35 * DAY_MS }),
      row('binary', old),
      multiple('dpm', old, { mechanism: 'dpm-2' }),
    ];
    expect(walk(null, rows).pages.sort()).toEqual(['open', 'resolved-lately']);
  });

  it('are read again in later full walks only for markets that changed or closed since', () => {
    const first = walk(null, [multiple('a', old), multiple('b', old), multiple('c', old)]);
    const later = NOW + 7_200_000;
    const rows = [
      multiple('a', old),
      multiple('b', old, { closeTime: NOW + 3_600_000 }),
      multiple('c', old, { lastUpdatedTime: NOW + 1_000 }),
    ];
    const full = walk(first.position, rows, later);
    expect(full.kind).toBe('full');
    expect(full.pages.sort()).toEqual(['b', 'c']);
  });

  it('are read between full walks for all markets that changed', () => {
    const first = walk(null, [row('a', old)]);
    const rows = [row('a', old), multiple('b', old, { lastUpdatedTime: NOW + 1_000 })];
    expect(walk(first.position, rows, NOW + 60_000).pages).toEqual(['b']);
  });

  it('are not read again for markets below the last change seen', () => {
    const rows = [row('a', old), multiple('b', old), multiple('c', old, { lastUpdatedTime: NOW - 300_000 })];
    const first = walk(null, rows);
    expect(walk(first.position, rows, NOW + 60_000)).toMatchObject({ kind: 'recent', pages: [] });
  });
});
