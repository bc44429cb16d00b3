import { LRUCache } from 'lru-cache';
import { ApiError } from '../errors.ts';

/** Wrong passwords per window: from one address, and from all addresses, which bounds a distributed attack. */
const MAX_FAILURES_OF_ADDRESS = 10;
const MAX_FAILURES = 100;
const WINDOW_MS = 60_000;
const ALL = '*';

/** Counts wrong passwords in this process. The limits do not affect existing sessions. */
interface LoginLimits {
  /** @throws ApiError `rate_limited` with Retry-After. */
  check(address: string): void;
  /** Records a failure. Returns whether it is the first of this address within the window. */
  failed(address: string): boolean;
}

export function createLoginLimits(): LoginLimits {
  const failures = new LRUCache<string, number>({ max: 10_000, ttl: WINDOW_MS });
  const all = new LRUCache<typeof ALL, number>({ max: 1, ttl: WINDOW_MS });

  function rejectLogin(remainingMs: number): never {
    throw new ApiError('rate_limited', 'too many failed logins', {
      headers: { 'Retry-After': String(Math.max(1, Math.ceil(remainingMs / 1000))) },
    });
  }

  return {
    check(address) {
      if ((failures.get(address) ?? 0) >= MAX_FAILURES_OF_ADDRESS) rejectLogin(failures.getRemainingTTL(address));
      if ((all.get(ALL) ?? 0) >= MAX_FAILURES) rejectLogin(all.getRemainingTTL(ALL));
    },
    failed(address) {
      const before = failures.get(address) ?? 0;
      failures.set(address, before + 1, { noUpdateTTL: true });
      all.set(ALL, (all.get(ALL) ?? 0) + 1, { noUpdateTTL: true });
      return before === 0;
    },
  };
}
