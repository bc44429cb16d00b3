import { startExchange } from '../../../sim/exchange.ts';
import { decimal } from '../../../src/domain/decimal.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { LiveFault, LiveVenue } from './venue-under-test.ts';

const START_SECOND = 1_790_000_000;
/** Longer than the adapter waits, shorter than anyone else. */
const SLOW_MS = 1_500;

/** The simulated exchange on a clock that only moves when told to. */
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
    createAdapter: () =>
      createPolymarketAdapter({
        urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
        // Small pages, so that walks are long.
        markets: { pageSize: 7 },
        trades: { pageSize: 40, initialLookbackSeconds: 7_200 },
        http: {
          requestsPerSecond: 10_000,
          attemptTimeoutMs: 500,
          callTimeoutMs: 1_000,
          retryDelayMs: 5,
          maxAttempts: 2,
        },
      }),
    now: () => exchange.state().second * 1000 + restMs,
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
      breakExchange(exchange, fault);
    },
    heal: async () => {
      exchange.clearFaults();
    },
    close: () => exchange.close(),
  };
}

type Exchange = Awaited<ReturnType<typeof startExchange>>;

function breakExchange(exchange: Exchange, fault: LiveFault): void {
  switch (fault) {
    case 'server_errors':
      exchange.addFault({ host: '*', kind: 'status500' });
      break;
    case 'rate_limit':
      exchange.addFault({ host: '*', kind: 'status429', retryAfterSeconds: 60 });
      break;
    case 'truncated_json':
      exchange.addFault({ host: '*', kind: 'truncate' });
      break;
    case 'slow':
      exchange.addFault({ host: '*', kind: 'latency', latencyMs: SLOW_MS });
      break;
    case 'renamed_field':
      for (const from of ['price', 'conditionId', 'bids']) {
        exchange.addFault({ host: '*', kind: 'rename_field', field: { from, to: `new_${from}` } });
      }
  }
}
