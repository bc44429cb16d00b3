import { describe, expect, it } from 'vitest';
import type { BetsQuery } from '../../../../src/venues/manifold/client.ts';
import { type BetWalkSettings, readBetPage } from '../../../../src/venues/manifold/walk-trades.ts';

const NOW = 1_790_000_000_000;
const SETTINGS: BetWalkSettings = { pageSize: 3, overlapMs: 100, overlapReads: 2, initialLookbackMs: 10_000 };

interface Bet {
  id: string;
  createdTime: number;
}

/** The venue's own paging: strictly after a time, oldest first. */
function feed(bets: readonly Bet[]) {
  const queries: BetsQuery[] = [];
  const list = async (query: BetsQuery) => {
    queries.push(query);
    const found = bets.filter((bet) => bet.createdTime > query.afterMs);
    return found.sort((a, b) => a.createdTime - b.createdTime).slice(0, query.limit);
  };
  return { queries, list };
}

async function follow(from: unknown, list: (query: BetsQuery) => Promise<unknown[]>) {
  const ids = new Set<string>();
  const truncated: string[] = [];
  let page: Awaited<ReturnType<typeof readBetPage>>;
  let position = from;
  let pages = 0;
  do {
    pages += 1;
    if (pages > 100) throw new Error('the walk does not end');
    page = await readBetPage(position, NOW, SETTINGS, list);
    for (const row of page.rows) ids.add((row as Bet).id);
    if (page.truncated) truncated.push(page.truncated);
    position = JSON.parse(JSON.stringify(page.position));
  } while (page.more);
  return { ids: [...ids], position, truncated };
}

const bet = (id: string, ago: number): Bet => ({ id, createdTime: NOW - ago });

