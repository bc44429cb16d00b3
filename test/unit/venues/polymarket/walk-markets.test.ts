import { describe, expect, it } from 'vitest';
import type { MarketsAnswer, MarketsQuery } from '../../../../src/venues/polymarket/client.ts';
import {
  advance,
  afterFailure,
  afterRefusal,
  type MarketPosition,
  nextQuery,
  openWalk,
  switchListing,
} from '../../../../src/venues/polymarket/walk-markets.ts';

const SETTINGS = {
  pageSize: 10,
  fullWalkEveryMs: 600_000,
  firstClosedPages: 2,
  maxRecentPages: 4,
  maxCatchUpPages: 30,
};
const START = Date.UTC(2026, 0, 1);

interface Market {
  id: string;
  conditionId: string;
  closed: boolean;
  updatedAt: string;
}

/** The ids of a catalog's first page. */
const FIRST_PAGE = Array.from({ length: 10 }, (_, index) => ({ id: String(1_000 + index) }));

/** A Gamma catalog. A test may change each answer. */
class Catalog {
  markets: Market[] = [];
  nowMs = START;
  queries: MarketsQuery[] = [];
  bend: (answer: MarketsAnswer, query: MarketsQuery) => MarketsAnswer = (answer) => answer;

  add(count: number, closed = false): void {
    for (let each = 0; each < count; each += 1) {
      const id = String(1_000 + this.markets.length);
      this.markets.push({
        id,
        conditionId: `0x${id}`,
        closed,
        updatedAt: this.stamp(-30_000_000 + this.markets.length * 60_000),
      });
    }
  }

  touch(id: string, change: Partial<Market> = {}): void {
    const market = this.markets.find((each) => each.id === id);
    Object.assign(market ?? {}, change, { updatedAt: this.stamp(0) });
  }

  list(query: MarketsQuery): MarketsAnswer {
    this.queries.push(query);
    const listed = this.markets.filter((market) => market.closed === query.closed);
    if (query.recentFirst) listed.sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
    const start = query.listing === 'offset' ? (query.offset ?? 0) : Number(query.cursor ?? 0);
    const rows = listed.slice(start, start + query.limit);
    const next = start + query.limit;
    const answer = query.listing === 'keyset' && next < listed.length ? { rows, nextCursor: String(next) } : { rows };
    return this.bend(answer, query);
  }

  private stamp(offsetMs: number): string {
    return new Date(this.nowMs + offsetMs).toISOString();
  }
}

interface Walked {
  position: MarketPosition;
  ids: string[];
  cutShort: string[];
  /** The sweeps of the pages. */
  swept: { ids: string[]; startedAtMs: number; ended: boolean; madeSinceMs?: number }[];
}

function walk(catalog: Catalog, stored: unknown): Walked {
  let position = openWalk(JSON.parse(JSON.stringify(stored)), catalog.nowMs, SETTINGS);
  const ids: string[] = [];
  const cutShort: string[] = [];
  const swept: Walked['swept'] = [];
  for (let pages = 0; position.phases.length > 0; pages += 1) {
    if (pages > 500) throw new Error('the walk does not end');
    const answer = catalog.list(nextQuery(position, SETTINGS));
    ids.push(...answer.rows.map((row) => (row as Market).id));
    const step = advance(position, answer, catalog.nowMs, SETTINGS);
    if (step.cutShort !== undefined) cutShort.push(step.cutShort);
    if (step.sweep) swept.push({ ids: answer.rows.map((row) => (row as Market).id), ...step.sweep });
    position = JSON.parse(JSON.stringify(step.position));
  }
  return { position, ids, cutShort, swept };
}

