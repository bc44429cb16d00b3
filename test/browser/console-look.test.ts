import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storedSnapshots } from '../factories/stored-series.ts';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { type ConsoleClient, signIn } from '../integration/api/console/console-client.ts';
import { findChromium, launchChromium } from '../support/chromium.ts';
import { type AccountWorld, aConsoleWorld, anAccountWorld, type ConsoleWorld } from './console-world.ts';
import { overflow, PHONE, photograph, WIDE } from './open-page.ts';

const chromiumPath = findChromium();
const SIZES = [12, 14, 16, 20, 28];
/** The narrowest window in which tables scroll with the page. */
const NARROWEST = { width: 1100, height: 700 };

describe.skipIf(chromiumPath === null)('the look of the console in Chromium', () => {
  let api: TestApi;
  let browser: Browser;
  let world: ConsoleWorld;
  let client: ConsoleClient;
  let account: AccountWorld;
  let page: Page;

  beforeAll(async () => {
    [api, browser] = await Promise.all([
      startTestApi({ console: {}, now: Date.now }),
      launchChromium(chromiumPath ?? ''),
    ]);
    world = await aConsoleWorld(api.db);
    client = await signIn(api);
    account = await anAccountWorld(api.db, client.accountId, world.market);
    const context = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
    const [name = '', value = ''] = client.cookie.split('=');
    await context.addCookies([{ name, value, url: api.url }]);
    page = await context.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await api?.close();
  });

  const marketPath = () => `/markets/polymarket/${world.market.marketId}`;
  const pages: [name: string, path: () => string][] = [
    ['markets', () => '/markets'],
    ['market', marketPath],
    ['event', () => '/events/polymarket/chess-final'],
    ['alerts', () => '/alerts'],
    ['alert', () => `/alerts/${account.rule}`],
    ['alert-new', () => '/alerts/new'],
    ['webhooks', () => '/webhooks'],
    ['webhook', () => `/webhooks/${account.webhook.id}`],
    ['webhook-new', () => '/webhooks/new'],
    ['delivery', () => `/webhooks/${account.webhook.id}/deliveries/${account.failed.id}`],
    ['live', () => '/live'],
    ['usage', () => '/usage'],
  ];

  test.for(pages)('%s has the five sizes of text, and fits into a window of any width', async ([name, path]) => {
    for (const viewport of [WIDE, NARROWEST, PHONE]) {
      await page.setViewportSize(viewport);
      await page.goto(`${api.url}${path()}`);
      await page.evaluate(`document.querySelectorAll('details').forEach((each) => { each.open = true; })`);
      const sizes = await page.evaluate<number[]>(
        `[...new Set([...document.body.querySelectorAll('*:not(.chart *)')]
          .filter((each) => [...each.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== ''))
          .map((each) => parseFloat(getComputedStyle(each).fontSize)))]`,
      );
      expect(sizes.filter((size) => !SIZES.includes(size))).toEqual([]);
      expect([viewport.width, await overflow(page)]).toEqual([viewport.width, 0]);
      await photograph(page, `look-${name}-${viewport.width}`);
    }
  });

  test('the header of a long table stays below the header of the page while the rows scroll', async () => {
    for (const [path, height] of [
      ['/markets', 320],
      [`/webhooks/${account.webhook.id}`, 400],
    ] as const) {
      await page.setViewportSize({ width: 1280, height });
      await page.goto(`${api.url}${path}`);
      const [top, below] = await page.evaluate<[number, number]>(`(() => {
        const table = [...document.querySelectorAll('table')].at(-1);
        table.querySelector('tbody tr:last-child').scrollIntoView({ block: 'end' });
        return [table.querySelector('thead th').getBoundingClientRect().top,
          document.querySelector('header.top').getBoundingClientRect().bottom];
      })()`);
      expect([path, Math.round(top - below)]).toEqual([path, 0]);
    }
  });

  test('a market page leads to its curl request, and shows the mid price between asks and bids', async () => {
    await page.setViewportSize(WIDE);
    await page.goto(`${api.url}${marketPath()}`);
    const labels = await page.locator('.crumb-actions > *').allTextContents();
    expect(labels).toEqual(['Copy id', 'curl', 'Open at venue']);
    await page.locator('summary', { hasText: 'curl' }).click();
    await page.getByRole('link', { name: 'curl' }).click();
    await page.locator('#program-curl').waitFor({ state: 'visible' });
    const sides = await page.locator('.book-card tbody th').allTextContents();
    expect(sides).toEqual([...Array(6).fill('ask'), 'mid', ...Array(6).fill('bid')]);
    expect(await page.locator('.book-card tr', { has: page.locator('.mid') }).textContent()).toContain('0.195');
  });

  test('every outcome of a market has its change of the last day', async () => {
    await page.goto(`${api.url}/markets/polymarket/${world.siblings[0]?.marketId}`);
    const [, no] = world.siblings[0]?.outcomes ?? [];
    expect(await page.locator('.headline [data-change]').textContent()).toMatch(/pt$/);
    const dayAgo = Math.floor(Date.now() / 3_600_000) * 3_600 - 30 * 3_600;
    await storedSnapshots(api.db, no?.tokenId ?? 0n, [{ ts: dayAgo, price: '0.1' }]);
    await page.goto(`${api.url}/markets/polymarket/${world.siblings[0]?.marketId}?outcome=${no?.outcomeId}`);
    expect(await page.locator('.headline-label').textContent()).toBe('No');
    expect(await page.locator('.headline [data-change]').textContent()).toMatch(/^▲ \+\d+\.\d pt$/);
  });
});
