import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FaultRequest, MarketState } from '../../sim/exchange.ts';
import { findTokens } from '../../src/store/catalog/tokens.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { outcomeIdsOf } from '../../src/venues/kalshi/tickers.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type System, startSystem } from '../support/processes/system.ts';
import { wrongCandles } from './oracle.ts';
import {
  findPlaces,
  impossibleRows,
  ledgerOrder,
  ledgerTape,
  MARKET_VENUES,
  type MarketVenue,
  type Places,
  pricesSince,
  storedMarket,
  storedOrder,
  storedTapes,
} from './venue-ledger.ts';

interface Venue {
  venue: MarketVenue;
  currency: string;
  healthy: boolean;
  markets: number;
  lag_seconds?: number;
  failing?: { kind: string; reason: string }[];
}
interface Market {
  market_id: string;
  venue: string;
}

interface MarketEvent {
  event_id: string;
  title: string;
  market_count: number;
  markets: { title: string; event_title: string; sibling_label?: string }[];
}

interface Trouble {
  name: string;
  venue: MarketVenue;
  faults: FaultRequest[];
  /** Whether `/v1/venues` reports it at once. A hanging call fails only when its deadline ends. */
  isNoticed: boolean;
}

/**
 * The poller retries a failed host after ten seconds, with a growing delay. The order of the faults gives each host time to recover
 * before the last fault begins.
 */
const TROUBLES: Trouble[] = [
  { name: 'down', venue: 'kalshi', faults: [{ host: 'kalshi', kind: 'reset' }], isNoticed: true },
  {
    name: 'so slow that it never answers',
    venue: 'manifold',
    faults: [{ host: 'manifold', kind: 'hang' }],
    isNoticed: false,
  },
  {
    name: 'garbled',
    venue: 'polymarket',
    faults: [
      { host: 'gamma', kind: 'rename_field', field: { from: 'markets', to: 'rows' } },
      { host: 'clob', path: '/books', kind: 'html' },
      { host: 'clob', path: '/last', kind: 'truncate' },
      { host: 'data', kind: 'set_field', set: { field: 'price', value: 7 } },
    ],
    isNoticed: true,
  },
];
/** Seconds of the tape that the healthy venues must store during a fault. */
const TROUBLED_SECONDS = 3;
/** The slowest poll runs every 2 s here. */
const SMALL_LAG_SECONDS = 10;
const CATCH_UP = { everyMs: 300 };

