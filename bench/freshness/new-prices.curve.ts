import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { OddswireProcess } from '../../test/support/processes/system.ts';
import { sizeOf, whole } from '../support/numbers.ts';
import { cpuSeconds, cpuSecondsWithChildren, postgresPid } from '../support/process-usage.ts';
import { note, report } from '../support/report.ts';
import { type Simulator, startSimulator } from '../support/simulator.ts';
import { settle } from '../support/stored-trades.ts';
import { type SweptVenue, storeCatalog } from './catalog.ts';
import { type PriceAge, priceAgeReader, summaryOf } from './price-age.ts';
import { type LoggedSweep, pollerEnvironment, SweptPoller } from './swept-poller.ts';

/** BENCH_MOVING_MARKETS=20000 for the published figures; the default is a quick run. */
const MARKETS = sizeOf('BENCH_MOVING_MARKETS', 2_000);
const PUBLISHED_MARKETS = 20_000;
const MARKETS_OF: Record<SweptVenue, number> = { kalshi: MARKETS, polymarket: Math.round(MARKETS * 0.4) };
const VENUES = Object.keys(MARKETS_OF) as SweptVenue[];
/** Seconds: the p99 of the age of prices. */
const GOAL = 15;
/** Every quote moves once a second, so that every price of a sweep is new. */
const MOVES_PER_MINUTE = 60;
const ANSWER_MS = 120;
const AGES_MS = 60_000;
const LOOK_EVERY_MS = 1_000;

let test: TestDatabase;
const simulators = new Map<SweptVenue, Simulator>();

beforeAll(async () => {
  test = await createTestDatabase();
  for (const venue of VENUES) {
    const world = [
      '--seed',
      '7',
      '--markets',
      String(MARKETS_OF[venue]),
      '--live-markets',
      '0',
      '--rolling-seconds',
      '0',
    ];
    const args = [...world, '--history-hours', '0', '--now-second', String(Math.floor(Date.now() / 1_000))];
    const quick = await startSimulator([...args, '--paused']);
    const open = await storeCatalog(test.db, venue, quick.url);
    note(`${venue}: ${whole(open)} open markets`);
    await quick.stop();
    const moving = ['--quiet-moves-per-minute', String(MOVES_PER_MINUTE)];
    simulators.set(
      venue,
      await startSimulator([...args, ...moving, '--delay-ms', String(ANSWER_MS), '--enforce-rates']),
    );
  }
  await settle(test.db);
});
afterAll(async () => {
  for (const simulator of simulators.values()) await simulator.stop();
  await test.drop();
});

const short = (value: number) => value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0);

it('sweeps prices of two venues that are all new at each read, with the processes that evaluate and publish them', async () => {
  const urls = Object.fromEntries([...simulators].map(([venue, { url }]) => [venue, url])) as Record<
    SweptVenue,
    string
  >;
  const environment = pollerEnvironment(test.url, urls);
  const others = (['aggregator', 'alerter'] as const).map((role) => new OddswireProcess(role, environment));
  const poller = await SweptPoller.start(test.db, VENUES, environment);
  try {
    await Promise.all(others.map((other) => other.start()));
    // The first sweep stores first prices.
    await Promise.all(VENUES.map((venue) => poller.nextSweep(venue)));
    const pids = [['poller', poller.pid] as const, ...others.map(({ name, pid }) => [name, pid ?? 0] as const)];
    const usage = async () =>
      new Map<string, number>([
        ['Postgres', await cpuSecondsWithChildren(await postgresPid(test.db))],
        ...(await Promise.all(pids.map(async ([name, pid]) => [name, await cpuSeconds(pid)] as const))),
      ]);
    const before = await usage();
    const begunMs = performance.now();
    const sinceMs = Date.now();
    const sweeps = new Map<SweptVenue, LoggedSweep[]>(VENUES.map((venue) => [venue, []]));
    const watching = new AbortController();
    const watched = VENUES.map(async (venue) => {
      while (!watching.signal.aborted) sweeps.get(venue)?.push(await poller.nextSweep(venue));
    });
    const ages = await measureAges();
    watching.abort();
    const after = await usage();
    const requestsOf = new Map<SweptVenue, number>();
    for (const [venue, simulator] of simulators) {
      const requests = await simulator.requests();
      requestsOf.set(venue, requests.filter(({ startedAtMs }) => startedAtMs >= sinceMs).length);
    }
    const seconds = (performance.now() - begunMs) / 1_000;
    await Promise.all(watched);
    const cores = [...after].map(([name, used]) => `${name} ${short((used - (before.get(name) ?? 0)) / seconds)}`);
    for (const venue of VENUES) {
      const done = sweeps.get(venue) ?? [];
      const age = ages.get(venue);
      const requests = requestsOf.get(venue) ?? 0;
      if (age === undefined) continue;
      const changed = done.reduce((sum, sweep) => sum + sweep.changed, 0);
      const took = done.reduce((sum, sweep) => sum + sweep.seconds, 0);
      report([
        {
          title: `${venue}: age of ${whole(MARKETS_OF[venue])} prices, every one new at each read`,
          measured: `p50 ${short(age.p50)} s, p99 ${short(age.p99)} s`,
          baseline: `${short(requests / done.length)} requests per sweep`,
          ...(MARKETS >= PUBLISHED_MARKETS && {
            goal: { atMost: GOAL, of: { name: 'p99', value: age.p99, unit: 's' } },
          }),
        },
      ]);
      note(
        `${venue}: ${done.length} sweeps of ${done.map((sweep) => short(sweep.seconds)).join(', ')} s, ` +
          `${whole(changed / took)} new prices/s, at most ${short(age.max)} s old`,
      );
    }
    note(`cores: ${cores.join(', ')}`);
  } finally {
    await poller.end();
    await Promise.all(others.map((other) => other.end('SIGTERM')));
  }
});

async function measureAges(): Promise<Map<SweptVenue, PriceAge>> {
  const readers = await Promise.all(
    VENUES.map(async (venue) => [venue, await priceAgeReader(test.db, venue)] as const),
  );
  const samples = new Map<SweptVenue, PriceAge[]>(VENUES.map((venue) => [venue, []]));
  const endMs = performance.now() + AGES_MS;
  do {
    await delay(LOOK_EVERY_MS);
    for (const [venue, read] of readers) samples.get(venue)?.push(await read());
  } while (performance.now() < endMs);
  return new Map([...samples].map(([venue, some]) => [venue, summaryOf(some)]));
}
