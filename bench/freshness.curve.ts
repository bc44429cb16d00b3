import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { type BareLoop, bareLoop } from './freshness/bare-loop.ts';
import { type SweptVenue, storeCatalog } from './freshness/catalog.ts';
import { rowsWritten, SWEPT_TABLES, type SweptTable, walBytes } from './freshness/database-cost.ts';
import { type PriceAge, priceAgeReader, summaryOf } from './freshness/price-age.ts';
import { type LoggedSweep, pollerEnvironment, SweptPoller } from './freshness/swept-poller.ts';
import { procStatus } from './soak/process-samples.ts';
import { mib, sizeOf, whole } from './support/numbers.ts';
import { cpuSeconds, cpuSecondsWithChildren, postgresPid } from './support/process-usage.ts';
import { note, report } from './support/report.ts';
import { type Simulator, startSimulator } from './support/simulator.ts';
import { settle } from './support/stored-trades.ts';

/** BENCH_FRESH_MARKETS=100000 for the published figures; the default is a quick run. */
const MARKETS = sizeOf('BENCH_FRESH_MARKETS', 5_000);
const PUBLISHED_MARKETS = 100_000;
/** Seconds of a sweep over the published number of markets. */
const GOALS: Record<SweptVenue, number> = { kalshi: 45, polymarket: 30 };
/** The share of markets whose quotes move between two sweeps. */
const MOVED = 0.02;
const MINUTE = 60;
/** Shorter than a sweep, so that sweeps follow each other without a pause. */
const POLL_PRICES_MS = 1_000;
/** The ages are read for this long. */
const AGES_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

/** Behind the real time, so that moved quotes are never in the future. */
const NOW_SECOND = Math.floor(Date.now() / 1_000) - 3_600;
const WORLD = [
  '--paused',
  '--seed',
  '7',
  '--markets',
  String(MARKETS),
  '--live-markets',
  '0',
  '--rolling-seconds',
  '0',
];
const QUOTES = ['--history-hours', '0', '--quiet-moves-per-minute', String(MOVED), '--now-second', String(NOW_SECOND)];
const REAL_VENUES = ['--delay-ms', '150', '--kalshi-page-delay-ms', '400', '--enforce-rates'];

let test: TestDatabase;
let simulator: Simulator;
const openMarkets: Record<SweptVenue, number> = { kalshi: 0, polymarket: 0 };

beforeAll(async () => {
  test = await createTestDatabase();
  const begunMs = performance.now();
  const quick = await startSimulator([...WORLD, ...QUOTES]);
  for (const venue of ['kalshi', 'polymarket'] as const) {
    openMarkets[venue] = await storeCatalog(test.db, venue, quick.url);
  }
  await quick.stop();
  await settle(test.db);
  const seconds = (performance.now() - begunMs) / 1_000;
  note(`catalogs of both venues, ${whole(MARKETS)} markets each: walked and stored in ${whole(seconds)} s`);
  simulator = await startSimulator([...WORLD, ...QUOTES, ...REAL_VENUES]);
});
afterAll(async () => {
  const memory = await procStatus(simulator.pid).catch(() => undefined);
  note(`memory of the simulator at the end: ${memory === undefined ? 'unknown' : mib(memory.residentBytes)}`);
  await simulator.stop();
  await test.drop();
});

/** The cost of one sweep. The statistics of Postgres count a row up to a second late. */
interface Sweep extends LoggedSweep {
  readonly requests: number;
  readonly refused: number;
  readonly bytes: number;
  readonly cpu: { readonly poller: number; readonly postgres: number; readonly simulator: number };
  readonly wal: number;
  readonly rows: Record<SweptTable, number>;
}

function startPoller(venue: SweptVenue): Promise<SweptPoller> {
  const environment = pollerEnvironment(test.url, { [venue]: simulator.url });
  return SweptPoller.start(test.db, [venue], { ...environment, POLL_PRICES_MS: String(POLL_PRICES_MS) });
}

async function usageNow(poller: SweptPoller) {
  return {
    atMs: Date.now(),
    poller: await cpuSeconds(poller.pid),
    postgres: await cpuSecondsWithChildren(await postgresPid(test.db)),
    simulator: await cpuSeconds(simulator.pid),
    wal: await walBytes(test.db),
    rows: await rowsWritten(test.db),
  };
}

