import { LRUCache } from 'lru-cache';

/** How long the client may keep an answer. */
export type Freshness = 'latest' | 'history';

/** An answer of a market route, ready to be sent: JSON texts and what goes into its headers. */
export interface PreparedAnswer {
  /** JSON text of `data`. */
  data: string;
  /** JSON text of what `meta` holds beside request id and timestamp, without braces; empty when there is none. */
  meta: string;
  /** What both take in UTF-8 beyond a byte a character: so nobody need walk over them to know the length of an answer. */
  extraBytes: number;
  /** Weak, over data and meta. */
  etag: string;
  freshness: Freshness;
}

/**
 * Answers of market routes for a second (DESIGN section 4, "Caching"): a hit costs no SQL, no serialization and no hash.
 * Requests for what is being loaded share the load. Errors are thrown to everyone who waits and never kept.
 */
export interface LatestCache {
  /** The answer kept under `key`, else what `load` gives. The key must name everything the answer depends on but time. */
  fetch(key: string, load: () => Promise<PreparedAnswer>): Promise<PreparedAnswer>;
  /** Notes that a GET of this request target by this route (its pattern) was answered from `key`. */
  remember(target: string, place: AnswerPlace): void;
  /**
   * What a GET of this very target gets, when it is kept: then nobody need route and read it again. Who answers with it calls
   * `used`, so that it is counted.
   */
  recent(target: string): { answer: PreparedAnswer; route: string; used(): void } | undefined;
}

interface AnswerPlace {
  key: string;
  route: string;
}

/** Where an answer came from: kept, a load that was under way, a load of its own. */
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
/** What an entry costs beside its texts, roughly. */
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
    // A load whose place was taken by others still answers those who wait for it.
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
