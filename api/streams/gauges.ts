import type { Collector } from '../../src/observe/collectors.ts';
import type { StreamMetrics } from '../../src/observe/work-metrics.ts';
import type { Streams } from './streams.ts';

/** The figures of open streams, read at a scrape. */
export function streamGauges(metrics: StreamMetrics, streams: Pick<Streams, 'usage'>): Collector {
  return {
    name: 'streams',
    async read() {
      const { connections, subscriptions, unsentBytes, largestUnsentBytes, slowBytes } = streams.usage();
      metrics.streamConnections.set(connections);
      metrics.streamSubscriptions.set(subscriptions);
      metrics.streamUnsentBytes.set({ of: 'all' }, unsentBytes);
      metrics.streamUnsentBytes.set({ of: 'largest' }, largestUnsentBytes);
      metrics.streamUnsentBytes.set({ of: 'slow' }, slowBytes);
    },
    forget: () => undefined,
  };
}
