import { runPoll } from '../polling/lease.ts';
import { priceRound } from '../polling/price-round.ts';
import { priceSweep } from '../polling/price-sweep.ts';
import { sweepPages } from '../polling/sweep-walk.ts';
import { defineJob } from '../process/define.ts';

/**
 * Sweeps over the prices of all open markets of a venue, by the venue's own list of quotes or by the ids of the outcomes. A tick that ends
 * before the sweep leaves the rest to the next one. A sweep that takes longer than its interval is followed by the next one at once.
 */
export const pollPrices = defineJob('poll-prices', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'prices', adapters: context.adapters }, (adapter, start) =>
    adapter.sweepPrices
      ? sweepPages(context, priceSweep(context, venue, adapter.sweepPrices), start)
      : sweepPages(context, priceRound(context, venue, adapter), start),
  ),
);
