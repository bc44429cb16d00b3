import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `maxEntries`, which evicts the least recently used ones. `max` would allocate the memory of all entries at once,
 * and most caches stay far below their limit.
 */
export function boundedCache<V extends NonNullable<unknown>>(maxEntries: number, ttlMs = 0): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: maxEntries, sizeCalculation: () => 1, ttl: ttlMs });
}

/**
 * Loads at most once in `ttlMs`. Concurrent callers share the answer, also a load in flight. Failures are not cached; only the
 * waiting callers get them.
 */
export function briefly<T>(ttlMs: number, load: () => Promise<T>, now: () => number = () => performance.now()) {
  let kept: { atMs: number; answer: Promise<T> } | undefined;
  return (): Promise<T> => {
    if (kept && now() - kept.atMs < ttlMs) return kept.answer;
    const mine = { atMs: now(), answer: load() };
    kept = mine;
    mine.answer.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return mine.answer;
  };
}
