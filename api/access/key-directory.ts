import { LRUCache } from 'lru-cache';
import { hashApiKey, isPresentableKey } from '../../src/domain/values/api-key.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { findApiKey, type StoredApiKey, touchApiKeys } from '../../src/store/accounts/accounts.ts';
import { type Database, isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import type { KeyGuess } from './failed-keys.ts';

/** Includes the time of the look-up, so that a revocation takes effect within a second. */
const LOOKUP_TTL_MS = 990;
const MAX_CACHED_KEYS = 10_000;
const FLUSH_INTERVAL_MS = 10_000;
/** A key that was valid within this time does not count as a guess. */
const IN_USE_MS = 600_000;

/** Finds keys without a database query or write per request. */
export interface KeyDirectory {
  /**
   * The key, or null when it is not valid now: unknown, wrong, expired and revoked keys take the same code path. Records the
   * use: `last_used_at` follows within seconds. A key that is not known to be in use counts as a guess until the look-up finds it valid.
   * @throws ApiError `rate_limited` after too many guesses.
   */
  find(key: string, nowMs: number, guess?: KeyGuess): Promise<StoredApiKey | null>;
  /** The same without a query: only for a key in use with a cached look-up, null for every other key. */
  findKept(key: string, nowMs: number): StoredApiKey | null;
  /** Writes pending `last_used_at` now. Failures are logged and retried. */
  flush(): Promise<void>;
  /** Ends the timer and flushes. */
  close(): Promise<void>;
}

/**
 * A directory with a 1 s cache of look-ups, misses included, and a flush of last uses every 10 s. `monotonicMs` is the clock of
 * the cache.
 */
export function createKeyDirectory(
  db: Database,
  log: Logger,
  monotonicMs: () => number = () => performance.now(),
): KeyDirectory {
  const perf = { now: monotonicMs };
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
      const found = await findApiKey(db, key);
      entry.ttl = Math.max(1, LOOKUP_TTL_MS - (monotonicMs() - startedAt));
      return { found };
    },
  });
  /** Each look-up returns a new object, so each result enters this cache once. */
  const inUse = new LRUCache<string, StoredApiKey>({ max: MAX_CACHED_KEYS, ttl: IN_USE_MS, perf });
  let usedAt = new Map<string, Date>();

  async function lookUp(hash: string, key: string, nowMs: number): Promise<StoredApiKey | null> {
    return used(hash, (await cache.fetch(hash, { context: key }))?.found ?? null, nowMs);
  }

  /** The found key when it is valid. Only valid keys are recorded as in use. */
  function used(hash: string, found: StoredApiKey | null, nowMs: number): StoredApiKey | null {
    if (found === null || found.revokedAt !== null || isExpired(found, nowMs)) {
      inUse.delete(hash);
      return null;
    }
    if (inUse.peek(hash) !== found) inUse.set(hash, found);
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
    async find(key, nowMs, guess) {
      const hash = hashApiKey(key).toString('base64');
      if (inUse.has(hash)) return lookUp(hash, key, nowMs);
      guess?.begin();
      let isFailed = false;
      try {
        const found = isPresentableKey(key) ? await lookUp(hash, key, nowMs) : null;
        isFailed = found === null;
        return found;
      } finally {
        guess?.end(isFailed);
      }
    },
    findKept(key, nowMs) {
      const hash = hashApiKey(key).toString('base64');
      const kept = inUse.has(hash) ? cache.get(hash) : undefined;
      return kept === undefined ? null : used(hash, kept.found, nowMs);
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

function isExpired({ expiresAt }: StoredApiKey, nowMs: number): boolean {
  return expiresAt !== null && expiresAt.getTime() <= nowMs;
}
