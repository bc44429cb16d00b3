import { parseBooks } from '../../../src/venues/limitless/parse-book.ts';
import { parseMarkets } from '../../../src/venues/limitless/parse-market.ts';
import { parsePrices } from '../../../src/venues/limitless/parse-price.ts';
import { identifyTrades, readFeed } from '../../../src/venues/limitless/parse-trade.ts';
import { startSimulatedLimitless } from './limitless-exchange.ts';
import { limitlessRecordings } from './recordings/limitless.ts';
import { describeVenueAdapter } from './suite.ts';

describeVenueAdapter({
  name: 'limitless',
  recordings: limitlessRecordings,
  parse: {
    markets: (records, nowMs) => parseMarkets(records, nowMs),
    prices: parsePrices,
    books: parseBooks,
    trades: (records, nowMs) => identifyTrades(readFeed(records, nowMs)),
  },
  recordsPerRow: { prices: [2, 2], books: [2, 2] },
  live: [{ name: 'the simulated exchange', start: startSimulatedLimitless }],
});
