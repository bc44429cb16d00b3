import { startExchange } from '../../../sim/exchange.ts';
import { decimal, ONE, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import { breakExchange } from './break-exchange.ts';
import type { LedgerTrade, LiveVenue } from './venue-under-test.ts';

const START_SECOND = 1_790_000_000;
const RENAMED = ['id', 'question', 'createdTime', 'prob', 'answerProbs'];

type Exchange = Awaited<ReturnType<typeof startExchange>>;
type MarketState = ReturnType<Exchange['state']>['markets'][number];
type LedgerRow = ReturnType<Exchange['ledger']>['trades'][number];

/** A contract of the venue's listing, with the fields that the expected truth needs. */
interface Listed {
  id: string;
  outcomeType: string;
  url: string;
}

interface Page {
  answers?: { id: string; text: string }[];
}

/** The simulated exchange in Manifold's format, on a clock that moves only on request. */
export async function startSimulatedManifold(): Promise<LiveVenue> {
  const exchange = await startExchange({
    seed: 7,
    markets: 40,
    historyHours: 0.1,
    nowSecond: START_SECOND,
    paused: true,
  });
  let restMs = 0;
  /** The truth is read from the venue too, where a fault would change it. */
  let knownOutcomeIds: string[] | undefined;
  const outcomeIds = async () => {
    const places = await placesOf(exchange);
    return exchange
      .state()
      .markets.filter((market) => market.phase === 'open')
      .flatMap((market) => places.get(market.conditionId)?.outcomeIds ?? []);
  };
  return {
    createAdapter: (timeouts) =>
      createManifoldAdapter({
        url: exchange.manifoldUrl,
        // Small pages make long walks.
        markets: { pageSize: 7 },
        trades: { pageSize: 40, initialLookbackMs: 7_200_000 },
        http: {
          requestsPerSecond: 10_000,
          burst: 1_000,
          retryDelayMs: 5,
          maxAttempts: 2,
          ...timeouts,
        },
      }),
    now: () => exchange.second() * 1000 + restMs,
    marketIds: async () => (await tradable(exchange)).map((each) => each.id),
    outcomeIds: async () => knownOutcomeIds ?? (await outcomeIds()),
    ledger: async () => {
      const places = await placesOf(exchange);
      return exchange.ledger().trades.map((row) => ledgerTrade(row, places.get(row.conditionId)));
    },
    trade: async () => exchange.step(20),
    rest: async () => {
      // The exchange trades whenever its own clock moves.
      restMs += 5_000;
    },
    break: async (fault) => {
      knownOutcomeIds = await outcomeIds();
      breakExchange(exchange, fault, { host: 'manifold', renamed: RENAMED });
    },
    heal: async () => {
      exchange.clearFaults();
      knownOutcomeIds = undefined;
    },
    close: () => exchange.close(),
  };
}

/** The place of a market of the engine on the venue. */
interface Place {
  contractId: string;
  outcomeIds: string[];
  isAnswer: boolean;
}

async function tradable(exchange: Exchange): Promise<Listed[]> {
  const listed = await getJson<Listed[]>(`${exchange.manifoldUrl}/markets?limit=1000`);
  return listed.filter((each) => each.outcomeType === 'BINARY' || each.outcomeType === 'MULTIPLE_CHOICE');
}

/** By condition id. Binary contracts are recognised by their slug, answers by the order of their markets. */
async function placesOf(exchange: Exchange): Promise<Map<string, Place>> {
  const { markets } = exchange.state();
  const places = new Map<string, Place>();
  for (const { id, outcomeType, url } of await tradable(exchange)) {
    if (outcomeType === 'BINARY') {
      const market = markets.find((each) => url.endsWith(`/${each.slug}`));
      put(places, market, { contractId: id, outcomeIds: [`${id}:YES`, `${id}:NO`], isAnswer: false });
      continue;
    }
    const { answers = [] } = await getJson<Page>(`${exchange.manifoldUrl}/market/${id}`);
    const members = markets.filter((market) => market.negRisk);
    for (const [index, answer] of answers.entries()) {
      put(places, members[index], { contractId: id, outcomeIds: [`${id}:${answer.id}`], isAnswer: true });
    }
  }
  return places;
}

function put(places: Map<string, Place>, market: MarketState | undefined, place: Place): void {
  if (market) places.set(market.conditionId, place);
}

async function getJson<T>(url: string): Promise<T> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return (await answer.json()) as T;
}

/** A fill in Manifold's form: the price is mana per share, and NO of an answer is in terms of its YES. */
function ledgerTrade(row: LedgerRow, place: Place | undefined): LedgerTrade {
  const price = decimal(row.price);
  const isMirrored = place?.isAnswer === true && row.outcomeIndex === 1;
  return {
    outcomeId: place?.outcomeIds[place.isAnswer ? 0 : row.outcomeIndex] ?? 'nowhere',
    second: row.timestamp,
    price: isMirrored ? subtractDecimals(ONE, price) : price,
    size: decimal(row.size),
    side: (row.side === 'BUY') === isMirrored ? 'sell' : 'buy',
  };
}
