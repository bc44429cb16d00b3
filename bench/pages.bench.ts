import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../src/domain/values/decimal.ts';
import { listen } from '../src/runtime/listen.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import { sql } from '../src/store/db/tx.ts';
import { writeBooks } from '../src/store/series/books.ts';
import { writeTrades } from '../src/store/series/trades.ts';
import { type AccountWorld, aConsoleWorld, anAccountWorld, type ConsoleWorld } from '../test/browser/console-world.ts';
import { WIDE } from '../test/browser/open-page.ts';
import { startTestApi, type TestApi } from '../test/integration/api/api-harness.ts';
import { type ConsoleClient, signIn } from '../test/integration/api/console/console-client.ts';
import { findChromium, launchChromium } from '../test/support/chromium.ts';
import { startChanges } from './support/live-changes.ts';
import { percentile, sizeOf } from './support/numbers.ts';
import { report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';

const MARKETS = sizeOf('BENCH_PAGE_MARKETS', 2_000);
const READS = 40;
const WARM_UP = 10;
const GOAL_MS = 100;
/** Loads of each page in a browser, each with an empty cache. */
const LOADS = sizeOf('BENCH_PAGE_LOADS', 10);
const FIRST_PAINT_GOAL_MS = 300;
const LIVE_SECONDS = sizeOf('BENCH_PAGE_SECONDS', 20);
const CHANGES_PER_SECOND = 50;
/** The shortest task that browsers report as long. */
const LONG_TASK_MS = 50;

let api: TestApi;
let world: ConsoleWorld;
let client: ConsoleClient;
let account: AccountWorld;
beforeAll(async () => {
  api = await startTestApi({ console: {}, now: Date.now });
  await storeHistory(api.db, { markets: MARKETS, trades: 20 * MARKETS, days: 5 });
  world = await aConsoleWorld(api.db);
  client = await signIn(api);
  account = await anAccountWorld(api.db, client.accountId, world.market);
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

const chromiumPath = findChromium();

describe.skipIf(chromiumPath === null)('in Chromium', () => {
  let browser: Browser;
  let bareUrl: string;
  const bareServer = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/html; charset=utf-8');
    answer.end('<!doctype html><title>A page</title><p>A page of one line.</p>');
  });
  beforeAll(async () => {
    browser = await launchChromium(chromiumPath ?? '');
    bareUrl = await listen(bareServer, '127.0.0.1', 0);
    await new Partitions(api.db).ensureAroundNow('book_history');
  });
  afterAll(async () => {
    await browser?.close();
    bareServer.close();
  });

  async function signedIn(): Promise<BrowserContext> {
    const context = await browser.newContext({ viewport: WIDE });
    const [name = '', value = ''] = client.cookie.split('=');
    await context.addCookies([{ name, value, url: api.url }]);
    await context.addInitScript(OBSERVE);
    return context;
  }

  /** Milliseconds from the start of the navigation, with an empty cache. */
  async function firstPaint(url: string, hasSession: boolean): Promise<number> {
    const context = hasSession ? await signedIn() : await browser.newContext({ viewport: WIDE });
    const page = await context.newPage();
    await page.goto(url);
    const paintMs = await page.evaluate<number>(FIRST_PAINT);
    await context.close();
    return paintMs;
  }

  it('paints the pages of the console', async () => {
    const pages = [
      ['/', false],
      ['/markets', true],
      [`/markets/polymarket/${world.market.marketId}`, true],
      ['/events/polymarket/chess-final', true],
      ['/alerts', true],
      [`/alerts/${account.rule}`, true],
      ['/alerts/new', true],
      ['/webhooks', true],
      [`/webhooks/${account.webhook.id}`, true],
      ['/webhooks/new', true],
      [`/webhooks/${account.webhook.id}/deliveries/${account.failed.id}`, true],
      ['/live', true],
      ['/usage', true],
    ] as const;
    for (const [path, hasSession] of pages) {
      const paints: number[] = [];
      const bare: number[] = [];
      for (let n = 0; n <= LOADS; n += 1) {
        const own = await firstPaint(`${api.url}${path}`, hasSession);
        const empty = await firstPaint(bareUrl, false);
        // The first load of a page compiles its code.
        if (n === 0) continue;
        paints.push(own);
        bare.push(empty);
      }
      const [p50, p95] = [percentile(paints, 0.5), percentile(paints, 0.95)];
      const baseline = percentile(bare, 0.5);
      report([
        {
          title: `first paint of ${path.replaceAll(/\w+_[\w-]{36}|0x\w+/g, '...')}, ${LOADS} loads without a cache`,
          measured: `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`,
          baseline: `a page of one line from a bare server: p50 ${baseline.toFixed(0)} ms, p95 ${percentile(bare, 0.95).toFixed(0)} ms`,
          ratio: p50 / baseline,
          goal: { atMost: FIRST_PAINT_GOAL_MS, of: { name: 'p95', value: p95, unit: 'ms' } },
        },
      ]);
    }
  });

  it('stays responsive while changes arrive', async () => {
    for (const path of [`/markets/polymarket/${world.market.marketId}`, '/markets']) {
      const context = await signedIn();
      const page = await context.newPage();
      await page.goto(`${api.url}${path}`);
      const mints = await page.evaluate<string[]>(
        `[...document.querySelectorAll('[data-price]')].map(({ dataset }) => dataset.price)`,
      );
      const tokens = (await api.db.query<{ id: bigint }>(TOKENS, [mints])).map(({ id }) => id);
      const changes = await startChanges(api.db, api.databaseUrl, 0, tokens);
      await page.locator('[data-live][data-tone="good"]').waitFor();
      await tasksDuring(page, 2_000);
      const quiet = await tasksDuring(page, LIVE_SECONDS * 1_000);
      const trades = tradeEachSecond(world.market);
      changes.setRate(CHANGES_PER_SECOND, Math.max(20, Math.min(100, (tokens.length * 1_000) / CHANGES_PER_SECOND)));
      const busy = await tasksDuring(page, LIVE_SECONDS * 1_000);
      await trades.stop();
      await changes.stop();
      await context.close();
      report([
        {
          title: `tasks of ${path.replace(world.market.marketId, '...')}, ${LIVE_SECONDS} s of ${CHANGES_PER_SECOND} changes/s`,
          measured: `${busy.long.length} long tasks, the longest ${longest(busy).toFixed(0)} ms; ${(busy.messages / LIVE_SECONDS).toFixed(0)} messages/s reached the page`,
          baseline: `without changes: ${quiet.long.length} long tasks, the longest ${longest(quiet).toFixed(0)} ms`,
          goal: { atMost: LONG_TASK_MS, of: { name: 'longest', value: longest(busy), unit: 'ms' } },
        },
      ]);
    }
  });

  /** A trade and a changed book per second, as the poller stores them. */
  function tradeEachSecond({ outcomes: [yes] }: ConsoleWorld['market']): { stop(): Promise<void> } {
    let isOn = true;
    const { outcomeId = '', tokenId = 0n } = yes ?? {};
    async function write(): Promise<void> {
      for (let n = 1; isOn; n += 1) {
        const [price, size] = [decimal('0.21'), decimal(String(10 + n))];
        const trade = {
          tradeId: `bench-${Date.now()}`,
          outcomeId,
          tsMs: Date.now(),
          price,
          size,
          side: 'buy',
        } as const;
        const bids = [{ price: decimal('0.2'), size }];
        const asks = [{ price: decimal('0.22'), size }];
        await api.db.transaction(async (tx) => {
          await writeTrades(tx, [trade], 'USD');
          await writeBooks(tx, [{ tokenId, asOfMs: Date.now(), bids, asks }]);
        });
        await delay(1_000);
      }
    }
    const writing = write();
    return {
      async stop() {
        isOn = false;
        await writing;
      },
    };
  }
});

const TOKENS = sql('bench_tokens_of_mints', 'SELECT id FROM token WHERE mint = ANY ($1::text[]) ORDER BY id');

/** Counts the messages of streams and keeps the long tasks of a page. */
const OBSERVE = `
  window.observed = { messages: 0, long: [] };
  const { addEventListener } = EventSource.prototype;
  EventSource.prototype.addEventListener = function (type, listener) {
    addEventListener.call(this, type, (event) => { window.observed.messages += 1; listener(event); });
  };
  new PerformanceObserver((list) => window.observed.long.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true });`;

/** The paint may follow the event `load`. */
const FIRST_PAINT = `new Promise((resolve) => new PerformanceObserver((list, observer) => {
  const paint = list.getEntriesByName('first-contentful-paint')[0];
  if (!paint) return;
  observer.disconnect();
  resolve(paint.startTime);
}).observe({ type: 'paint', buffered: true }))`;

interface Observed {
  messages: number;
  /** Milliseconds of each long task. */
  long: number[];
}

const longest = ({ long }: Observed): number => Math.max(0, ...long);

async function tasksDuring(page: Page, ms: number): Promise<Observed> {
  await page.evaluate('window.observed.messages = 0; window.observed.long.length = 0');
  await delay(ms);
  return page.evaluate<Observed>('window.observed');
}
