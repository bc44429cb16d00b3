import { describe, expect, it } from 'vitest';
import type { BetsQuery } from '../../../../src/venues/manifold/client.ts';
import { type BetWalkSettings, readBetPage } from '../../../../src/venues/manifold/walk-trades.ts';

const NOW = 1_790_000_000_000;
const SETTINGS: BetWalkSettings = { pageSize: 3, overlapMs: 100, initialLookbackMs: 10_000 };

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
