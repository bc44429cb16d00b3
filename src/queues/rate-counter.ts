import type { AddUsage } from '../domain/values/usage.ts';
import type { RedisClient } from './redis-connection.ts';

/** Longer than any window, so that Redis expires the counters of past windows. */
const KEPT_MS = 180_000;

/**
 * `AddUsage` in Redis: one round trip for all subjects. `prefix` contains a hash tag, so that all keys are on one server of a
 * cluster. Each window has its own key, so no window is ever later than another.
 */
export function createRedisUsage(redis: RedisClient, prefix: string): AddUsage {
  return async (entries) => {
    if (entries.length === 0) return [];
    const pipeline = redis.pipeline();
    for (const { kind, subject, windowStartMs, used } of entries) {
      const key = `${prefix}:usage:${kind}:${subject}:${windowStartMs}`;
      pipeline.incrby(key, used);
      pipeline.pexpire(key, KEPT_MS);
    }
    const replies = (await pipeline.exec()) ?? [];
    return entries.map((_, i) => {
      const [error, total] = replies[2 * i] ?? [new Error('no reply')];
      if (error) throw error;
      return Number(total);
    });
  };
}
