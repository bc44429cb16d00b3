import { startExchange } from '../../../sim/exchange.ts';
import { isPool, tokenIdOf } from '../../../sim/limitless/wire.ts';
import type { ExchangeOptions } from '../../../sim/options.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { breakExchange } from './break-exchange.ts';
import type { LedgerTrade, LiveVenue } from './venue-under-test.ts';

const START_SECOND = 1_790_000_000;
const RENAMED = ['slug', 'events', 'tradePrices', 'bids'];

type Exchange = Awaited<ReturnType<typeof startExchange>>;
type MarketState = ReturnType<Exchange['state']>['markets'][number];
type Row = ReturnType<Exchange['ledger']>['trades'][number];

/** The simulated exchange in Limitless' format, on a clock that only moves when told to. */
export async function startSimulatedLimitless(
  options: ExchangeOptions = {},
): Promise<LiveVenue & { exchange: Exchange }> {
  const exchange = await startExchange({
    seed: 7,
    markets: 40,
    historyHours: 0.1,
    nowSecond: START_SECOND,
    paused: true,
    ...options,
  });
  const markets = () => exchange.state().markets;
  // The venue does not list a market that ended before the first read, so its trades cannot be read.
  const unknown = new Set(
    markets()
      .filter((market) => market.phase === 'resolved' || hasNoFeed(market))
      .map(({ conditionId }) => conditionId),
  );
  // A market that waits for its result.
  const closing = markets().find((market) => market.phase === 'open' && !market.negRisk && !hasNoFeed(market));
  if (closing === undefined) throw new Error('no market to close');
  exchange.steer({ conditionId: closing.conditionId, action: 'close' });
  let restMs = 0;
  return {
    exchange,
    createAdapter: (timeouts) =>
      createLimitlessAdapter({
        url: exchange.limitlessUrl,
        // Small pages, so that walks are long.
        markets: { pageSize: 10 },
        trades: { listingPageSize: 10, pageSize: 40, feedsPerCall: 5, pagesPerCall: 2, initialLookbackMs: 7_200_000 },
        http: {
          requestsPerSecond: 10_000,
          burst: 1_000,
          retryDelayMs: 5,
          maxAttempts: 2,
          ...timeouts,
        },
      }),
    now: () => exchange.second() * 1000 + restMs,
    marketIds: async () => listedSlugs(markets()),
    outcomeIds: async () =>
      markets()
        .filter((market) => market.phase === 'open' && !hasNoFeed(market))
        .filter(({ outcomes: [yes] }) => yes.bestBid && yes.bestAsk)
        .flatMap(({ outcomes }) => outcomes.map(({ tokenId }) => tokenIdOf(tokenId))),
    ledger: async () => {
      for (const market of markets()) if (hasNoFeed(market)) unknown.add(market.conditionId);
      return exchange
        .ledger()
        .trades.filter((row) => !unknown.has(row.conditionId))
        .map(ledgerTrade);
    },
    trade: async () => exchange.step(20),
    rest: async () => {
      // The exchange trades whenever its own clock moves. Longer than a round over the listing may be away.
      restMs += 15_000;
    },
    break: async (fault) => {
      breakExchange(exchange, fault, { host: 'limitless', renamed: RENAMED });
    },
    heal: async () => {
      exchange.clearFaults();
    },
    close: () => exchange.close(),
  };
}

/** Markets without a result, and those of a group that goes on. */
function listedSlugs(markets: readonly MarketState[]): string[] {
  const isGroupActive = markets.some((market) => market.negRisk && market.phase !== 'resolved');
  return markets
    .filter(({ negRisk, phase }) => phase !== 'resolved' || (negRisk && isGroupActive))
    .map(({ slug }) => slug);
}

function hasNoFeed({ outcomes: [yes], negRisk }: MarketState): boolean {
  return isPool({ tokenId: yes.tokenId, negRisk });
}

function ledgerTrade(row: Row): LedgerTrade {
  return {
    outcomeId: tokenIdOf(row.tokenId),
    second: row.timestamp,
    price: decimal(row.price),
    size: decimal(row.size),
    side: row.side === 'BUY' ? 'buy' : 'sell',
  };
}
