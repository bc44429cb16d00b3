import { Gauge, type Registry } from 'prom-client';

/** The venues' feeds, as all processes together see them. A feed that is off has no samples. */
export function feedGauges(registry: Registry) {
  const of = (name: string, help: string) => new Gauge({ name, help, labelNames: ['venue'], registers: [registry] });
  return {
    feedUp: of('feed_up', '1 while data of the feed of the venue arrives, else 0'),
    feedSubscribed: of('feed_subscribed_outcomes', 'Outcomes whose changes the feed of the venue sends'),
    feedMessagesPerSecond: of('feed_messages_per_second', 'Messages of the feed of the venue per second'),
    feedLag: of('feed_lag_seconds', "Time between the venue's time of a message and its arrival"),
    feedOpenGaps: of('feed_gaps_open', 'Gaps of the feed of the venue that have not ended'),
  };
}
