import { describe, expect, it } from 'vitest';
import { boundedCache } from '../../../../src/domain/values/caches.ts';

describe('boundedCache', () => {
  it('evicts the least recently used entry beyond its limit', () => {
    const cache = boundedCache<number>(3);
    for (const [at, key] of ['a', 'b', 'c'].entries()) cache.set(key, at);
    cache.get('a');
    cache.set('d', 3);
    expect([...cache.keys()].sort()).toEqual(['a', 'c', 'd']);
    for (let at = 0; at < 1_000; at += 1) cache.set(`more ${at}`, at);
    expect(cache.size).toBe(3);
  });

  it('forgets an entry after its time to live', async () => {
    const cache = boundedCache<number>(3, 1);
    cache.set('a', 1);
    await expect.poll(() => cache.get('a')).toBeUndefined();
  });
});
