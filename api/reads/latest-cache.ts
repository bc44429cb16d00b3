import { LRUCache } from 'lru-cache';

/** How long the client may keep an answer. */
export type Freshness = 'latest' | 'history';

/** An answer of a market route, ready to be sent: JSON texts and what goes into its headers. */
export interface PreparedAnswer {
  /** JSON text of `data`. */
  data: string;
  /** JSON text of the `meta` fields beside request id and timestamp, without braces; may be empty. */
  meta: string;
  /** The UTF-8 bytes of both texts beyond one per character, so that the length of an answer needs no scan. */
  extraBytes: number;
  /** Weak, over data and meta. */
  etag: string;
  freshness: Freshness;
}

/**
 * Answers of market routes for a second: a hit costs no SQL, no serialization and no hash.
 * Concurrent requests share one load. Errors are thrown to all waiting requests and never kept.
 */
export interface LatestCache {
  /** The answer kept under `key`, else the result of `load`. The key must name every dependency of the answer except time. */
  fetch(key: string, load: () => Promise<PreparedAnswer>): Promise<PreparedAnswer>;
  /** Notes that a GET of this request target by this route (its pattern) was answered from `key`. */
  remember(target: string, place: AnswerPlace): void;
  /**
   * The kept answer of a GET of this exact target, which saves routing and reading. The caller that answers with it calls
   * `used`, so that it is counted.
   */
  recent(target: string): { answer: PreparedAnswer; route: string; used(): void } | undefined;
}

interface AnswerPlace {
  key: string;
  route: string;
}

/** The source of an answer: kept, a load in flight, or a load of its own. */
type Lookup = 'hit' | 'shared' | 'miss';

interface LatestCacheOptions {
  onLookup?: (lookup: Lookup) => void;
  /** Age beyond which an answer is loaded again, counted from when its load began. 0: loads are shared, nothing is kept. */
  ttlMs?: number;
  maxEntries?: number;
  maxBytes?: number;
  /** Milliseconds of a clock that never goes back. */
  now?: () => number;
}

const TTL_MS = 1_000;
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** The approximate size of an entry beside its texts. */
const ENTRY_OVERHEAD_BYTES = 500;
/** Longer request targets are rare and routed each time. */
const MAX_TARGET_LENGTH = 512;

/** A bounded cache; the least recently used answers go first. */
export function createLatestCache(options: LatestCacheOptions = {}): LatestCache {
  const { ttlMs = TTL_MS, maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES, now = () => performance.now() } = options;
  const cache = new LRUCache<string, PreparedAnswer, () => Promise<PreparedAnswer>>({
    max: maxEntries,
    maxSize: maxBytes,
    // A list of a thousand markets must not push out everything else.
    maxEntrySize: Math.max(1, Math.floor(maxBytes / 8)),
    // Two bytes a character at worst: exact counting would cost a walk over every text.
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
      // Never absent: the load either gives an answer or throws.
      return (await fetched) ?? load();
    },
  };
}
