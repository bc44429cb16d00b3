import type { VenueName } from '../../../../src/domain/markets/venue.ts';
import * as kalshiBooks from '../../../../src/venues/kalshi/parse-book.ts';
import * as kalshiMarkets from '../../../../src/venues/kalshi/parse-market.ts';
import * as kalshiPrices from '../../../../src/venues/kalshi/parse-price.ts';
import * as kalshiTrades from '../../../../src/venues/kalshi/parse-trade.ts';
import * as limitlessBooks from '../../../../src/venues/limitless/parse-book.ts';
import * as limitlessMarkets from '../../../../src/venues/limitless/parse-market.ts';
import * as limitlessPrices from '../../../../src/venues/limitless/parse-price.ts';
import * as limitlessTrades from '../../../../src/venues/limitless/parse-trade.ts';
import * as manifoldMarkets from '../../../../src/venues/manifold/parse-market.ts';
import { parseBets } from '../../../../src/venues/manifold/parse-trade.ts';
import * as polymarketBooks from '../../../../src/venues/polymarket/parse-book.ts';
import * as polymarketMarkets from '../../../../src/venues/polymarket/parse-market.ts';
import * as polymarketTrades from '../../../../src/venues/polymarket/parse-trade.ts';
import type { ParsedRecords, PollKind, Recordings } from '../venue-under-test.ts';
import { kalshiRecordings } from './kalshi.ts';
import { limitlessRecordings } from './limitless.ts';
import { manifoldRecordings } from './manifold.ts';
import { polymarketRecordings } from './polymarket.ts';

export type Parse = (records: readonly unknown[], nowMs: number) => ParsedRecords;

/** The recordings of a venue and the parsers of its stored records. */
export interface RecordedVenue {
  name: VenueName;
  recordings: () => Recordings | undefined;
  parse: Readonly<Partial<Record<PollKind, Parse>>>;
  /** The number of records of one accepted row, if it is not one. */
  recordsPerRow?: Readonly<Partial<Record<PollKind, number>>>;
}

export const RECORDED_VENUES: readonly RecordedVenue[] = [
  {
    name: 'polymarket',
    recordings: polymarketRecordings,
    parse: {
      markets: polymarketMarkets.parseMarkets,
      books: (records, nowMs) => polymarketBooks.parseBooks('books', records, nowMs),
      trades: (records, nowMs) => polymarketTrades.identifyTrades(polymarketTrades.readFeed(records, nowMs)),
    },
  },
  {
    name: 'kalshi',
    recordings: kalshiRecordings,
    parse: {
      markets: kalshiMarkets.parseMarkets,
      books: kalshiBooks.parseBooks,
      prices: kalshiPrices.parsePrices,
      trades: (records, nowMs) => kalshiTrades.collectTrades(kalshiTrades.readFeed(records, nowMs)),
    },
    // A market object contains the prices and books of both outcomes.
    recordsPerRow: { books: 2, prices: 2 },
  },
  {
    name: 'manifold',
    recordings: manifoldRecordings,
    parse: { markets: manifoldMarkets.parseMarkets, trades: parseBets },
  },
  {
    name: 'limitless',
    recordings: limitlessRecordings,
    parse: {
      markets: (records, nowMs) => limitlessMarkets.parseMarkets(records, nowMs),
      books: limitlessBooks.parseBooks,
      prices: limitlessPrices.parsePrices,
      trades: (records, nowMs) => limitlessTrades.identifyTrades(limitlessTrades.readFeed(records, nowMs)),
    },
    // A market object holds the prices of both outcomes, and a book is that of both.
    recordsPerRow: { books: 2, prices: 2 },
  },
];
