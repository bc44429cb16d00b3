import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../src/store/db/tx.ts';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { OddswireProcess } from '../test/support/processes/system.ts';
import { type BareReceiver, startBareReceiver } from './support/bare-peer.ts';
import { type CurvePoint, curve } from './support/curve.ts';
import { deliveryRate } from './support/delivery-rate.ts';
import { NODE_OPTIONS } from './support/node-options.ts';
import { sizeOf, sizesOf, whole } from './support/numbers.ts';
import { ROUTES, readRate, startApi } from './support/read-load.ts';
import { note, report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';
import { settle } from './support/stored-trades.ts';
import { preparePartitions, storedCounts, writeTape } from './support/tape.ts';

/** The curves' numbers of processes of a kind. */
const PROCESSES = sizesOf('BENCH_CURVE_PROCESSES', [1, 2]);
const DELIVERIES = sizeOf('BENCH_CURVE_DELIVERIES', 10_000);
const FRESH_TRADES = sizeOf('BENCH_CURVE_FRESH', 100_000);
const SECONDS = sizeOf('BENCH_SECONDS', 5);
const MARKETS = 2_000;
const LOOK_EVERY_MS = 50;

let receiver: BareReceiver;
beforeAll(async () => {
  receiver = await startBareReceiver();
});
afterAll(async () => {
  await receiver.stop();
  note(
    'one machine runs the processes, their client or receiver, and Postgres: two of a kind can use only the free cores',
  );
});

function point(processes: number, rate: number, unit: string): CurvePoint {
  const size = `${processes} ${processes === 1 ? 'process' : 'processes'}`;
  return { size, measured: `${whole(rate)} ${unit}/s`, value: rate };
}

it('delivers with more and more deliverers', async () => {
  const points: CurvePoint[] = [];
  for (const deliverers of PROCESSES) {
    const { own } = await deliveryRate(receiver, { deliveries: DELIVERIES, endpoints: 100, deliverers });
    points.push(point(deliverers, own, 'deliveries'));
  }
  report(curve('deliverers, 100 endpoints', points));
});

it('answers reads with more and more APIs, the client using all of them', async () => {
  const database = await createTestDatabase();
  try {
    const ids = await storeHistory(database.db, { markets: MARKETS, trades: 10 * MARKETS, days: 30 });
    const kinds = { 'one market': [ids[0] ?? ''], [`${whole(MARKETS)} markets in turn`]: ids };
    const points = new Map(Object.keys(kinds).map((kind): [string, CurvePoint[]] => [kind, []]));
    for (const count of PROCESSES) {
      const apis = await Promise.all(Array.from({ length: count }, () => startApi(database.url)));
      const addresses = apis.map(({ address }) => address);
      for (const [kind, marketIds] of Object.entries(kinds)) {
        const load = { paths: marketIds.map(ROUTES.prices), length: { seconds: SECONDS } };
        await readRate(addresses, { ...load, length: { seconds: 1 } });
        const { rate } = await readRate(addresses, load);
        points.get(kind)?.push(point(count, rate, 'requests'));
      }
      await Promise.all(apis.map((api) => api.stop()));
    }
    for (const [kind, rates] of points) report(curve(`APIs, prices of ${kind}`, rates));
  } finally {
    await database.drop();
  }
});

const MARKS_LEFT = sql('bench_marks_left', `SELECT count(*)::int AS marks FROM mark WHERE stage = 'fold-candles'`);

/** Folds a backlog of trades with this many aggregators; minutes of outcomes per second, from the first to the last. */
async function foldRate(aggregators: number): Promise<number> {
  const test = await createTestDatabase();
  const left = async () => (await test.db.query<{ marks: number }>(MARKS_LEFT))[0]?.marks ?? 0;
  const processes: OddswireProcess[] = [];
  try {
    const all = { from: 0, count: FRESH_TRADES };
    await preparePartitions(test.db, all);
    await writeTape(test.db, all);
    await settle(test.db);
    const waiting = await left();
    for (let n = 0; n < aggregators; n++) {
      processes.push(
        new OddswireProcess('aggregator', {
          DATABASE_URL: test.url,
          SECRETS_KEYS: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
          VENUES: 'polymarket',
          METRICS_PORT: '0',
          ...NODE_OPTIONS,
        }),
      );
    }
    await Promise.all(processes.map((item) => item.start()));
    // Processes take time to start, so the measurement begins when the first minutes are folded.
    let begun: { atMs: number; marks: number } | undefined;
    for (let marks = waiting; marks > 0; marks = await left()) {
      if (marks < waiting) begun ??= { atMs: performance.now(), marks };
      await delay(LOOK_EVERY_MS);
    }
    const seconds = (performance.now() - (begun?.atMs ?? Number.NaN)) / 1_000;
    expect((await storedCounts(test.db)).folded).toEqual([FRESH_TRADES]);
    return (begun?.marks ?? Number.NaN) / seconds;
  } finally {
    await Promise.all(processes.map((item) => item.end('SIGTERM')));
    await test.drop();
  }
}

it('folds minutes with more and more aggregators', async () => {
  const points: CurvePoint[] = [];
  for (const aggregators of PROCESSES) points.push(point(aggregators, await foldRate(aggregators), 'minutes'));
  report(curve('aggregators', points));
});