describe('the market walk', () => {
  it('lists all open markets, then a bounded number of pages of closed ones by latest change', () => {
    const catalog = new Catalog();
    catalog.add(35);
    catalog.add(50, true);
    const { ids, cutShort } = walk(catalog, null);
    expect(ids.slice(0, 35).sort()).toEqual(catalog.markets.slice(0, 35).map((market) => market.id));
    expect(ids.slice(35)).toEqual(
      catalog.markets
        .slice(-20)
        .reverse()
        .map((market) => market.id),
    );
    expect(cutShort).toEqual([]);
  });

  it('sweeps the open markets in full walks only, and ends the sweep on their last page', () => {
    const catalog = new Catalog();
    catalog.add(35);
    catalog.add(15, true);
    const { position, swept } = walk(catalog, null);
    expect(swept.flatMap((page) => page.ids)).toEqual(catalog.markets.slice(0, 35).map((market) => market.id));
    expect(swept.map((page) => page.ended)).toEqual([false, false, false, true]);
    catalog.nowMs += 120_000;
    const next = walk(catalog, position);
    expect(next.swept).toEqual([]);
    catalog.nowMs += 600_000;
    const pages = walk(catalog, next.position).swept;
    expect(pages.map((page) => page.startedAtMs)).toEqual(pages.map(() => catalog.nowMs));
    expect(pages.filter((page) => page.ended)).toHaveLength(1);
  });

  const unended: [string, number, (answer: MarketsAnswer, query: MarketsQuery) => MarketsAnswer][] = [
    [
      'repeats its first page',
      30,
      (answer, { cursor }) => (cursor === '20' ? { ...answer, rows: FIRST_PAGE } : answer),
    ],
    ['repeats a cursor', 30, (answer, { cursor }) => (cursor ? { ...answer, nextCursor: cursor } : answer)],
    ['sends an empty page with a next one', 30, (answer, { cursor }) => (cursor ? { ...answer, rows: [] } : answer)],
    ['gives no cursor with a full first page', 30, ({ rows }) => ({ rows })],
    ['lists nothing at all', 0, (answer) => answer],
  ];
  it.each(unended)('never ends a sweep when the venue %s', (_, markets, bend) => {
    const catalog = new Catalog();
    catalog.add(markets);
    catalog.bend = (answer, query) => (query.closed ? answer : bend(answer, query));
    const { swept } = walk(catalog, null);
    expect(swept.length).toBeGreaterThan(0);
    expect(swept.filter((page) => page.ended)).toEqual([]);
  });

  it('never ends a sweep by offset, or when the rest was refused', () => {
    const catalog = new Catalog();
    catalog.add(25);
    const byOffset = walk(catalog, switchListing(openWalk(null, START, SETTINGS), 'offset'));
    expect(byOffset.swept.map((page) => page.ended)).toEqual([false, false, false, false]);
    const begun = openWalk(null, START, SETTINGS);
    const { position } = advance(begun, catalog.list(nextQuery(begun, SETTINGS)), START, SETTINGS);
    const worn = { ...position, phases: position.phases.map((phase) => ({ ...phase, restarts: 2 })) };
    expect(walk(catalog, afterRefusal(worn)).swept).toEqual([]);
    // After the restart, the phase lists everything.
    const again = walk(catalog, afterRefusal(position)).swept;
    expect(again.flatMap((page) => page.ids)).toHaveLength(25);
    expect(again.filter((page) => page.ended)).toHaveLength(1);
  });

  it('then walks only changed markets, and reads a close', () => {
    const catalog = new Catalog();
    catalog.add(200);
    catalog.add(50, true);
    let { position } = walk(catalog, null);
    catalog.nowMs += 120_000;
    ({ position } = walk(catalog, position));
    catalog.nowMs += 120_000;
    catalog.touch('1007');
    catalog.touch('1100', { closed: true });
    catalog.queries = [];
    const { ids } = walk(catalog, position);
    expect(ids).toContain('1007');
    expect(ids).toContain('1100');
    expect(catalog.queries.length).toBeLessThanOrEqual(4);
    expect(catalog.queries.every((query) => query.recentFirst)).toBe(true);
  });

  it('reads every change made during a full walk', () => {
    const catalog = new Catalog();
    catalog.add(40);
    let isTouched = false;
    catalog.bend = (answer, query) => {
      // The first market changes after its page was read; a later page then shows a newer change.
      if (!isTouched && query.cursor === '20') {
        isTouched = true;
        catalog.nowMs += 5_000;
        catalog.touch('1000');
        catalog.nowMs += 90_000;
        catalog.touch('1039');
      }
      return answer;
    };
    const { position } = walk(catalog, null);
    catalog.nowMs += 1_000;
    expect(walk(catalog, position).ids).toContain('1000');
  });

  it('walks everything again after its interval, and tests the keyset listing again', () => {
    const catalog = new Catalog();
    catalog.add(25);
    const { position } = walk(catalog, null);
    catalog.nowMs += 600_000;
    const fallen = { ...position, listing: 'offset' as const };
    catalog.queries = [];
    expect(new Set(walk(catalog, fallen).ids).size).toBe(25);
    expect(catalog.queries[0]).toMatchObject({ listing: 'keyset', recentFirst: false });
  });

  it('reads every market that closed during a long outage', () => {
    const catalog = new Catalog();
    catalog.add(150);
    const { position } = walk(catalog, null);
    catalog.nowMs += 86_400_000;
    for (const market of catalog.markets.slice(0, 120)) catalog.touch(market.id, { closed: true });
    expect(new Set(walk(catalog, position).ids).size).toBe(150);
  });

  it('stops when the venue repeats the first page endlessly', () => {
    const catalog = new Catalog();
    catalog.add(30);
    const first = catalog.list({ listing: 'keyset', closed: false, recentFirst: false, limit: 10 });
    catalog.bend = (answer, query) => (query.closed ? answer : first);
    const { cutShort } = walk(catalog, null);
    expect(cutShort).toContain('open markets: the venue repeats a page');
  });

  it('stops when the venue does not sort by latest change', () => {
    const catalog = new Catalog();
    catalog.add(60);
    const { position } = walk(catalog, null);
    catalog.nowMs += 10_000;
    for (const market of catalog.markets) catalog.touch(market.id);
    catalog.bend = (answer) => ({
      ...answer,
      rows: [
        ...answer.rows.slice(1),
        ...catalog.markets.slice(0, 1).map((market) => ({ ...market, updatedAt: '2030-01-01T00:00:00Z' })),
      ],
    });
    expect(walk(catalog, position).cutShort).toContain('open markets: the venue does not sort by latest change');
  });

  it('keeps its mark when a walk may not read all changes', () => {
    const catalog = new Catalog();
    catalog.add(5, true);
    catalog.add(100);
    const first = walk(catalog, null);
    catalog.nowMs += 90_000;
    for (const market of catalog.markets) catalog.touch(market.id);
    const second = walk(catalog, first.position);
    expect(second.cutShort).toEqual(['open markets: more than 4 changed pages']);
    expect(second.position.marks.open).toBe(first.position.marks.open);
    expect(second.position.marks.closed).toBeGreaterThan(first.position.marks.closed ?? 0);
  });

  it('reads by offset to an empty page, since a short page may be capped', () => {
    const catalog = new Catalog();
    catalog.add(23);
    catalog.bend = (answer, query) => ({ rows: answer.rows.slice(0, query.limit - 3) });
    let position = switchListing(openWalk(null, START, SETTINGS), 'offset');
    const ids: string[] = [];
    while (position.phases[0]?.name === 'open') {
      const answer = catalog.list(nextQuery(position, SETTINGS));
      ids.push(...answer.rows.map((row) => (row as Market).id));
      position = advance(position, answer, START, SETTINGS).position;
    }
    expect(ids).toEqual(catalog.markets.map((market) => market.id));
  });

  it('restarts a phase without its cursor, and drops a phase that the venue refuses', () => {
    const catalog = new Catalog();
    catalog.add(25);
    const begun = openWalk(null, START, SETTINGS);
    const { position } = advance(begun, catalog.list(nextQuery(begun, SETTINGS)), START, SETTINGS);
    expect(nextQuery(position, SETTINGS).cursor).toBe('10');
    const again = afterRefusal(position);
    expect(again && nextQuery(again, SETTINGS)).not.toHaveProperty('cursor');
    const worn = { ...position, phases: position.phases.map((phase) => ({ ...phase, restarts: 2 })) };
    expect(afterRefusal(worn)?.phases.map((phase) => phase.name)).toEqual(['closed']);
    expect(afterRefusal(begun)).toBeUndefined();
    const deep = {
      ...begun,
      listing: 'offset' as const,
      phases: begun.phases.map((phase) => ({ ...phase, offset: 2_500 })),
    };
    expect(afterRefusal(deep)?.phases.map((phase) => phase.name)).toEqual(['closed']);
  });

  it('skips a market that fails by offset, and drops the phase after three in a row', () => {
    const catalog = new Catalog();
    catalog.add(25);
    const begun = switchListing(openWalk(null, START, SETTINGS), 'offset');
    let at = advance(begun, catalog.list(nextQuery(begun, SETTINGS)), START, SETTINGS).position;
    for (let place = 10; place < 13; place += 1) {
      expect(nextQuery(at, SETTINGS).offset).toBe(place);
      at = afterFailure(openWalk(JSON.parse(JSON.stringify(at)), START, SETTINGS));
    }
    expect(afterFailure(at).phases.map((phase) => phase.name)).toEqual(['closed']);
    // A page between them begins the count anew.
    const { position } = advance(at, catalog.list(nextQuery(at, SETTINGS)), START, SETTINGS);
    expect(nextQuery(position, SETTINGS).offset).toBe(23);
    expect(afterFailure(position).phases[0]).toMatchObject({ name: 'open', offset: 24, skipped: 1 });
  });

  describe('with pages from a cache', () => {
    /** The catalog of `ageMs` ago, for requests that pass the filter. */
    const cachedPages = (catalog: Catalog, ageMs: number, hits: (query: MarketsQuery) => boolean) => {
      const then = structuredClone(catalog.markets);
      const past = new Catalog();
      past.markets = then;
      past.nowMs = catalog.nowMs;
      catalog.nowMs += ageMs;
      catalog.bend = (answer, query) => (hits(query) ? { ...past.list(query), ageMs } : answer);
    };

    it('reads a change again when a cached page hid it', () => {
      const catalog = new Catalog();
      catalog.add(40);
      catalog.add(15, true);
      let { position } = walk(catalog, null);
      catalog.nowMs += 60_000;
      ({ position } = walk(catalog, position));
      catalog.nowMs += 60_000;
      catalog.touch('1001');
      cachedPages(catalog, 200_000, () => true);
      catalog.touch('1002', { closed: true });
      const stale = walk(catalog, position);
      expect(stale.ids).not.toContain('1002');
      expect(stale.position.marks).toEqual(position.marks);
      catalog.bend = (answer) => answer;
      const fresh = walk(catalog, stale.position).ids;
      expect(fresh).toContain('1001');
      expect(fresh).toContain('1002');
    });

    it('moves its mark at a distance when every page comes from a cache', () => {
      const catalog = new Catalog();
      catalog.add(40);
      catalog.add(15, true);
      const first = walk(catalog, null);
      catalog.nowMs += 500_000;
      catalog.touch('1001');
      catalog.bend = (answer) => ({ ...answer, ageMs: 120_000 });
      const { marks } = walk(catalog, first.position).position;
      expect(marks.open).toBe(catalog.nowMs - 120_000 - 300_000);
    });

    it('keeps changes in reach when one page of a full walk comes from a cache', () => {
      const catalog = new Catalog();
      catalog.add(40);
      catalog.nowMs += 1_000_000;
      cachedPages(catalog, 250_000, (query) => query.cursor === '20' && !query.recentFirst);
      catalog.nowMs -= 100_000;
      catalog.touch('1025');
      catalog.nowMs += 100_000;
      const { position } = walk(catalog, null);
      catalog.bend = (answer) => answer;
      expect(walk(catalog, position).ids).toContain('1025');
    });

    it('reports the creation time of the oldest page with the sweep', () => {
      const catalog = new Catalog();
      catalog.add(35);
      catalog.bend = (answer, query) => (query.cursor === '10' ? { ...answer, ageMs: 90_000 } : answer);
      const { swept } = walk(catalog, null);
      expect(swept.map((page) => page.madeSinceMs)).toEqual([
        undefined,
        START - 90_000,
        START - 90_000,
        START - 90_000,
      ]);
      expect(swept.at(-1)?.ended).toBe(true);
    });

    it('uses different addresses for the walks by change within the lifetime of a page', () => {
      const catalog = new Catalog();
      const settings = { ...SETTINGS, pageSize: 100 };
      catalog.add(5);
      let { position } = walk(catalog, null);
      const limits: number[] = [];
      for (let minute = 1; minute <= 9; minute += 1) {
        catalog.nowMs += 60_000;
        const begun = openWalk(position, catalog.nowMs, settings);
        limits.push(nextQuery(begun, settings).limit);
        ({ position } = walk(catalog, begun));
      }
      expect(new Set(limits).size).toBe(9);
      expect(Math.max(...limits)).toBeLessThanOrEqual(100);
      expect(Math.min(...limits)).toBeGreaterThan(66);
    });
  });

  it('begins anew when the stored position is unreadable', () => {
    for (const foreign of [{ v: 2 }, { cursor: 'x' }, 'text', 7]) {
      expect(openWalk(foreign, START, SETTINGS)).toEqual(openWalk(null, START, SETTINGS));
    }
  });
});