describe('the walk over the bet feed', () => {
  it('reads all bets, even when a page ends within a millisecond', async () => {
    const bets = [bet('a', 500), bet('b', 400), bet('c', 300), bet('d', 300), bet('e', 200), bet('f', 200)];
    const { ids, position, truncated } = await follow(null, feed(bets).list);
    expect(ids).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(position).toEqual({ v: 1, watermark: NOW - 200 });
    expect(truncated).toEqual([]);
  });

  it('starts in the recent past, and later an overlap before the watermark', async () => {
    const { queries, list } = feed([bet('old', 20_000), bet('a', 500)]);
    const { ids, position } = await follow(null, list);
    expect(ids).toEqual(['a']);
    await follow(position, list);
    expect(queries.map((query) => query.afterMs)).toEqual([NOW - 10_001, NOW - 601]);
  });

  it('reads a bet that was stored late', async () => {
    const bets = [bet('a', 500)];
    const { list } = feed(bets);
    const { position } = await follow(null, list);
    bets.push(bet('late', 550));
    expect((await follow(position, list)).ids).toEqual(['late', 'a']);
  });

  it('ends at a page that the venue repeats, and continues there', async () => {
    const bets = [bet('a', 500), bet('b', 450), bet('c', 400), bet('d', 300)];
    const { list } = feed(bets);
    const kept = await list({ order: 'asc', afterMs: NOW - 1_000, limit: 3 });
    const repeating = await follow({ v: 1, watermark: NOW - 400 }, async () => kept);
    expect(repeating).toMatchObject({
      position: { v: 1, watermark: NOW - 400 },
      truncated: [expect.stringMatching(/repeats a page/)],
    });
    expect((await follow(repeating.position, list)).ids).toEqual(['a', 'b', 'c', 'd']);
  });

  it('skips the rest of a millisecond that fills a page, and reports it', async () => {
    const bets = [bet('a', 500), bet('b', 500), bet('c', 500), bet('d', 500), bet('e', 400)];
    const { ids, truncated } = await follow(null, feed(bets).list);
    expect(ids).toEqual(['a', 'b', 'c', 'e']);
    expect(truncated.length).toBe(1);
  });

  it('keeps its watermark when a bet is from the far future', async () => {
    const { position } = await follow(null, feed([bet('a', 500), bet('future', -10_000_000)]).list);
    expect(position).toEqual({ v: 1, watermark: NOW - 500 });
  });

  it('throws when the venue sorts in another order', async () => {
    const newestFirst = async () => [bet('c', 300), bet('b', 400), bet('a', 500)];
    await expect(readBetPage(null, NOW, SETTINGS, newestFirst)).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('begins anew when the stored position is unreadable', async () => {
    const { queries, list } = feed([]);
    await follow({ v: 7 }, list);
    expect(queries[0]?.afterMs).toBe(NOW - 10_001);
  });
});

describe('the walk of a process that goes on', () => {
  /** Ticks with their requests; the overlap is 120 s. */
  function poller(bets: Bet[], settings: BetWalkSettings = { ...SETTINGS, pageSize: 100, overlapMs: 120_000 }) {
    const { queries, list } = feed(bets);
    const ids = new Set<string>();
    const claims: number[] = [];
    const state = { nowMs: NOW, position: null as unknown, isContinued: false };
    const tick = async () => {
      queries.length = 0;
      for (let more = true; more; ) {
        const page = await readBetPage(state.position, state.nowMs, settings, list, state);
        for (const row of page.rows) ids.add((row as Bet).id);
        if (page.caughtUpMs !== undefined) claims.push(page.caughtUpMs);
        state.position = JSON.parse(JSON.stringify(page.position));
        state.isContinued = true;
        ({ more } = page);
      }
      return queries.length;
    };
    const run = async (seconds: number, rate: number) => {
      const requests: number[] = [];
      for (let passed = 0; passed < seconds; passed += 2) {
        for (let each = 0; each < 2 * rate; each += 1) {
          const createdTime = state.nowMs + Math.floor((each * 1_000) / rate);
          bets.push({ id: `bet-${bets.length}`, createdTime });
        }
        state.nowMs += 2_000;
        requests.push(await tick());
      }
      return requests;
    };
    return { state, ids, claims, queries, tick, run };
  }

  it('reads from the newest bet on, its millisecond included, and the overlap every 15 s', async () => {
    const bets: Bet[] = [];
    const walk = poller(bets);
    await walk.run(20, 1);
    const depths: number[] = [];
    for (const _ of Array(16)) {
      await walk.run(2, 1);
      expect(walk.queries).toHaveLength(1);
      depths.push(walk.state.nowMs - (walk.queries[0]?.afterMs ?? 0));
    }
    expect(depths.filter((depth) => depth < 4_000)).toHaveLength(14);
    expect(depths.filter((depth) => depth >= 120_000)).toHaveLength(2);
    bets.push({ id: 'twin', createdTime: Math.max(...bets.map(({ createdTime }) => createdTime)) });
    await walk.tick();
    expect(walk.ids.has('twin')).toBe(true);
  });

  it('finds a bet that the venue shows 120 s late within 15 s, and at once after a doubt', async () => {
    const bets: Bet[] = [];
    const walk = poller(bets);
    await walk.run(140, 1);
    bets.push({ id: 'late', createdTime: walk.state.nowMs - 120_000 });
    await walk.run(16, 1);
    expect(walk.ids.has('late')).toBe(true);
    bets.push({ id: 'later', createdTime: walk.state.nowMs - 110_000 });
    walk.state.isContinued = false;
    await walk.run(2, 1);
    expect(walk.ids.has('later')).toBe(true);
    expect(walk.claims.at(-1)).toBe(walk.state.nowMs);
  });

  it('requests a bounded number of pages per tick at any rate, and loses no late bet', async () => {
    const bets: Bet[] = [];
    // A page per second.
    const [pageSize, rate] = [20, 20];
    const settings = { ...SETTINGS, pageSize, overlapMs: 120_000, overlapReads: 8 };
    const walk = poller(bets, settings);
    await walk.run(160, rate);
    const requests = await walk.run(60, rate);
    expect(Math.max(...requests)).toBeLessThanOrEqual(4 + settings.overlapReads);
    for (const ago of [1, 50, 110]) bets.push({ id: `late-${ago}`, createdTime: walk.state.nowMs - ago * 1_000 });
    const claims = walk.claims.length;
    await walk.run(100, rate);
    expect(bets.filter(({ id }) => !walk.ids.has(id))).toEqual([]);
    expect(walk.claims.length).toBeGreaterThan(claims + 1);
  });

  it('leaves a position from which the former release reads everything above the overlap again', async () => {
    const walk = poller([]);
    await walk.run(30, 1);
    const { v, watermark, next } = walk.state.position as Record<string, unknown>;
    expect({ v, next }).toEqual({ v: 1, next: undefined });
    expect(watermark).toBeLessThanOrEqual(walk.claims.at(-1) ?? 0);
  });
});
