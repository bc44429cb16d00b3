import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { expectIdleQueues, expectNothingHeld } from '../../test/faults/campaign/orphans.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../../test/support/processes/fleet.ts';
import type { ProcessName } from '../../test/support/processes/system.ts';
import { freePort } from '../../test/support/redis/redis.ts';
import { Aging, type Retired } from './aging.ts';
import { watchFeeds } from './feeds.ts';
import { JOURNAL_MINUTES } from './journal-aging.ts';
import { comparedOnce, createWebhooks, startLoad, watchAlarms } from './load.ts';
import { LIMITLESS_REQUESTS_PER_SECOND, SOAK_VENUES, soakOptions } from './options.ts';
import type { Observed } from './process-samples.ts';
import { watchRedis } from './redis-samples.ts';
import { judge, retiredTable, type SoakSample, tableOf } from './report.ts';
import { sampleAll } from './sampler.ts';
import { expectNothingLost } from './settle.ts';
import { sparklinePage } from './sparklines.ts';
import type { Steady } from './steady.ts';

const options = soakOptions(process.env);
const NAMES: readonly ProcessName[] = ['api', 'poller', 'aggregator', 'alerter', 'deliverer', 'streamer'];
/** Once an hour in production. */
const MAINTAIN_MS = 10_000;
const COLLECTOR = pathToFileURL(resolve('bench/soak/collect-garbage.mjs')).href;
/** Ten markets, five of them one event: the part that the ledgers of all venues cover. */
const EXCHANGE = {
  seed: 11,
  markets: 10,
  rollingSeconds: 0,
  historyHours: 0.5,
  deepMarkets: 6,
  deepDays: 5,
  deepPrints: 1_500,
  tapeCapacity: 2_000_000,
};

const printLine = (line: string) => console.log(line);

/**
 * Every process at constant load for SOAK_MINUTES (20 by default): flat figures stay flat, retention and partitions work
 * meanwhile, and at the end every fact is stored and delivered. Needs Linux' /proc.
 */
