import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `maxEntries`, which evicts the least recently used ones. `max` would allocate the memory of all entries at once,
 * and most caches stay far below their limit.
 */
export function boundedCache<V extends NonNullable<unknown>>(maxEntries: number, ttlMs = 0): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: maxEntries, sizeCalculation: () => 1, ttl: ttlMs });
}
