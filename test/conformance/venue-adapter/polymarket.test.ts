import { parseBooks } from '../../../src/venues/polymarket/parse-book.ts';
import { parseMarkets } from '../../../src/venues/polymarket/parse-market.ts';
import { identifyTrades, readFeed } from '../../../src/venues/polymarket/parse-trade.ts';
import { startSimulatedPolymarket } from './polymarket-exchange.ts';
import { polymarketRecordings } from './recordings/polymarket.ts';
import { describeVenueAdapter } from './suite.ts';

/** Without the order, which counts the other trades of the second and so changes with a neighbour. */
function parseTrades(rows: readonly unknown[], nowMs: number) {
  const { records, ...batch } = identifyTrades(readFeed(rows, nowMs));
  return { ...batch, records: records.map(({ ordinal: _, ...trade }) => trade) };
}

describeVenueAdapter({
  name: 'polymarket',
  recordings: polymarketRecordings,
  parse: {
    markets: parseMarkets,
    books: (records, nowMs) => parseBooks('books', records, nowMs),
    prices: (records, nowMs) => parseBooks('prices', records, nowMs),
    trades: parseTrades,
  },
  live: [{ name: 'the simulated exchange', start: startSimulatedPolymarket }],
});
