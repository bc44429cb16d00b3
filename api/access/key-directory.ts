import { LRUCache } from 'lru-cache';
import { hashApiKey, isPresentableKey } from '../../src/domain/values/api-key.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { findApiKeys, type StoredApiKey, touchApiKeys } from '../../src/store/accounts/accounts.ts';
import { createBatcher } from '../../src/store/db/batcher.ts';
import { type Database, isDatabaseUnavailable } from '../../src/store/db/tx.ts';

/** Includes the time of the look-up, so that a revocation takes effect within a second. */
const LOOKUP_TTL_MS = 990;
const MAX_CACHED_KEYS = 10_000;
const FLUSH_INTERVAL_MS = 10_000;
/** Look-ups per statement. */
const MAX_LOOKUPS = 500;

/** Finds keys without a database query or write per request. */
export interface KeyDirectory {
  /**
   * The key, or null when it is not valid now: unknown, wrong, expired and revoked keys take the same code path. Records the
   * use: `last_used_at` follows within seconds.
   */
  find(key: string, nowMs: number): Promise<StoredApiKey | null>;
  /** The same without a query: only for a key with a cached look-up, null for every other key. */
  findCached(key: string, nowMs: number): StoredApiKey | null;
  /** Writes pending `last_used_at` now. Failures are logged and retried. */
  flush(): Promise<void>;
  /** Ends the timer and flushes. */
  close(): Promise<void>;
}

/**
 * A directory with a 1 s cache of look-ups, misses included, and a flush of last uses every 10 s. All look-ups of a process share one
 * statement at a time, so that any number of wrong keys occupies one connection and delays a valid key by two statements at most.
 * `monotonicMs` is the clock of the cache.
 */
export function createKeyDirectory(
  db: Database,
  log: Logger,
  monotonicMs: () => number = () => performance.now(),
): KeyDirectory {
  const perf = { now: monotonicMs };
  const lookUpStored = createBatcher<string, StoredApiKey | null>({
    run: (keys) => findApiKeys(db, keys),
    maxItems: MAX_LOOKUPS,
  });
  // Keyed by hash: the process keeps no plain keys. Concurrent look-ups of one key share one query.
  const cache = new LRUCache<string, { found: StoredApiKey | null }, string>({
    max: MAX_CACHED_KEYS,
    ttl: LOOKUP_TTL_MS,
    ttlResolution: 0,
    perf,
    // A look-up that is evicted still answers its waiting requests.
    ignoreFetchAbort: true,
    fetchMethod: async (_hash, _stale, { context: key, options: entry }) => {
      const startedAt = monotonicMs();
      const found = await lookUpStored(key);
      entry.ttl = Math.max(1, LOOKUP_TTL_MS - (monotonicMs() - startedAt));
      return { found };
    },
  });
  let usedAt = new Map<string, Date>();

  /** The found key when it is valid. */
  function used(found: StoredApiKey | null | undefined, nowMs: number): StoredApiKey | null {
    if (!found || found.revokedAt !== null || isExpired(found, nowMs)) return null;
    usedAt.set(found.id, new Date(nowMs));
    return found;
  }

  async function flush(): Promise<void> {
    const batch = usedAt;
    usedAt = new Map();
    try {
      await touchApiKeys(db, batch);
    } catch (error) {
      usedAt = new Map([...batch, ...usedAt]);
      const level = isDatabaseUnavailable(error) ? 'debug' : 'warn';
      log[level]({ err: error }, 'last use of keys not written; will retry');
    }
  }

  const timer = setInterval(() => void flush(), FLUSH_INTERVAL_MS);
  timer.unref();

  return {
    async find(key, nowMs) {
      if (!isPresentableKey(key)) return null;
      return used((await cache.fetch(cacheKeyOf(key), { context: key }))?.found, nowMs);
    },
    findCached(key, nowMs) {
      return used(cache.get(cacheKeyOf(key))?.found, nowMs);
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

function cacheKeyOf(key: string): string {
  return hashApiKey(key).toString('base64');
}

function isExpired({ expiresAt }: StoredApiKey, nowMs: number): boolean {
  return expiresAt !== null && expiresAt.getTime() <= nowMs;
}
