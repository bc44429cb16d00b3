import { startExchange } from '../../../sim/exchange.ts';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import type { ExchangeOptions } from '../../../sim/options.ts';
import { decimal, ONE, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/tickers.ts';
import { breakExchange } from './break-exchange.ts';
import type { LedgerTrade, LiveVenue } from './venue-under-test.ts';

const START_SECOND = 1_790_000_000;

type Exchange = Awaited<ReturnType<typeof startExchange>>;
type Row = ReturnType<Exchange['ledger']>['trades'][number];

/** The simulated exchange in Kalshi's format, on a clock that moves only on request. */
export async function startSimulatedKalshi(options: ExchangeOptions = {}): Promise<LiveVenue & { exchange: Exchange }> {
  const exchange = await startExchange({
    seed: 7,
    markets: 40,
    historyHours: 0.1,
    nowSecond: START_SECOND,
    paused: true,
    ...options,
  });
  let restMs = 0;
  return {
    exchange,
    createAdapter: (timeouts) =>
      createKalshiAdapter({
        url: exchange.kalshiUrl,
        // Small pages make long walks.
        markets: { eventsPerPage: 7, marketsPerPage: 7 },
        prices: { marketsPerPage: 2 },
        trades: { pageSize: 40, initialLookbackSeconds: 7_200 },
        http: {
          requestsPerSecond: 10_000,
          retryDelayMs: 5,
          maxAttempts: 2,
          ...timeouts,
        },
      }),
    now: () => exchange.second() * 1000 + restMs,
    marketIds: async () => exchange.state().markets.map(tickerOf),
    outcomeIds: async () =>
      exchange
        .state()
        .markets.filter(({ phase, outcomes: [yes] }) => phase === 'open' && yes.bestBid && yes.bestAsk)
        .flatMap((market) => Object.values(outcomeIdsOf(tickerOf(market)))),
    ledger: async () => {
      const ids = new Map(exchange.state().markets.map((market) => [market.conditionId, tickerOf(market)]));
      return exchange.ledger().trades.map((row) => ledgerTrade(row, ids.get(row.conditionId) ?? ''));
    },
    trade: async () => exchange.step(20),
    rest: async () => {
      // The exchange trades whenever its own clock moves.
      restMs += 5_000;
    },
    break: async (fault) => {
      breakExchange(exchange, fault, {
        host: '*',
        renamed: ['count_fp', 'status', 'orderbook_fp', 'yes_price_dollars'],
      });
    },
    heal: async () => {
      exchange.clearFaults();
    },
    close: () => exchange.close(),
  };
}

/** A fill in terms of YES: a sale of NO at p is a purchase of YES at 1 - p. */
function ledgerTrade(row: Row, ticker: string): LedgerTrade {
  const price = decimal(row.price);
  const isYes = row.outcomeIndex === 0;
  return {
    outcomeId: outcomeIdsOf(ticker).yes,
    second: row.timestamp,
    price: isYes ? price : subtractDecimals(ONE, price),
    size: decimal(row.size),
    side: (row.side === 'BUY') === isYes ? 'buy' : 'sell',
  };
}
