import { z } from 'zod';
import { count, epochTime } from './wire.ts';

const capability = z.boolean();

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
    healthy: z
      .boolean()
      .meta({ description: 'Every kind of poll succeeded recently and did not fail three times in a row.' }),
    failing: z
      .array(z.object({ kind: z.string(), failures: count, reason: z.string() }))
      .optional()
      .meta({ description: 'The kinds of poll whose latest run failed.' }),
    last_success_at: epochTime.optional(),
    lag_seconds: count.optional().meta({ description: 'Age of the stalest kind of poll.' }),
    markets: count.meta({ description: 'Number of stored markets.' }),
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
};
