import Router from '@koa/router';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiCalls } from '../../api/console/api-calls.ts';
import { registerConsolePages } from '../../api/console/app.ts';
import { createConsoleRouter } from '../../api/console/route.ts';
import { registerPages } from '../../api/ops/app.ts';
import { loadAssets, loadOpsAssets } from '../../api/ops/assets.ts';
import { createOpsRouter } from '../../api/ops/route.ts';
import { routeTable } from '../../api/server/route-table.ts';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { signIn } from '../integration/api/console/console-client.ts';
import { OPS_PASSWORDS, testOps } from '../integration/api/ops/ops-client.ts';
import { findChromium, launchChromium } from '../support/chromium.ts';
import { type AccountWorld, aConsoleWorld, anAccountWorld, type ConsoleWorld } from './console-world.ts';
import { accessibilityFaults, overflow, PHONE, photograph, type WatchedPage, watchedPage } from './open-page.ts';
import { anOpsWorld, type OpsWorld } from './ops-world.ts';

const chromiumPath = findChromium();
const DESKTOP = { width: 1440, height: 900 };
type Visited = [name: string, path: () => string, ready?: string];

/** Paths of the routers that no visited path matches. */
function unvisited(registered: readonly { kind: string; path: string }[], visited: readonly string[]): string[] {
  const router = new Router();
  const pages = registered.filter(({ kind }) => kind === 'page');
  for (const { path } of pages) router.get(path, () => undefined);
  const seen = new Set(
    visited.map((path) => router.match(new URL(path, 'http://x').pathname, 'GET').pathAndMethod[0]?.path),
  );
  return pages.map(({ path }) => path).filter((path) => !seen.has(path));
}

/** Views a page on a desktop and a phone, in light and dark. */
async function viewAll({ page, problems }: WatchedPage, url: string, [name, path, ready]: Visited): Promise<void> {
  problems.length = 0;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const viewport of [DESKTOP, PHONE]) {
      await page.setViewportSize(viewport);
      await page.goto(`${url}${path()}`);
      if (ready !== undefined) await page.locator(ready).first().waitFor();
      const form = `${viewport.width}-${colorScheme}`;
      await photograph(page, `form-${name}-${form}`);
      expect([form, await overflow(page)]).toEqual([form, 0]);
      expect([form, await accessibilityFaults(page)]).toEqual([form, []]);
    }
  }
  expect(problems).toEqual([]);
}

describe.skipIf(chromiumPath === null)('every page in Chromium, wide and narrow, light and dark', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium(chromiumPath ?? '');
  });
  afterAll(() => browser?.close());

  const contextOf = (): Promise<BrowserContext> => browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce' });

  test.for<Visited>([
    ['start', () => '/'],
    ['ops-login', () => '/ops/login'],
  ])('%s fits and has no accessibility faults before the sign-in', async (visited) => {
    const api = await startTestApi({ console: {}, ops: testOps({}), now: Date.now });
    try {
      await viewAll(await watchedPage(await contextOf(), api.url), api.url, visited);
    } finally {
      await api.close();
    }
  });

  describe('of operators', () => {
    let api: TestApi;
    let world: OpsWorld;
    let tab: WatchedPage;
    const pages: Visited[] = [
      ['ops-overview', () => '/ops'],
      ['ops-deliveries', () => '/ops/deliveries'],
      ['ops-delivery', () => `/ops/deliveries/${world.deliveries.failed.id}`],
      ['ops-webhooks', () => '/ops/webhooks'],
      ['ops-webhook', () => `/ops/webhooks/${world.failing.id}`],
      ['ops-alerts', () => '/ops/alerts'],
      ['ops-markets', () => '/ops/markets'],
      ['ops-market', () => `/ops/markets/polymarket/${world.market.marketId}`, '#candle-chart[data-drawn]'],
      ['ops-venues', () => '/ops/venues'],
      ['ops-venue', () => '/ops/venues/polymarket'],
      ['ops-keys', () => '/ops/keys'],
      ['ops-accounts', () => '/ops/accounts'],
      ['ops-account', () => `/ops/accounts/${world.accountId}`],
      ['ops-audit', () => '/ops/audit'],
    ];

    beforeAll(async () => {
      api = await startTestApi({ console: {}, ops: testOps({ queueNames: ['deliveries'] }), now: Date.now });
      world = await anOpsWorld(api.db);
      tab = await watchedPage(await contextOf(), api.url);
      await tab.page.goto(`${api.url}/ops`);
      await tab.page.getByLabel('Password').fill(OPS_PASSWORDS.operator);
      await tab.page.getByRole('button', { name: 'Log in' }).click();
      await tab.page.waitForURL(`${api.url}/ops`);
    });
    afterAll(() => api?.close());

    test('the list contains every page of the router', () => {
      const router = createOpsRouter(api.deps, loadOpsAssets());
      registerPages(router, api.deps);
      expect(
        unvisited(
          router.registered,
          pages.map(([, path]) => path()),
        ),
      ).toEqual([]);
    });

    test.for(pages)('%s fits and has no accessibility faults', (visited) => viewAll(tab, api.url, visited));
  });

  describe('of the console', () => {
    let api: TestApi;
    let world: ConsoleWorld;
    let account: AccountWorld;
    let tab: WatchedPage;
    const marketPath = () => `/markets/polymarket/${world.market.marketId}`;
    const webhookPath = () => `/webhooks/${account.webhook.id}`;
    const pages: Visited[] = [
      ['markets', () => '/markets'],
      ['market', marketPath, '#market-chart[data-drawn]'],
      [
        'market-no',
        () => `${marketPath()}?outcome=${world.market.outcomes[1]?.outcomeId}`,
        '#market-chart[data-drawn]',
      ],
      ['event', () => '/events/polymarket/chess-final'],
      ['alerts', () => '/alerts'],
      ['alerts-none', () => '/alerts?status=expired'],
      ['alert', () => `/alerts/${account.rule}`],
      ['alert-edit', () => `/alerts/${account.rule}/edit`],
      ['alert-new', () => '/alerts/new'],
      ['webhooks', () => '/webhooks'],
      ['webhook', webhookPath],
      ['webhook-none', () => `${webhookPath()}?status=pending`],
      ['webhook-new', () => '/webhooks/new'],
      ['webhook-edit', () => `${webhookPath()}/edit`],
      ['delivery', () => `${webhookPath()}/deliveries/${account.failed.id}`],
      ['live', () => '/live'],
      ['usage', () => '/usage'],
    ];

    beforeAll(async () => {
      api = await startTestApi({ console: {}, now: Date.now });
      world = await aConsoleWorld(api.db);
      const client = await signIn(api);
      account = await anAccountWorld(api.db, client.accountId, world.market);
      const context = await contextOf();
      const [name = '', value = ''] = client.cookie.split('=');
      await context.addCookies([{ name, value, url: api.url }]);
      tab = await watchedPage(context, api.url);
    });
    afterAll(() => api?.close());

    test('the list contains every page of the router', () => {
      const calls = createApiCalls(api.deps, routeTable(api.deps));
      const router = createConsoleRouter(api.deps, calls, loadAssets('/console/assets', ['ops', 'console']));
      registerConsolePages(router, api.deps);
      expect(
        unvisited(
          router.registered,
          pages.map(([, path]) => path()),
        ),
      ).toEqual([]);
    });

    test.for(pages)('%s fits and has no accessibility faults', (visited) => viewAll(tab, api.url, visited));
  });
});
