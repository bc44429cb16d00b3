import { randomBytes } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import type { SteerRequest } from '../../sim/exchange.ts';
import type { MarketLedger } from '../../sim/resolution-ledger.ts';
import { sql } from '../../src/store/db/tx.ts';
import { MARKET_VENUES } from '../e2e/venue-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { ledgersByMarket, toldBy, truthOf } from './campaign/lives-of-results.ts';
import { ResolutionTracker } from './campaign/resolution-tracker.ts';

type Step = Omit<SteerRequest, 'conditionId'>;

/** The results of a market each, step by step: proposals, disputes, splits, scalars, voids, withdrawals, and corrections of final results. */
const LIVES: readonly (readonly Step[])[] = [
  [
    { action: 'propose', winner: 0 },
    { action: 'dispute' },
    { action: 'propose', payout: '0.5' },
    { action: 'resolve', payout: '0.5' },
    { action: 'resolve', winner: 1 },
  ],
  [
    { action: 'propose', winner: 1 },
    { action: 'resolve', winner: 1 },
    { action: 'reopen' },
    { action: 'propose', winner: 0 },
    { action: 'resolve', winner: 0 },
    { action: 'resolve', payout: '0.25' },
  ],
  [{ action: 'void' }, { action: 'resolve', winner: 0 }, { action: 'reopen' }],
  [
    { action: 'propose', payout: '0.37' },
    { action: 'amend', payout: '0.4' },
    { action: 'dispute' },
    { action: 'amend', winner: 0 },
    { action: 'resolve', winner: 0 },
    { action: 'void' },
  ],
  [{ action: 'resolve', winner: 0 }, { action: 'void' }, { action: 'resolve', winner: 1 }],
];
/** Takes its steps at once, so that polls may see the last one only. */
const HASTY: readonly Step[] = [
  { action: 'propose', winner: 0 },
  { action: 'dispute' },
  { action: 'propose', winner: 1 },
  { action: 'resolve', winner: 1 },
];
const WITHIN = { timeoutMs: 150_000, everyMs: 200 };

/** See the campaign of results: no listing has a result of Limitless, and oddswire asks for it again after an hour. */
const ASK_AGAIN = sql(
  'test_ask_again',
  `UPDATE market_stats s SET missing_since = clock_timestamp() FROM market m
   WHERE m.id = s.market_id AND m.venue = 'limitless' AND m.resolution_state IS NOT NULL AND s.missing_since IS NULL`,
);
/** Markets whose result a feed announced. */
const ANNOUNCED = sql(
  'test_announced_markets',
  'SELECT count(*)::int AS markets FROM market_stats WHERE announced IS NOT NULL',
);
const COUNT_OPEN = sql('test_open_markets', `SELECT count(*)::int AS markets FROM market WHERE status = 'open'`);

interface Instance {
  database: TestDatabase;
  fleet: Fleet;
  tracker: ResolutionTracker;
}

const instances: Instance[] = [];
const databases: TestDatabase[] = [];
afterEach(async () => {
  // The second one polls the exchange of the first one.
  for (const { fleet } of instances.toReversed()) await fleet.stop();
  for (const database of databases) await database.drop();
});

async function startInstance(environment: Record<string, string>, streamer: number): Promise<Instance> {
  const database = await createTestDatabase();
  databases.push(database);
  const fleet = await startFleet({
    databaseUrl: database.url,
    counts: { ...ofEach(1), alerter: 0, deliverer: 0, streamer },
    exchange: { seed: 23, markets: LIVES.length + 5, liveMarkets: 2, rollingSeconds: 0, historyHours: 0.1 },
    environment: {
      ...environment,
      DATABASE_URL: database.url,
      QUEUE_PREFIX: `two${randomBytes(5).toString('hex')}`,
      VENUES: MARKET_VENUES.join(','),
      LIMITLESS_REQUESTS_PER_SECOND: '200',
      POLL_MARKETS_MS: '500',
      POLL_PRICES_MS: '20000',
      POLL_BOOKS_MS: '20000',
      POLL_TRADES_MS: '20000',
    },
  });
  const instance = { database, fleet, tracker: new ResolutionTracker(fleet) };
  instances.push(instance);
  return instance;
}

it('two instances agree on states, transitions and payouts when one reads feeds and the other polls only', async () => {
  const fed = await startInstance({}, 1);
  const { exchange, environment } = fed.fleet;
  await startInstance({ ...environment, FEEDS: 'off' }, 0);
  const plain = exchange.state().markets.filter(({ hasTraders }) => !hasTraders);
  const [hasty, ...patient] = plain.map(({ conditionId }) => conditionId);
  expect(patient.length).toBeGreaterThanOrEqual(LIVES.length);
  for (const { database } of instances) {
    await eventually(
      () => database.db.query<{ markets: number }>(COUNT_OPEN),
      ([open]) => (open?.markets ?? 0) >= plain.length * MARKET_VENUES.length,
      WITHIN,
    );
  }
  const ledgers = () => ledgersByMarket(exchange.resolutions());
  const ledgersOf = (conditionId = '') => ledgers().get(conditionId) ?? [];
  const steer = (conditionId: string | undefined, step: Step | undefined) => {
    if (conditionId !== undefined && step !== undefined) exchange.steer({ conditionId, ...step });
  };

  /** The ledgers that an instance does not have yet. */
  async function behind({ database, tracker }: Instance): Promise<MarketLedger[]> {
    await database.db.query(ASK_AGAIN);
    await tracker.read();
    return patient.flatMap(ledgersOf).filter(({ venue, marketId, transitions }) => {
      return tracker.rowsOf(venue, marketId).length < transitions.length;
    });
  }

  for (const step of HASTY) steer(hasty, step);
  const length = Math.max(...LIVES.map((life) => life.length));
  for (let place = 0; place < length; place += 1) {
    LIVES.forEach((life, index) => {
      steer(patient[index], life[place]);
    });
    for (const instance of instances)
      await eventually(
        () => behind(instance),
        (left) => left.length === 0,
        WITHIN,
      );
  }

  const all = [...patient.flatMap(ledgersOf), ...ledgersOf(hasty)];
  expect(all.length).toBeGreaterThan(LIVES.length * MARKET_VENUES.length - 1);
  for (const ledger of all) {
    const { venue, marketId } = ledger;
    const path = `/v1/${venue}/markets/${marketId}/resolution`;
    const results = () =>
      Promise.all(instances.map(({ fleet }) => fleet.read<{ state: string; payouts: unknown }>(path)));
    const [first, second] = await eventually(
      results,
      (found) =>
        found.every(
          ({ state }) =>
            state === found[0]?.state && (state !== 'none' || ledger.transitions.at(-1)?.transition === 'reopened'),
        ),
      WITHIN,
    );
    expect([venue, marketId, second?.state, second?.payouts]).toEqual([venue, marketId, first?.state, first?.payouts]);
    // Only Polymarket names steps that oddswire did not see.
    if (ledgersOf(hasty).some((each) => each.marketId === marketId) && venue !== 'polymarket') continue;
    for (const { tracker } of instances) {
      expect([venue, marketId, ...toldBy(tracker.rowsOf(venue, marketId), ledger)]).toEqual([
        venue,
        marketId,
        ...truthOf(ledger),
      ]);
    }
  }
  const announced = await Promise.all(
    instances.map(({ database }) => database.db.query<{ markets: number }>(ANNOUNCED)),
  );
  expect(announced.map(([row]) => (row?.markets ?? 0) > 0)).toEqual([true, false]);
}, 400_000);
