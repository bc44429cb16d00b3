import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../src/domain/markets/market.ts';
import type {
  Batch,
  CallContext,
  HistoryPage,
  HistoryRequest,
  MarketPage,
  Page,
  VenueAdapter,
} from '../../src/venues/port.ts';

/** A venue with scripted answers: every omitted method yields an empty answer. */
export interface ScriptedAdapter extends VenueAdapter {
  /** Positions at which walks were asked to resume, in order. */
  readonly positions: unknown[];
  /** Outcome or market ids of each requested batch. */
  readonly batches: (readonly string[])[];
}

export interface Script {
  venue?: string;
  markets?(position: unknown, call: CallContext): Promise<MarketPage>;
  trades?(position: unknown, call: CallContext): Promise<Page<TradeRecord>>;
  prices?(outcomeIds: readonly string[], call: CallContext): Promise<Batch<PriceRecord>>;
  books?(outcomeIds: readonly string[], call: CallContext): Promise<Batch<BookRecord>>;
  marketsById?(marketIds: readonly string[], call: CallContext): Promise<Batch<MarketRecord>>;
  history?(request: HistoryRequest, position: unknown, call: CallContext): Promise<HistoryPage>;
  maxOutcomesPerFetch?: number;
  maxMarketsPerFetch?: number;
}

/** The last page of a walk with these records. */
export function lastPage<R>(records: R[] = [], position: unknown = null): Page<R> {
  return { records, rejected: [], position, more: false };
}

/** One page per record list; the position is `{ page }`, the number of the next page. */
export function pagesOf<R>(pages: readonly R[][]): (position: unknown) => Promise<Page<R>> {
  return async (position) => {
    const index = (position as { page: number } | null)?.page ?? 0;
    return {
      records: pages[index] ?? [],
      rejected: [],
      position: { page: index + 1 },
      more: index + 1 < pages.length,
    };
  };
}

export function scriptedAdapter(script: Script): ScriptedAdapter {
  const positions: unknown[] = [];
  const batches: (readonly string[])[] = [];
  const nothing = { records: [], rejected: [] };
  return {
    venue: script.venue ?? 'v',
    title: 'A venue of the tests',
    currency: 'USD',
    capabilities: {
      markets: true,
      prices: true,
      books: true,
      trades: true,
      history: true,
      wallets: false,
      tokens: false,
    },
    maxOutcomesPerFetch: script.maxOutcomesPerFetch ?? 100,
    maxMarketsPerFetch: script.maxMarketsPerFetch ?? 100,
    positions,
    batches,
    async pollMarkets(position, call) {
      positions.push(position);
      return script.markets ? script.markets(position, call) : lastPage();
    },
    async pollTrades(position, call) {
      positions.push(position);
      return script.trades ? script.trades(position, call) : lastPage();
    },
    async fetchPrices(outcomeIds, call) {
      batches.push([...outcomeIds]);
      return script.prices ? script.prices(outcomeIds, call) : nothing;
    },
    async fetchBooks(outcomeIds, call) {
      batches.push([...outcomeIds]);
      return script.books ? script.books(outcomeIds, call) : nothing;
    },
    async fetchMarkets(marketIds, call) {
      batches.push([...marketIds]);
      return script.marketsById ? script.marketsById(marketIds, call) : nothing;
    },
    async pollHistory(request, position, call) {
      positions.push(position);
      return script.history
        ? script.history(request, position, call)
        : { ...lastPage<TradeRecord>(), reachedMs: request.fromMs };
    },
    close: async () => undefined,
  };
}
