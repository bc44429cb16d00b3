import { describe, expect, it } from 'vitest';
import { createAnswerCache, type LoadedAnswer } from '../../../api/reads/answer-cache.ts';

const answer = (data: string): LoadedAnswer => ({
  answer: { data, meta: '', extraBytes: 0, etag: 'W/"x"', freshness: 'latest' },
});

function counted(options: Parameters<typeof createAnswerCache>[0]) {
  const clock = { nowMs: 1_000_000 };
  const cache = createAnswerCache({ ...options, now: () => clock.nowMs });
  const loads: string[] = [];
  const read = (key: string, data = 'x', tookMs = 0) =>
    cache.fetch(key, async () => {
      loads.push(key);
      await Promise.resolve();
      clock.nowMs += tookMs;
      return answer(data);
    });
  return { clock, loads, read };
}

describe('the cache of answers', () => {
  it('counts the age from the start of the load', async () => {
    const { clock, loads, read } = counted({ ttlMs: 1_000 });
    await read('a', 'x', 600);
    clock.nowMs += 399;
    await read('a');
    expect(loads).toEqual(['a']);
    clock.nowMs += 2;
    await read('a');
    expect(loads).toEqual(['a', 'a']);
  });

  it('shares loads but caches nothing with a lifetime of 0', async () => {
    const { loads, read } = counted({ ttlMs: 0 });
    await Promise.all([read('a'), read('a'), read('b')]);
    expect(loads).toEqual(['a', 'b']);
    await read('a');
    expect(loads).toEqual(['a', 'b', 'a']);
  });

  it('answers loads whose entry was evicted', async () => {
    const { loads, read } = counted({ maxBytes: 12_000 });
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((key) => read(key, key.repeat(300))));
    expect(answers.map(({ data }) => data[0])).toEqual(['a', 'b', 'c', 'd']);
    expect(loads).toEqual(['a', 'b', 'c', 'd']);
  });

  it('is bounded by bytes, one per character of ASCII, and skips an answer that would evict all others', async () => {
    const { loads, read } = counted({ maxBytes: 100_000 });
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    for (const key of keys) await read(key, 'x'.repeat(11_000));
    const huge = 'x'.repeat(40_000);
    expect((await read('huge', huge)).data).toBe(huge);
    for (const key of keys) await read(key);
    expect(loads).toEqual([...keys, 'huge']);
    await read('huge', huge);
    expect(loads).toHaveLength(9);
  });

  it('keeps its answers when more of them than it takes are read in turn, and replaces expired ones', async () => {
    const { clock, loads, read } = counted({ maxBytes: 100_000 });
    const keys = Array.from({ length: 20 }, (_, n) => `key-${n}`);
    const readAll = async () => {
      loads.length = 0;
      for (const key of keys) await read(key, 'x'.repeat(11_000));
      return loads.length;
    };
    expect(await readAll()).toBe(20);
    expect(await readAll()).toBeLessThan(15);
    // One of sixteen takes the place of the least recently used answer.
    const before = new Set(loads);
    for (let round = 0; round < 4; round += 1) await readAll();
    expect(loads.some((key) => !before.has(key))).toBe(true);
    clock.nowMs += 1_001;
    expect(await readAll()).toBe(20);
    expect(await readAll()).toBeLessThan(15);
  });

  it('throws a failure to all waiting callers and does not cache it', async () => {
    const cache = createAnswerCache();
    let fail: (error: Error) => void = () => undefined;
    const broken = () => new Promise<LoadedAnswer>((_, reject) => (fail = reject));
    const waiting = [cache.fetch('a', broken), cache.fetch('a', broken)];
    fail(new Error('broken'));
    const settled = await Promise.allSettled(waiting);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect((await cache.fetch('a', async () => answer('fine'))).data).toBe('fine');
  });
});
