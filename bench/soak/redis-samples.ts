import { createRedisClient } from '../../src/queues/redis-connection.ts';
import type { Figures } from './process-samples.ts';

/** Samples the Redis of the queues over one connection. */
export function watchRedis(url: string): { sample(): Promise<Figures>; close(): void } {
  const client = createRedisClient(url, { maxRetriesPerRequest: 1, enableOfflineQueue: true, lazyConnect: true });
  return {
    async sample() {
      const text = String(await client.info());
      const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
      return { 'queue store: memory': field('used_memory'), 'queue store: clients': field('connected_clients') };
    },
    close: () => client.disconnect(),
  };
}