/** All venues with markets at once, each in its own wire format, polled by one poller process. */
describe('one poller of all venues', () => {
  let database: TestDatabase;
  let db: Database;
  let system: System;
  let places: Map<string, Places>;
  /** Markets that were resolved during a fault. */
  const resolved: MarketState[] = [];
  beforeAll(async () => {
    database = await createTestDatabase();
    ({ db } = database);
    system = await startSystem({
      databaseUrl: database.url,
      // One group of five markets and five single markets, none of which opens later; all venues can serve all prints.
      exchange: { seed: 11, markets: 10, rollingSeconds: 0, historyHours: 0.1, speed: 2 },
      environment: { VENUES: MARKET_VENUES.join(','), LIMITLESS_REQUESTS_PER_SECOND: '20' },
    });
  });
  afterEach(() => system.exchange.clearFaults());
  afterAll(async () => {
    await system.stop();
    await database.drop();
  });

  const venues = () => system.read<Venue[]>('/v1/venues');
  const second = () => system.exchange.second();

  /** The venues whose stored trades differ from the exchange's prints before `until`. */
  async function incomplete(names: readonly MarketVenue[], until: number): Promise<MarketVenue[]> {
    const tapes = await storedTapes(db, 0, until);
    const ledger = system.exchange.ledger().trades;
    return names.filter(
      (venue) => (tapes.get(venue) ?? []).join('\n') !== ledgerTape(venue, ledger, places, 0, until).join('\n'),
    );
  }

  /** The venues whose stored market lacks the final outcome. */
  async function undecided(names: readonly MarketVenue[], { conditionId }: MarketState): Promise<MarketVenue[]> {
    const found: MarketVenue[] = [];
    for (const venue of names) {
      const place = places.get(conditionId)?.[venue];
      const market = await storedMarket(db, venue, place?.marketId ?? '');
      const isOver = market?.status === 'resolved' || market?.status === 'settled';
      if (!isOver || market.winningOutcomeId !== place?.outcomeIds[1]) found.push(venue);
    }
    return found;
  }

  it('stores every venue in its own currency', async () => {
    const found = await eventually(venues, (all) => all.every((venue) => venue.healthy && venue.markets > 0));
    expect(found.map(({ venue, currency }) => [venue, currency])).toEqual([
      ['polymarket', 'USD'],
      ['kalshi', 'USD'],
      ['manifold', 'MANA'],
      ['limitless', 'USD'],
    ]);
    places = await findPlaces(system.exchange);
  });

  it.each(['polymarket', 'kalshi', 'limitless'])(
    'groups the siblings of %s into one event, each with its own label',
    async (venue) => {
      const group = await eventually(
        async () => {
          const events = await system.read<MarketEvent[]>(`/v1/${venue}/events?status=open&q=central+bank`);
          const found = events.find(({ market_count }) => market_count === 5);
          if (found === undefined) return null;
          return system.read<MarketEvent>(`/v1/${venue}/events/${encodeURIComponent(found.event_id)}`);
        },
        (found) => found !== null,
      );
      expect(new Set(group?.markets.map(({ event_title }) => event_title))).toEqual(new Set([group?.title]));
      expect(new Set(group?.markets.map(({ title, sibling_label }) => `${title} ${sibling_label}`)).size).toBe(5);
      expect(group?.markets.every(({ sibling_label }) => sibling_label !== undefined)).toBe(true);
      if (venue === 'kalshi') expect(new Set(group?.markets.map(({ title }) => title)).size).toBe(1);
    },
  );

  it.each(MARKET_VENUES)('stores prices and trades of %s for its own markets', async (venue) => {
    const served = await eventually(
      async () => {
        const markets = await system.read<Market[]>(`/v1/${venue}/markets?status=open&limit=50`);
        for (const { market_id: id } of markets) {
          const path = `/v1/${venue}/markets/${encodeURIComponent(id)}`;
          const trades = await system.read<unknown[]>(`${path}/trades?limit=5`);
          const price = await system.read<{ outcomes: unknown[] }>(`${path}/prices`).catch(() => null);
          if (trades.length > 0 && price !== null) return { markets, price };
        }
        return null;
      },
      (answer) => answer !== null,
    );
    expect(new Set(served?.markets.map((market) => market.venue))).toEqual(new Set([venue]));
    expect(served?.price.outcomes.length).toBeGreaterThan(0);
  });

  it.each(TROUBLES)('loses no data of the other venues while $venue is $name', async ({ venue, faults, isNoticed }) => {
    const others = MARKET_VENUES.filter((name) => name !== venue);
    // The venue of the previous fault has recovered.
    await eventually(venues, (all) => all.every(({ healthy }) => healthy), CATCH_UP);
    const before = second();
    await eventually(
      () => incomplete([venue], before),
      (names) => names.length === 0,
      CATCH_UP,
    );
    for (const fault of faults) system.exchange.addFault(fault);
    const since = second();
    const startedAt = new Date();
    const market = plainMarket();
    system.exchange.steer({ conditionId: market.conditionId, action: 'resolve', winner: 1 });
    resolved.push(market);
    // An exchange on an overloaded machine may make no trade for some seconds.
    const tradesAfter = (from: number) => system.exchange.ledger().trades.filter(({ timestamp }) => timestamp > from);
    await eventually(
      async () => tradesAfter(since + 1).length,
      (trades) => trades > 0,
      CATCH_UP,
    );
    const until = second() + TROUBLED_SECONDS;

    // The other venues store the prints and results of the faulty period; the faulty venue stores none of them.
    await eventually(
      async () => [
        ...(second() > until ? [] : ['too early']),
        ...(await incomplete(others, until)),
        ...(await undecided(others, market)),
      ],
      (missing) => missing.length === 0,
      CATCH_UP,
    );
    // Responses in flight at the start of the fault may still arrive.
    expect((await storedTapes(db, since + 1, until)).get(venue) ?? []).toEqual([]);
    expect(await undecided([venue], market)).toEqual([venue]);
    await eventually(
      () => pricesSince(db, startedAt),
      (prices) => others.every((name) => (prices.get(name) ?? 0) > 0),
    );

    // One answer shows this venue unhealthy with a reason, and the others healthy.
    const isWell = ({ healthy, lag_seconds: lag = Number.POSITIVE_INFINITY }: Venue) =>
      healthy && lag <= SMALL_LAG_SECONDS;
    const isIll = ({ healthy, failing = [] }: Venue) =>
      !healthy && failing.length > 0 && failing.every(({ reason }) => reason !== '');
    await eventually(
      venues,
      (all) => all.every((each) => (each.venue === venue ? !isNoticed || isIll(each) : isWell(each))),
      CATCH_UP,
    );
    expect(await impossibleRows(db)).toEqual([]);
  });

  it('stores the full tape and all results after every fault', async () => {
    await eventually(venues, (all) => all.every((venue) => venue.healthy), CATCH_UP);
    system.exchange.pause();
    const until = second() + 1;
    places = await findPlaces(system.exchange);
    await eventually(
      async () => {
        const missing: MarketVenue[] = await incomplete(MARKET_VENUES, until);
        for (const market of resolved) missing.push(...(await undecided(MARKET_VENUES, market)));
        return missing;
      },
      (missing) => missing.length === 0,
      CATCH_UP,
    );
    expect(await impossibleRows(db)).toEqual([]);
    const { tapes, ties } = await storedOrder(db, 'kalshi', until);
    expect(ties).toBeGreaterThan(0);
    expect(tapes).toEqual(ledgerOrder('kalshi', system.exchange.ledger().trades, places, until));
    await eventually(
      () => wrongCandles(db),
      (wrong) => wrong.length === 0,
    );
  });

  it('skips Kalshi combinations: the API answers market_not_found and no print is stored', async () => {
    const answer = await fetch(`${system.exchange.kalshiUrl}/markets?mve_filter=only`);
    const { markets } = (await answer.json()) as { markets: { ticker: string }[] };
    expect(markets.length).toBeGreaterThan(0);
    for (const { ticker } of markets) {
      const printed = await fetch(`${system.exchange.kalshiUrl}/markets/trades?ticker=${ticker}`);
      expect(((await printed.json()) as { trades: unknown[] }).trades.length).toBeGreaterThan(0);
      for (const rest of ['', '/prices', '/trades', '/orderbook']) {
        const path = `/v1/kalshi/markets/${ticker}${rest}`;
        await expect(system.read(path), path).rejects.toThrow(/404 .*market_not_found/);
      }
    }
    const isCombination = ({ market_id: id }: Market) => markets.some(({ ticker }) => ticker === id);
    const listed = await system.read<Market[]>('/v1/kalshi/markets?limit=100');
    expect(listed.filter(isCombination)).toEqual([]);
    const tokens = await findTokens(
      db,
      markets.flatMap(({ ticker }) => Object.values(outcomeIdsOf(ticker))),
    );
    expect(tokens.size).toBe(0);
  });

  /** An open market outside a group. */
  function plainMarket(): MarketState {
    const market = system.exchange.state().markets.find((each) => each.phase === 'open' && !each.negRisk);
    if (market === undefined) throw new Error('no open market is left to resolve');
    return market;
  }
});
