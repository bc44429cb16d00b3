import { parseBooks } from '../../../src/venues/polymarket/parse-book.ts';
import { parseMarkets } from '../../../src/venues/polymarket/parse-market.ts';
import { identifyTrades, readFeed } from '../../../src/venues/polymarket/parse-trade.ts';
import { startSimulatedPolymarket } from './polymarket-exchange.ts';
import { polymarketRecordings } from './polymarket-recordings.ts';
import { describeVenueAdapter } from './suite.ts';

describeVenueAdapter({
  name: 'polymarket',
  recordings: polymarketRecordings,
  parse: {
    markets: parseMarkets,
    books: (records, nowMs) => parseBooks('books', records, nowMs),
    prices: (records, nowMs) => parseBooks('prices', records, nowMs),
    trades: (records, nowMs) => identifyTrades(readFeed(records, nowMs)),
  },
  live: [{ name: 'the simulated exchange', start: startSimulatedPolymarket }],
});
