import { VENUES } from '../../src/domain/markets/venue.ts';
import { measureFreshness } from '../../src/store/prices/freshness.ts';
import { defineJob } from '../process/define.ts';

/** Stores the age of the prices of each venue, for metrics, `/v1/venues` and the operator pages. */
export const measureFreshnessJob = defineJob('measure-freshness', async (_data, { config, db }) => {
  const priced = config.venues.filter((venue) => VENUES[venue].capabilities.prices);
  const measured = await measureFreshness(db, priced);
  return { venues: measured.length, markets: measured.reduce((sum, { markets }) => sum + markets, 0) };
});
