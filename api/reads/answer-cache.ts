import { LRUCache } from 'lru-cache';

/** How long the client may cache an answer. */
export type Freshness = 'latest' | 'history';

/** An answer of a market route, ready to send: JSON texts and header values. */
export interface PreparedAnswer {
  /** JSON text of `data`. */
  data: string;
  /** JSON text of the `meta` fields besides request id and timestamp, without braces; may be empty. */
  meta: string;
  /** The UTF-8 bytes of both texts minus their characters, so that the length of an answer needs no scan. */
  extraBytes: number;
  /** Weak, over data and meta. */
  etag: string;
  freshness: Freshness;
}

/**
 * Caches answers of market routes for a second. A hit costs no SQL, no serialization and no hash. Concurrent requests share one
 * load. All waiting requests get its error, and errors are not cached.
 */
export interface AnswerCache {
  /** The cached answer of `key`, otherwise the result of `load`. The key must contain every dependency of the answer except time. */
  fetch(key: string, load: () => Promise<PreparedAnswer>): Promise<PreparedAnswer>;
  /** Records that a GET of this request target got the answer of `key` from this route (its pattern). */
  remember(target: string, place: AnswerPlace): void;
  /**
   * The cached answer of a GET of this exact target, which saves routing and parsing. A caller that sends it must call `used`, which
   * counts the hit.
   */
  recent(target: string): { answer: PreparedAnswer; route: string; used(): void } | undefined;
}

interface AnswerPlace {
  key: string;
  route: string;
}

/** The source of an answer: the cache, a load in flight, or a new load. */
type Lookup = 'hit' | 'shared' | 'miss';

interface AnswerCacheOptions {
  onLookup?: (lookup: Lookup) => void;
  /** The lifetime of an answer since the start of its load. 0: loads are shared, but nothing is cached. */
  ttlMs?: number;
  maxEntries?: number;
  maxBytes?: number;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

const TTL_MS = 1_000;
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** The approximate size of an entry without its texts. */
const ENTRY_OVERHEAD_BYTES = 500;
/** Longer request targets are rare and always routed. */
const MAX_TARGET_LENGTH = 512;

/** A bounded cache that evicts the least recently used answers first. */
export function createAnswerCache(options: AnswerCacheOptions = {}): AnswerCache {
  const { ttlMs = TTL_MS, maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES, now = () => performance.now() } = options;
  const cache = new LRUCache<string, PreparedAnswer, () => Promise<PreparedAnswer>>({
    max: maxEntries,
    maxSize: maxBytes,
    // A list of a thousand markets must not evict all other answers.
    maxEntrySize: Math.max(1, Math.floor(maxBytes / 8)),
    // At most two bytes per character. An exact count would need a scan of every text.
    sizeCalculation: (answer, key) => 2 * (answer.data.length + answer.meta.length + key.length) + ENTRY_OVERHEAD_BYTES,
    ttl: Math.max(1, ttlMs),
    ttlResolution: 0,
    perf: { now },
    // A load whose entry was evicted still answers its waiting requests.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: load, options: entry }) => {
      const startedAt = now();
      const answer = await load();
      entry.ttl = Math.max(1, ttlMs - (now() - startedAt));
      return answer;
    },
  });
  const { onLookup = () => undefined } = options;
  const used = () => onLookup('hit');
  const places = new LRUCache<string, AnswerPlace>({ max: maxEntries });
  return {
    remember(target, place) {
      if (target.length <= MAX_TARGET_LENGTH && !places.has(target)) places.set(target, place);
    },
    recent(target) {
      const place = places.get(target);
      const answer = place === undefined || ttlMs === 0 ? undefined : cache.get(place.key);
      return place && answer && { answer, route: place.route, used };
    },
    async fetch(key, load) {
      const status: LRUCache.Status<string, PreparedAnswer, () => Promise<PreparedAnswer>> = {};
      const fetched = cache.fetch(key, { context: load, forceRefresh: ttlMs === 0, status });
      onLookup(status.fetch === 'hit' ? 'hit' : status.fetch === 'inflight' ? 'shared' : 'miss');
      // Never undefined: the load returns an answer or throws.
      return (await fetched) ?? load();
    },
  };
}
