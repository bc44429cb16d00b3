import { parseMarkets } from '../../../src/venues/manifold/parse-market.ts';
import { parseBets } from '../../../src/venues/manifold/parse-trade.ts';
import { startSimulatedManifold } from './manifold-exchange.ts';
import { manifoldRecordings } from './recordings/manifold.ts';
import { describeVenueAdapter } from './suite.ts';

const nothing = () => ({ records: [], rejected: [] });

describeVenueAdapter({
  name: 'manifold',
  recordings: manifoldRecordings,
  // Probabilities were not recorded, and the venue has no books.
  parse: { markets: parseMarkets, trades: parseBets, prices: nothing, books: nothing },
  live: [{ name: 'the simulated exchange', start: startSimulatedManifold }],
});
