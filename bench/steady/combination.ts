import { readFile, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createRedisClient } from '../../src/queues/redis-connection.ts';
import { openFolder } from '../../test/support/postgres/made-cluster.ts';
import { startSimulator } from '../support/simulator.ts';
import { type Baselines, type Facts, measureBaselines } from './baselines.ts';
import { connectObserver, type DataFolder, type Observer } from './cluster.ts';
import type { SteadyOptions } from './options.ts';
import { type Service, startService, startWorld, type World } from './service.ts';
import { measureWindow, type Window } from './window.ts';

/** One size and rate, measured. */
export interface Combination {
  readonly title: string;
  /** Markets and trades per second that were asked for; absent for the demo. */
  readonly asked?: { readonly markets: number; readonly rate: number };
  readonly queues: SteadyOptions['queues'];
  readonly feeds: boolean;
  /** Open markets of all venues when the window began, and the seconds until the service had caught up. */
  readonly openMarkets: number;
  readonly caughtUpSeconds: number;
  readonly service: Window;
  /** Facts that the service stored, per second. */
  readonly facts: Facts;
  readonly baselines: Baselines;
  /** Why modules of Postgres were not used. */
  readonly missing: Readonly<Record<string, string>>;
  /** The load average of the machine before and after: other work shows as a higher one. */
  readonly load: readonly [string, string];
}

const CATCH_UP_MS = 30 * 60_000;
/** A walk through the history of a venue can take longer than this; the window then contains a part of it. */
const OLD_TRADES_MS = 90_000;
const LOOK_EVERY_MS = 2_000;
/** Looks in a row without a change. */
const STILL_LOOKS = 10;
/** The service reads the latest trades a little late. */
const SETTLED_SECONDS = 60;
/** The polls of markets, prices and trades of four venues. */
const POLLS = 12;

/** Starts the service on a world of this size, measures it, ends it, and measures both baselines on the same world. */
export async function measureCombination(
  options: SteadyOptions,
  redisUrl: string | null,
  asked?: { markets: number; rate: number },
): Promise<Combination> {
  const folder = await openFolder('oddswire-steady-');
  const loadBefore = await loadAverage();
  const world = asked && (await startWorld(folder, asked.markets, asked.rate));
  let data: DataFolder | undefined;
  try {
    const service = await startService(options, redisUrl, world);
    ({ data } = service);
    const measured = await measureService(options, service, redisUrl, world).finally(() => service.stop());
    // The simulator of the demo ended with it, so the baselines get a new one of the same kind.
    const simulator = world?.simulator ?? (await startSimulator([]));
    try {
      const baselines = await measureBaselines(options, { data, simulator, pollMs: service.pollMs });
      return {
        title: asked === undefined ? 'demo' : `${asked.markets} markets, ${asked.rate} trades/s`,
        ...(asked && { asked }),
        queues: options.queues,
        feeds: options.feeds,
        ...measured,
        baselines,
        load: [loadBefore, await loadAverage()],
      };
    } finally {
      if (world === undefined) await simulator.stop();
    }
  } finally {
    await world?.simulator.stop();
    for (const each of [folder, data?.path]) if (each !== undefined) await rm(each, { recursive: true, force: true });
  }
}

async function measureService(options: SteadyOptions, service: Service, redisUrl: string | null, world?: World) {
  const observer = await connectObserver(service.databaseUrl);
  try {
    const { openMarkets, caughtUpSeconds } = await untilCaughtUp(observer);
    await delay(options.warmUpSeconds * 1_000);
    const pids = new Map(service.pids);
    if (world !== undefined) pids.set('simulator', world.simulator.pid);
    if (options.queues === 'redis' && redisUrl !== null) pids.set('redis', await redisPid(redisUrl));
    const window = await measureWindow({ observer, ...service, pids }, options.seconds);
    const inserted = (table: string) => window.database.tables[table]?.inserted ?? 0;
    return {
      openMarkets,
      caughtUpSeconds,
      service: window,
      facts: { trades: inserted('trade'), prices: inserted('price_history'), books: inserted('book_history') },
      missing: Object.fromEntries(observer.missing),
    };
  } finally {
    await observer.close();
  }
}

interface Progress {
  readonly polls: number;
  readonly isTapeRead: boolean;
  readonly markets: number;
  readonly prices: number;
  readonly oldTrades: number;
}

/** Every poll of every venue succeeded once, the tape of each was read up to now, and trades from before the start ($1) may be missing. */
const PROGRESS = `SELECT
    (SELECT count(*)::int FROM poll_state WHERE kind IN ('markets', 'prices', 'trades') AND first_success_at IS NOT NULL) AS polls,
    (SELECT coalesce(bool_and(caught_up_at > now() - interval '30 seconds'), false) FROM poll_state WHERE kind = 'trades') AS "isTapeRead",
    (SELECT count(*)::int FROM market WHERE status = 'open' AND gone_at IS NULL) AS markets,
    (SELECT count(*)::int FROM latest_price) AS prices,
    (SELECT count(*)::int FROM trade WHERE ts < to_timestamp($1)) AS "oldTrades"`;

/** Resolves when markets, prices and the history of trades stand still, after every poll succeeded and the tapes were read up to now. */
async function untilCaughtUp({ query }: Observer): Promise<{ openMarkets: number; caughtUpSeconds: number }> {
  const begunMs = performance.now();
  const startedSecond = Date.now() / 1_000 - SETTLED_SECONDS;
  let before: Progress | undefined;
  for (let still = 0; still < STILL_LOOKS; await delay(LOOK_EVERY_MS)) {
    const [now] = await query<Progress>(PROGRESS, [startedSecond]);
    if (now === undefined) throw new Error('no progress');
    const isPatient = performance.now() - begunMs < OLD_TRADES_MS;
    const fields = isPatient ? (['markets', 'prices', 'oldTrades'] as const) : (['markets', 'prices'] as const);
    const isStill = fields.every((field) => now[field] === before?.[field]);
    still = isStill && now.isTapeRead && now.polls >= POLLS ? still + 1 : 0;
    before = now;
    if (performance.now() - begunMs > CATCH_UP_MS) throw new Error(`did not catch up: ${JSON.stringify(now)}`);
  }
  return { openMarkets: before?.markets ?? 0, caughtUpSeconds: (performance.now() - begunMs) / 1_000 };
}

async function redisPid(url: string): Promise<number> {
  const client = createRedisClient(url, { maxRetriesPerRequest: 1, enableOfflineQueue: true, lazyConnect: true });
  const text = String(await client.info());
  client.disconnect();
  return Number(/^process_id:(\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

async function loadAverage(): Promise<string> {
  return readFile('/proc/loadavg', 'utf8').then(
    (text) => text.split(' ').slice(0, 3).join(' '),
    () => 'not measured',
  );
}
