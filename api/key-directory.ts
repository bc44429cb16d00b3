import { LRUCache } from 'lru-cache';
import { hashApiKey, isPresentableKey } from '../src/domain/api-key.ts';
import type { Logger } from '../src/observe/logger.ts';
import { findApiKey, type StoredApiKey, touchApiKeys } from '../src/store/accounts.ts';
import { type Database, isDatabaseUnavailable } from '../src/store/tx.ts';

/** A revocation takes effect within this time. */
const LOOKUP_TTL_MS = 1_000;
const MAX_CACHED_KEYS = 10_000;
const FLUSH_INTERVAL_MS = 10_000;

/** Knows keys without asking the database at each request, and never writes at one. */
export interface KeyDirectory {
  /** The key, or null when there is none that is valid now. Uses it: `last_used_at` follows within seconds. */
  find(key: string, nowMs: number): Promise<StoredApiKey | null>;
  /** Writes pending `last_used_at` now; failures are logged and tried again. */
  flush(): Promise<void>;
  /** Ends the timer and flushes. */
  close(): Promise<void>;
}

/** A directory with a 1 s cache of look-ups, misses included, and a flush of last uses each 10 s. */
export function createKeyDirectory(db: Database, log: Logger): KeyDirectory {
  // Keyed by hash: keys themselves are kept nowhere. Concurrent look-ups of one key are one query.
  const cache = new LRUCache<string, { found: StoredApiKey | null }, string>({
    max: MAX_CACHED_KEYS,
    ttl: LOOKUP_TTL_MS,
    // A look-up that is pushed out by others still answers those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_hash, _stale, { context: key }) => ({ found: await findApiKey(db, key) }),
  });
  let usedAt = new Map<string, Date>();

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
      const lookup = await cache.fetch(hashApiKey(key).toString('base64'), { context: key });
      const found = lookup?.found ?? null;
      if (found === null || found.revokedAt !== null) return null;
      if (found.expiresAt !== null && found.expiresAt.getTime() <= nowMs) return null;
      usedAt.set(found.id, new Date(nowMs));
      return found;
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
