import { Counter, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from './buckets.ts';

/** The messages of the venues' feeds, and their way into the database. */
export function feedCounters(registry: Registry) {
  const registers = [registry];
  return {
    feedMessages: new Counter({
      name: 'feed_messages_total',
      help: 'Messages of feeds by how they ended: applied, rejected or skipped',
      labelNames: ['venue', 'end'],
      registers,
    }),
    feedSkips: new Counter({
      name: 'feed_skipped_total',
      help: 'Skipped messages of feeds by the reasons of docs/feeds.md',
      labelNames: ['venue', 'reason'],
      registers,
    }),
    feedLosses: new Counter({
      name: 'feed_gaps_total',
      help: 'Gaps of feeds that this process noticed, by reason',
      labelNames: ['venue', 'reason'],
      registers,
    }),
    feedGivenUp: new Counter({
      name: 'feed_given_up_total',
      help: 'Markets that were left to the polls for ten minutes, because their feed lost changes again and again',
      labelNames: ['venue'],
      registers,
    }),
    feedWrite: new Histogram({
      name: 'feed_write_seconds',
      help: 'From the arrival of a quote to its commit',
      labelNames: ['venue'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
  };
}
