import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FeedBooks } from '../../../workers/streamer/feed-books.ts';

const T = Date.UTC(2026, 0, 5);
const outcome = (tokenId: bigint, marketPk = tokenId) => ({ outcomeId: `o${tokenId}`, tokenId, marketPk, part: 0 });

/** Books with a changing time, the times of their writes in milliseconds after the start, and the followed markets. */
function aFeed() {
  const stored: [ms: number, outcomes: string][] = [];
  const followed = new Set<bigint>();
  const failures: unknown[] = [];
  let fault: Error | undefined;
  const books = new FeedBooks({
    now: Date.now,
    followed: { has: (marketPk) => followed.has(marketPk) },
    async store(pending) {
      if (fault) throw fault;
      stored.push([Date.now() - T, pending.map((one) => one.outcome.outcomeId).join(' ')]);
    },
    onStored: () => undefined,
    onFailed: (error) => void failures.push(error),
  });
  const change = (...tokenIds: bigint[]) => {
    for (const tokenId of tokenIds)
      books.changed(outcome(tokenId), () => ({ outcomeId: `o${tokenId}`, asOfMs: Date.now(), bids: [], asks: [] }));
  };
  const fail = (error: Error | undefined) => {
    fault = error;
  };
  return { books, stored, followed, failures, change, fail };
}

/** Changes a book every 50 ms. */
async function trade(change: (tokenId: bigint) => void, tokenId: bigint, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    change(tokenId);
    await vi.advanceTimersByTimeAsync(50);
  }
}

beforeEach(() => {
  vi.useFakeTimers({ now: T });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the books of a feed', () => {
  it('are stored at most once per second while their market has a follower', async () => {
    const { books, stored, followed, change } = aFeed();
    followed.add(1n);
    await trade(change, 1n, 5_000);
    expect(stored.map(([ms]) => ms)).toEqual([100, 1_100, 2_100, 3_100, 4_100]);
    await books.stop();
  });

  it('are stored at most once per five seconds otherwise', async () => {
    const { books, stored, change } = aFeed();
    await trade(change, 1n, 16_000);
    expect(stored.map(([ms]) => ms)).toEqual([100, 5_100, 10_100, 15_100]);
    await books.stop();
  });

  it('are stored within a look when a market whose book waits gets a follower', async () => {
    const { books, stored, followed, change } = aFeed();
    await trade(change, 1n, 1_500);
    expect(stored.map(([ms]) => ms)).toEqual([100]);
    followed.add(1n);
    await vi.advanceTimersByTimeAsync(100);
    expect(stored.map(([ms]) => ms)).toEqual([100, 1_600]);
    await books.stop();
  });

  it('share a transaction per second without a follower, or that of a followed one', async () => {
    const { books, stored, followed, change } = aFeed();
    followed.add(9n);
    change(1n);
    await vi.advanceTimersByTimeAsync(150);
    change(2n, 3n);
    await vi.advanceTimersByTimeAsync(250);
    change(9n, 4n);
    await vi.advanceTimersByTimeAsync(200);
    change(5n);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(stored).toEqual([
      [100, 'o1'],
      [500, 'o9 o2 o3 o4'],
      [1_500, 'o5'],
    ]);
    await books.stop();
  });

  it('are stored a hundred at once without a pause between', async () => {
    const { books, stored, change } = aFeed();
    change(...Array.from({ length: 250 }, (_, index) => BigInt(index)));
    await vi.advanceTimersByTimeAsync(300);
    expect(stored.map(([ms, outcomes]) => [ms, outcomes.split(' ').length])).toEqual([
      [100, 100],
      [200, 100],
      [300, 50],
    ]);
    await books.stop();
  });

  it('wait for a database that is away, and no forgotten outcome is stored', async () => {
    const { books, stored, failures, change, fail } = aFeed();
    fail(new Error('away'));
    change(1n, 2n);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(failures).toHaveLength(4);
    books.forget(2n);
    fail(undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(stored.map(([, outcomes]) => outcomes)).toEqual(['o1']);
    await books.stop();
  });

  it('are looked for while one waits, and not after the stop', async () => {
    const { books, change } = aFeed();
    expect(vi.getTimerCount()).toBe(0);
    change(1n);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(vi.getTimerCount()).toBe(0);
    await books.stop();
    change(1n);
    expect(vi.getTimerCount()).toBe(0);
  });
});
