import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BetsQuery } from '../../../../src/venues/manifold/client.ts';
import { readHistoryPage } from '../../../../src/venues/manifold/walk-history.ts';

const NOW = 1_790_000_000_000;
const START = NOW - 1_000_000;
const CONTRACT = 'c1';

interface Bet {
  id: string;
  contractId: string;
  createdTime: number;
}

const betsAt = (...times: number[]): Bet[] =>
  times.map((createdTime, index) => ({ id: `b${index}`, contractId: CONTRACT, createdTime }));
const request = (fromMs = START, toMs = NOW) => ({ marketId: CONTRACT, outcomeIds: [], fromMs, toMs });

type List = (query: BetsQuery) => Promise<unknown[]>;

/** The venue's list: newest first, both times exclusive, at most `cap` rows. */
function listOf(bets: readonly Bet[], cap = Number.POSITIVE_INFINITY): List {
  return async ({ contractId, afterMs, beforeMs = Number.POSITIVE_INFINITY, limit }) =>
    bets
      .filter((bet) => bet.contractId === contractId && bet.createdTime > afterMs && bet.createdTime < beforeMs)
      .sort((a, b) => b.createdTime - a.createdTime)
      .slice(0, Math.min(limit, cap));
}

async function walk(list: List, of = request(), pageSize = 5) {
  const ids: string[] = [];
  const reached: number[] = [];
  let stored: unknown = null;
  for (let page = 0; page < 500; page += 1) {
    const step: Awaited<ReturnType<typeof readHistoryPage>> = await readHistoryPage(
      of,
      stored,
      NOW,
      { pageSize },
      list,
    );
    ids.push(...step.rows.map((row) => (row as Bet).id));
    reached.push(step.reachedMs);
    stored = JSON.parse(JSON.stringify(step.position));
    if (!step.more) return { ids: [...new Set(ids)].sort(), reached, truncated: step.truncated, pages: page + 1 };
  }
  throw new Error('no end');
}

describe("the walk back over a market's bets", () => {
  it('yields exactly the bets of the range, at any page size', async () => {
    const time = fc.integer({ min: START, max: START + 60 });
    const parameters = fc.record({
      // At most one bet less in one millisecond than a page has rows.
      times: fc.uniqueArray(time, { maxLength: 40 }).chain((unique) => fc.shuffledSubarray([...unique, ...unique])),
      pageSize: fc.integer({ min: 3, max: 8 }),
      from: time,
      length: fc.integer({ min: 0, max: 70 }),
    });
    await fc.assert(
      fc.asyncProperty(parameters, async ({ times, pageSize, from, length }) => {
        const bets = betsAt(...times);
        const of = request(from, from + length);
        const { ids, reached, truncated } = await walk(listOf(bets), of, pageSize);
        const expected = bets.filter(({ createdTime }) => createdTime >= of.fromMs && createdTime < of.toMs);
        expect(ids).toEqual(expected.map(({ id }) => id).sort());
        expect(truncated).toBeUndefined();
        expect(reached.at(-1)).toBe(of.fromMs);
        expect(reached).toEqual([...reached].sort((a, b) => b - a));
        expect(reached[0]).toBeLessThanOrEqual(Math.max(of.fromMs, of.toMs));
      }),
      { numRuns: 150 },
    );
  });

  it('continues when the venue caps pages below the limit', async () => {
    const bets = betsAt(...Array.from({ length: 450 }, (_, index) => START + index * 10));
    const { ids, pages } = await walk(listOf(bets, 150), request(), 1_000);
    expect(ids).toHaveLength(450);
    expect(pages).toBe(4);
  });

  it('ends at a short page', async () => {
    expect((await walk(listOf(betsAt(START, START + 1)), request(), 1_000)).pages).toBe(1);
  });

  it('skips the rest of a millisecond with more bets than a page, and reports it until the end', async () => {
    const crowd = Array.from({ length: 7 }, () => START + 50);
    const bets = betsAt(START + 90, ...crowd, START + 40, START + 30);
    const { ids, truncated, reached } = await walk(listOf(bets), request(), 5);
    expect(ids).toHaveLength(8);
    expect(truncated).toMatch(/more than 5 in one millisecond/);
    expect(reached.at(-1)).toBe(START);
  });

  it('ends when the venue ignores the end of a window or the market of the request', async () => {
    const bets = betsAt(START, START + 500, START + 900);
    const deaf = await walk(({ beforeMs: _, ...query }) => listOf(bets)(query), request(START, START + 600));
    expect(deaf).toMatchObject({ truncated: expect.stringMatching(/ignores the end/), reached: [START + 600] });
    const crowd = await walk(async () => [...betsAt(START), { id: 'x', contractId: 'c2', createdTime: START }]);
    expect(crowd).toMatchObject({ ids: ['b0'], truncated: expect.stringMatching(/ignores the market/), pages: 1 });
  });

  it('throws when the bets are not sorted', async () => {
    const list = async () => betsAt(START, START + 10, START + 5);
    await expect(walk(list, request(), 3)).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('begins anew when the stored position is unreadable', async () => {
    for (const stored of [7, 'text', {}, { v: 2, next: 5 }, { v: 1, next: 'x' }]) {
      const step = await readHistoryPage(request(), stored, NOW, { pageSize: 5 }, listOf(betsAt(START)));
      expect(step.rows).toHaveLength(1);
    }
  });
});