describe('soak', () => {
  let database: TestDatabase;
  let aging: Aging;
  let fleet: Fleet;
  let steady: Steady;
  let sockets: string;
  let tapeFrom: number;
  let processes: Observed[];
  let samples: SoakSample[];
  let retired: Retired[];
  let alarms: readonly string[];
  let feedAlarms: readonly string[];
  const redisUrl = options.queues === 'redis' ? inject('redisUrl') : null;
  const redis = redisUrl === null ? undefined : watchRedis(redisUrl);

  beforeAll(async () => {
    if (options.queues === 'redis' && redisUrl === null) throw new Error('SOAK_QUEUES=redis, and there is no Redis');
    database = await createTestDatabase({ poolSize: 4 });
    aging = new Aging(database.db, options.seconds);
    await aging.begin();
    const ports = new Map(await Promise.all(NAMES.map(async (name) => [name, await freePort()] as const)));
    sockets = await mkdtemp(join(tmpdir(), 'oddswire-soak-'));
    fleet = await startFleet({
      databaseUrl: database.url,
      ...(redisUrl !== null && { redisUrl }),
      queuePrefix: `soak${randomBytes(4).toString('hex')}`,
      counts: { ...ofEach(1), streamer: 1 },
      exchange: { ...EXCHANGE, speed: 4 * options.load },
      environment: {
        VENUES: [...SOAK_VENUES, 'solana'].join(),
        LIMITLESS_REQUESTS_PER_SECOND,
        // Two requests per wallet at 4 requests a second: the load must fit the rate of the venue.
        POLL_WALLETS_MS: '5000',
        MAINTAIN_STORAGE_MS: String(MAINTAIN_MS),
        JOURNAL_RETENTION_MINUTES: String(JOURNAL_MINUTES),
        // The least: it is full soon, and then it must stay flat.
        API_MEMORY_MB: '16',
        POLL_BOOKS_MARKETS: '2',
        QUOTA_ALERTS: '1000000',
        NODE_OPTIONS: `--import=${COLLECTOR}`,
        SOAK_SOCKETS: sockets,
      },
      environmentOf: Object.fromEntries(NAMES.map((name) => [name, { METRICS_PORT: String(ports.get(name)) }])),
    });
    processes = fleet.members.map(({ process: { name, pid } }) => {
      if (pid === undefined) throw new Error(`${name} does not run`);
      return { name, pid, metricsUrl: `http://127.0.0.1:${ports.get(name)}`, socket: join(sockets, String(pid)) };
    });
    const webhooks = await createWebhooks(fleet);
    await aging.seedRows(webhooks.steady);
    steady = await startLoad(fleet, webhooks, options);
    tapeFrom = fleet.exchange.second();
    alarms = watchAlarms(fleet, steady);
    feedAlarms = await watchFeeds(fleet, steady);
  });
  afterAll(async () => {
    await steady?.stop();
    redis?.close();
    await fleet?.stop();
    await database?.drop();
    if (sockets) await rm(sockets, { recursive: true });
  });

  it('keeps flat figures flat', async () => {
    printLine(`\nsoak: ${options.seconds / 60} minutes, queues on ${options.queues}, load x${options.load}`);
    const { db } = database;
    samples = await sampleAll({ fleet, db, processes, steady, aging, printLine, ...(redis && { redis }) }, options);
    await steady.stop();
    const report = judge(samples, options.warmUpSeconds);
    printLine(`\n${tableOf(report.rows).join('\n')}\n`);
    printLine(`unchanged, ${report.unchanged.length} more: ${report.unchanged.join(', ')}\n`);
    printLine(`samples: ${await writeSamples(samples, report.rows)}`);
    expect(report.growing).toEqual([]);
  });

  it('answers every request of the steady client', () => {
    expect(steady.failures).toEqual([]);
    const late = samples.filter(({ seconds }) => seconds > options.warmUpSeconds);
    for (const rate of ['trades', 'deliveries', 'reads', 'alerts made']) {
      const values = late.map(({ figures }) => figures[`rate of ${rate}`] ?? 0);
      expect(Math.max(...values.slice(-Math.ceil(values.length / 4))), `rate of ${rate} at the end`).toBeGreaterThan(0);
    }
  });

  it('reports no lost trades, because none is lost', async () => {
    await comparedOnce(fleet);
    expect(steady.count('read venues')).toBeGreaterThan(0);
    expect(alarms).toEqual([]);
  });

  it('reports no silence and no gap of a feed, because none is faulty', () => {
    expect(steady.count('read feeds')).toBeGreaterThan(0);
    expect(feedAlarms).toEqual([]);
  });

  it('runs the retention and partition jobs', async () => {
    // The table shows the rows that remain at the end.
    await eventually(
      async () => {
        retired = await aging.state(Date.now());
        return retired;
      },
      (all) => all.every(({ problem }) => problem === ''),
      { timeoutMs: 6 * MAINTAIN_MS, everyMs: 1_000 },
    ).catch(() => undefined);
    await aging.clear();
    printLine(`\n${retiredTable(retired).join('\n')}\n`);
    expect(retired.filter(({ problem }) => problem !== '')).toEqual([]);
  });

  it('loses and falsifies no fact', async () => {
    await expectNothingLost(fleet, database, tapeFrom);
  });

  it('leaves the queues empty, and ends every process on request', async () => {
    const { environment } = fleet;
    const prefix = environment['QUEUE_PREFIX'] ?? '';
    const store = {
      backend: options.queues,
      databaseUrl: database.url,
      redisUrl: redisUrl ?? undefined,
      prefix,
      environment,
    };
    expect(await expectIdleQueues(store, () => fleet.stop())).toEqual(NAMES.map(() => 0));
    await expectNothingHeld(database);
  });
});

/** Writes all samples and a page of charts; returns their folder. */
async function writeSamples(all: readonly SoakSample[], rows: Parameters<typeof sparklinePage>[1]): Promise<string> {
  const folder = options.output ?? (await mkdtemp(join(tmpdir(), 'oddswire-soak-')));
  await mkdir(folder, { recursive: true });
  const path = join(folder, 'samples.json');
  await writeFile(path, `${JSON.stringify({ options, samples: all }, null, 1)}\n`);
  await writeFile(join(folder, 'charts.html'), sparklinePage(all, rows, options.warmUpSeconds));
  return `${path}, charts: ${join(folder, 'charts.html')}`;
}
