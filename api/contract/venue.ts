import { z } from 'zod';
import { completeness, completenessExample } from './completeness.ts';
import { feed, feedExample } from './feed.ts';
import { count, epochTime } from './wire.ts';

const capability = z.boolean();
const seconds = z.number().min(0);

/** An enabled venue. */
export const venue = z
  .object({
    venue: z.string(),
    title: z.string(),
    currency: z.string().meta({ description: 'Currency of its prices. MANA is play money.' }),
    capabilities: z.object({
      markets: capability,
      prices: capability,
      books: capability,
      trades: capability,
      history: capability.meta({ description: 'oddswire can fetch the trades of one market back to its start.' }),
      wallets: capability,
      tokens: capability,
    }),
    healthy: z.boolean().meta({
      description:
        'Every kind of poll succeeded recently, or had nothing to request, and did not fail three times in a row.',
    }),
    failing: z
      .array(z.object({ kind: z.string(), failures: count, reason: z.string() }))
      .optional()
      .meta({ description: 'The kinds of poll whose latest run failed.' }),
    never_succeeded: z
      .array(z.string())
      .optional()
      .meta({ description: 'The kinds of poll that never got an answer of the venue.' }),
    last_success_at: epochTime.optional().meta({ description: 'The last answer of the venue that was stored.' }),
    lag_seconds: count
      .optional()
      .meta({ description: 'Age of the stalest kind of poll. Kinds without anything to request do not count.' }),
    markets: count.meta({ description: 'Number of stored markets.' }),
    feed: feed.optional().meta({ description: 'The WebSocket feed. Absent for a source without markets.' }),
    completeness: completeness.optional().meta({ description: 'Absent before the first comparison.' }),
    price_age: z
      .object({
        p50_seconds: seconds.optional(),
        p99_seconds: seconds.optional(),
        max_seconds: seconds.optional(),
        markets: count.meta({ description: 'Number of open markets.' }),
        unpriced: count.meta({ description: 'Open markets without any price. The ages do not count them.' }),
        measured_at: epochTime,
      })
      .optional()
      .meta({
        description:
          'The time since the venue last confirmed the price of a market, over all open markets: median, 99th percentile and maximum. Measured every 15 seconds. Absent before the first measurement.',
      }),
  })
  .meta({ description: 'A market source that oddswire polls.' });
export type VenueBody = z.output<typeof venue>;

export const venueExample: VenueBody = {
  venue: 'polymarket',
  title: 'Polymarket',
  currency: 'USD',
  capabilities: {
    markets: true,
    prices: true,
    books: true,
    trades: true,
    history: true,
    wallets: true,
    tokens: false,
  },
  healthy: true,
  last_success_at: 1767323045,
  lag_seconds: 2,
  markets: 41876,
  feed: feedExample,
  completeness: completenessExample,
  price_age: {
    p50_seconds: 11.4,
    p99_seconds: 24.9,
    max_seconds: 31.2,
    markets: 38211,
    unpriced: 57,
    measured_at: 1767323040,
  },
};