/** Measures until the end of the current sweep. */
async function measureSweep(poller: SweptPoller, venue: SweptVenue): Promise<Sweep> {
  const before = await usageNow(poller);
  const sweep = await poller.nextSweep(venue);
  const after = await usageNow(poller);
  const requests = (await simulator.requests()).filter(
    ({ startedAtMs }) => startedAtMs >= before.atMs && startedAtMs < after.atMs,
  );
  const rows = SWEPT_TABLES.map((table) => [table, after.rows[table] - before.rows[table]]);
  return {
    ...sweep,
    requests: requests.length,
    refused: requests.filter(({ status }) => status === 429).length,
    bytes: requests.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
    cpu: {
      poller: after.poller - before.poller,
      postgres: after.postgres - before.postgres,
      simulator: after.simulator - before.simulator,
    },
    wal: after.wal - before.wal,
    rows: Object.fromEntries(rows) as Record<SweptTable, number>,
  };
}

async function measureVenue(venue: SweptVenue) {
  const poller = await startPoller(venue);
  try {
    const first = await measureSweep(poller, venue);
    const unchanged = await measureSweep(poller, venue);
    await simulator.idle(MINUTE);
    const moved = await measureSweep(poller, venue);
    return { first, unchanged, moved, age: await measureAge(venue) };
  } finally {
    await poller.end();
  }
}

async function measureAge(venue: SweptVenue): Promise<PriceAge> {
  const read = await priceAgeReader(test.db, venue);
  const samples: PriceAge[] = [];
  const endMs = performance.now() + AGES_MS;
  do {
    await delay(LOOK_EVERY_MS);
    samples.push(await read());
  } while (performance.now() < endMs);
  return summaryOf(samples);
}

const short = (value: number) => value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0);
const COLUMNS = [
  ...['sweep', 'seconds', 'requests', 'received', 'CPU s: poller, Postgres, simulator'],
  ...[`rows: ${SWEPT_TABLES.join(', ')}`, 'WAL'],
];

function rowOf(title: string, { seconds, requests, refused, bytes, cpu, rows, wal }: Sweep): string[] {
  return [
    title,
    short(seconds),
    refused === 0 ? whole(requests) : `${whole(requests)} (${refused} refused)`,
    mib(bytes),
    [cpu.poller, cpu.postgres, cpu.simulator].map(short).join(', '),
    SWEPT_TABLES.map((table) => whole(rows[table])).join('; '),
    mib(wal),
  ];
}

it.each(['kalshi', 'polymarket'] as const)('sweeps the prices of %s, one sweep after the other', async (venue) => {
  expect(openMarkets[venue]).toBe(MARKETS);
  const bare: BareLoop = await bareLoop(test.db, venue, simulator.url);
  const { first, unchanged, moved, age } = await measureVenue(venue);

  expect(age.unpriced).toBe(0);
  expect(unchanged.changed).toBe(0);
  expect(moved.changed).toBeGreaterThan(0);
  const percent = `${MOVED * 100} %`;
  const baseline = `bare loop ${short(bare.seconds)} s`;
  const figure = (title: string, { seconds }: Sweep) => ({
    title: `${venue}: sweep of ${whole(MARKETS)} markets, ${title}`,
    measured: `${short(seconds)} s`,
    baseline,
    ratio: seconds / bare.seconds,
    ...(MARKETS >= PUBLISHED_MARKETS && {
      goal: { atMost: GOALS[venue], of: { name: 'sweep', value: seconds, unit: 's' } },
    }),
  });
  report([figure('no quote moved', unchanged), figure(`${percent} moved`, moved)]);
  const table = [
    COLUMNS,
    COLUMNS.map(() => '---'),
    rowOf('all prices new', first),
    rowOf('no quote moved', unchanged),
    rowOf(`${percent} moved`, moved),
  ];
  note(`${venue}\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}`);
  note(`${venue}: CPU of the bare loop ${short(bare.cpuSeconds)} s`);
  note(`${venue}: age of prices p50 ${short(age.p50)} s, p99 ${short(age.p99)} s, at most ${short(age.max)} s`);
});
