import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultRequest, FeedFault } from '../../sim/exchange.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { alarmsOf, type ComparedVenue, uncomparedVenues } from '../e2e/completeness.ts';
import {
  findPlaces,
  impossibleRows,
  ledgerTape,
  MARKET_VENUES,
  type MarketVenue,
  type Places,
  storedTapes,
} from '../e2e/venue-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type System, startSystem } from '../support/processes/system.ts';

interface Venue extends ComparedVenue {
  healthy: boolean;
}

/** All answer 200 with sound rows: no poll fails, and no record is rejected. */
const FAULTS: readonly { name: string; feed: FeedFault }[] = [
  { name: 'answers from a cache without an age', feed: { how: 'cached' } },
  { name: 'answers from a cache with an age', feed: { how: 'cached', hasAge: true } },
  { name: 'omits every second trade', feed: { how: 'truncated', share: 0.5 } },
  { name: 'repeats one page', feed: { how: 'repeating', repeats: 'page' } },
  { name: 'repeats the rows of one page', feed: { how: 'repeating', repeats: 'rows' } },
  { name: 'is empty', feed: { how: 'empty' } },
];
/** A lost trade is reported within this time. */
const REPORTED = { timeoutMs: 60_000, everyMs: 200 };
/** One walk back over each market, within a share of the request budget. */
const REPAIRED = { timeoutMs: 180_000, everyMs: 1_000 };
/** Each live walk reads the last 120 s again: only a walk back finds the first trades that a longer fault omits. */
const LOST_SECONDS = 128;

describe.each(FAULTS)('while the trade feed of each venue $name', ({ feed }) => {
  let database: TestDatabase;
  let db: Database;
  let system: System;
  let places: Map<string, Places>;
  beforeAll(async () => {
    database = await createTestDatabase();
    ({ db } = database);
    system = await startSystem({
      databaseUrl: database.url,
      // A group of five markets and five single markets, two of which are pools on Limitless. None opens or ends later.
      exchange: { seed: 12, markets: 10, rollingSeconds: 0, historyHours: 1, speed: 2 },
      environment: { VENUES: MARKET_VENUES.join(','), LIMITLESS_REQUESTS_PER_SECOND: '20' },
    });
    places = listedPlaces(await findPlaces(system.exchange));
  });
  afterAll(async () => {
    await system?.stop();
    await database?.drop();
  });

  /** Limitless does not list a market that has its result, so the trades of such a market are unknown. */
  function listedPlaces(all: ReadonlyMap<string, Places>): Map<string, Places> {
    const over = system.exchange.state().markets.filter(({ phase }) => phase !== 'open');
    expect(over.map(({ phase }) => phase)).toEqual(['resolved']);
    const isOver = (conditionId: string) => over.some((market) => market.conditionId === conditionId);
    return new Map(
      [...all].map(([conditionId, place]) => {
        const hasFeed = place.limitless.hasFeed && !isOver(conditionId);
        return [conditionId, { ...place, limitless: { ...place.limitless, hasFeed } }];
      }),
    );
  }

  /**
   * The other faults stop the live walks, which read everything once they go on. A walk over a feed with omitted trades passes them.
   * On Limitless the walk back reads the same faulty feed.
   */
  const needsWalkBack = (venue: MarketVenue) => feed.how === 'truncated' && venue !== 'limitless';

  const venues = () => system.read<Venue[]>('/v1/venues');
  const alarms = async () => {
    const compared = await venues();
    return [...alarmsOf(compared), ...uncomparedVenues(compared)];
  };
  const second = () => system.exchange.second();
  const ledger = (from: number) => system.exchange.ledger().trades.filter(({ timestamp }) => timestamp > from);

  /** The venues whose stored trades before `until` are not exactly those of the exchange, each once. */
  async function incomplete(until: number): Promise<MarketVenue[]> {
    const tapes = await storedTapes(db, 0, until);
    const { trades } = system.exchange.ledger();
    return MARKET_VENUES.filter(
      (venue) => (tapes.get(venue) ?? []).join('\n') !== ledgerTape(venue, trades, places, 0, until).join('\n'),
    );
  }

  it('the trades before the fault are stored', async () => {
    await eventually(venues, (all) => all.every(({ healthy }) => healthy));
    const until = second();
    await eventually(
      () => incomplete(until),
      (missing) => missing.length === 0,
      REPAIRED,
    );
  });

  it('no venue reports lost trades before the fault', async () => {
    await eventually(alarms, (found) => found.length === 0, REPORTED);
  });

  it('each venue reports lost trades within a minute of the first one, until its feed is right again', async () => {
    const since = second();
    const faults = MARKET_VENUES.map((venue) => {
      const request: FaultRequest = { host: venue, kind: 'trade_feed', feed };
      return { venue, id: system.exchange.addFault(request).id };
    });
    await eventually(
      async () => ledger(since).length,
      (trades) => trades > 0,
    );
    const missed = await Promise.allSettled(
      faults.map(async ({ venue, id }) => {
        try {
          await eventually(
            async () => (await venues()).find((each) => each.venue === venue)?.completeness?.markets_missing ?? 0,
            (markets) => markets > 0,
            REPORTED,
          );
          if (needsWalkBack(venue)) {
            await eventually(
              async () => second() - since,
              (seconds) => seconds > LOST_SECONDS,
              REPAIRED,
            );
          }
        } catch (error) {
          throw new Error(`${venue}: ${String(error)}`);
        } finally {
          system.exchange.clearFaults(id);
        }
      }),
    );
    expect(missed.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []))).toEqual([]);
  });

  it('every trade is stored once after the fault, and no venue reports lost trades', async () => {
    expect(system.exchange.faults()).toEqual([]);
    const until = second() + 1;
    await eventually(
      () => incomplete(until),
      (missing) => missing.length === 0 && second() > until,
      REPAIRED,
    );
    await eventually(alarms, (found) => found.length === 0, REPAIRED);
    expect(await impossibleRows(db)).toEqual([]);
  });
});
