import { startExchange } from '../../../sim/exchange.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { breakExchange } from './break-exchange.ts';
import type { LiveVenue } from './venue-under-test.ts';

const START_SECOND = 1_790_000_000;

/** The simulated exchange on a clock that moves only on request. */
export async function startSimulatedPolymarket(): Promise<LiveVenue> {
  const exchange = await startExchange({
    seed: 7,
    markets: 40,
    historyHours: 0.1,
    nowSecond: START_SECOND,
    paused: true,
  });
  let restMs = 0;
  return {
    createAdapter: (timeouts) =>
      createPolymarketAdapter({
        urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
        // Small pages make long walks. Pages of trades shrink by the second: 440 rows and less.
        markets: { pageSize: 7 },
        trades: { pageSize: 440, pagesPerCall: 2, initialLookbackSeconds: 7_200 },
        http: {
          requestsPerSecond: 10_000,
          retryDelayMs: 5,
          maxAttempts: 2,
          ...timeouts,
        },
      }),
    now: () => exchange.second() * 1000 + restMs,
    unknownMarketId: `0x${'0'.repeat(64)}`,
    marketIds: async () => exchange.state().markets.map((market) => market.conditionId),
    outcomeIds: async () =>
      exchange
        .state()
        .markets.filter((market) => market.phase === 'open')
        .flatMap((market) =>
          market.outcomes.filter((each) => each.bestBid && each.bestAsk).map((each) => each.tokenId),
        ),
    ledger: async () =>
      exchange.ledger().trades.map((row) => ({
        outcomeId: row.tokenId,
        second: row.timestamp,
        price: decimal(row.price),
        size: decimal(row.size),
        side: row.side === 'BUY' ? ('buy' as const) : ('sell' as const),
      })),
    trade: async () => exchange.step(20),
    rest: async () => {
      // The exchange trades whenever its own clock moves.
      restMs += 5_000;
    },
    break: async (fault) => {
      breakExchange(exchange, fault, { host: '*', renamed: ['price', 'conditionId', 'bids'] });
    },
    heal: async () => {
      exchange.clearFaults();
    },
    close: () => exchange.close(),
  };
}
