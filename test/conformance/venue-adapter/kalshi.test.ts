import { parseBooks } from '../../../src/venues/kalshi/parse-book.ts';
import { parseMarkets } from '../../../src/venues/kalshi/parse-market.ts';
import { parsePrices } from '../../../src/venues/kalshi/parse-price.ts';
import { collectTrades, readFeed } from '../../../src/venues/kalshi/parse-trade.ts';
import { startSimulatedKalshi } from './kalshi-exchange.ts';
import { kalshiRecordings } from './recordings/kalshi.ts';
import { describeVenueAdapter } from './suite.ts';

describeVenueAdapter({
  name: 'kalshi',
  recordings: kalshiRecordings,
  parse: {
    markets: parseMarkets,
    books: parseBooks,
    prices: parsePrices,
    trades: (records, nowMs) => collectTrades(readFeed(records, nowMs)),
  },
  recordsPerRow: { books: [2, 2], prices: [2, 2] },
  live: [{ name: 'the simulated exchange', start: startSimulatedKalshi }],
});
