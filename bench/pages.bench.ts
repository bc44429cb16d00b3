import { afterAll, beforeAll, expect, it } from 'vitest';
import { aConsoleWorld, type ConsoleWorld } from '../test/browser/console-world.ts';
import { startTestApi, type TestApi } from '../test/integration/api/api-harness.ts';
import { type ConsoleClient, signIn } from '../test/integration/api/console/console-client.ts';
import { percentile, sizeOf } from './support/numbers.ts';
import { report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';

const MARKETS = sizeOf('BENCH_PAGE_MARKETS', 2_000);
const READS = 40;
const WARM_UP = 10;
const GOAL_MS = 100;

let api: TestApi;
let world: ConsoleWorld;
let client: ConsoleClient;
beforeAll(async () => {
  api = await startTestApi({ console: {}, now: Date.now });
  await storeHistory(api.db, { markets: MARKETS, trades: 20 * MARKETS, days: 5 });
  world = await aConsoleWorld(api.db);
  client = await signIn(api);
});
afterAll(() => api.close());

/** Milliseconds of each read, one at a time. */
async function timesOf(read: () => Promise<{ status: number }>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < WARM_UP + READS; n += 1) {
    const begunMs = performance.now();
    expect((await read()).status).toBe(200);
    if (n >= WARM_UP) times.push(performance.now() - begunMs);
  }
  return times;
}

it('makes the pages of the console', async () => {
  const market = `/markets/polymarket/${world.market.marketId}`;
  const paths = [
    '/markets',
    '/markets?q=year',
    '/markets?sort=move',
    market,
    '/alerts',
    '/webhooks',
    '/live',
    '/usage',
  ];
  const reads = await timesOf(() => client.market(`/v1/polymarket/markets/${world.market.marketId}`));
  for (const path of paths) {
    const times = await timesOf(() => client.page(path));
    const [p50, p95] = [percentile(times, 0.5), percentile(times, 0.95)];
    report([
      {
        title: `page ${path.replace(world.market.marketId, '...')} beside ${MARKETS} markets`,
        measured: `p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
        baseline: `a read of the market: p50 ${percentile(reads, 0.5).toFixed(1)} ms`,
        ratio: p50 / percentile(reads, 0.5),
        goal: { atMost: GOAL_MS, of: { name: 'p95', value: p95, unit: 'ms' } },
      },
    ]);
  }
});
