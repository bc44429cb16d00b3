import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { findChromium, launchChromium } from '../support/chromium.ts';
import { type ConfirmedJournal, confirmJournal } from '../support/journal.ts';
import { openSse } from '../support/sse.ts';
import { aConsoleWorld, type ConsoleWorld } from './console-world.ts';
import { expectSoundForms, overflow, PHONE, photograph, WIDE, watchedPage } from './open-page.ts';

const chromiumPath = findChromium();

describe.skipIf(chromiumPath === null)('the public market of the start page in Chromium', () => {
  let stored: TestApi;
  let api: TestApi;
  let journal: ConfirmedJournal;
  let browser: Browser;
  let world: ConsoleWorld;

  beforeAll(async () => {
    [stored, browser] = await Promise.all([startTestApi(), launchChromium(chromiumPath ?? '')]);
    world = await aConsoleWorld(stored.db);
    const publicMarket = { venue: 'polymarket', marketId: world.market.marketId };
    api = await startTestApi({ console: { publicMarket }, now: Date.now }, { beside: stored });
    journal = confirmJournal(api.db);
  });
  afterAll(async () => {
    await browser?.close();
    await journal?.stop();
    await api?.close();
    await stored?.close();
  });

  test('a visitor sees the chart, and the percentage and its change follow the stream', async () => {
    const context = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, api.url);
    await expectSoundForms(page, 'console-start-market', async () => {
      await page.goto(api.url);
      await page.locator('#market-chart[data-drawn]').waitFor();
      await page.locator('[data-live][data-tone="good"]').waitFor();
    });
    const moved = await page.locator('[data-change]').textContent();
    const [yes] = world.market.outcomes;
    const of = { venue: 'polymarket', marketId: world.market.marketId, outcomeId: yes?.outcomeId ?? '' };
    await journal.append([{ ...of, kind: 'price', body: { as_of: Math.floor(Date.now() / 1_000), price: '0.876' } }]);
    await page.locator('.headline strong', { hasText: '87.6 %' }).waitFor();
    expect(await page.locator('[data-change]').textContent()).not.toBe(moved);
    expect(await page.locator('[data-live]').textContent()).toMatch(/^live, complete to /);
    expect(await page.title()).toBe('Prediction markets, live and complete · oddswire');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a visitor reads why the stream is refused, and gets it when a place is free', async () => {
    const open = () => openSse(`${api.url}/console/public/stream`, {});
    const others = await Promise.all(Array.from({ length: 10 }, open));
    const page = await browser.newPage({ viewport: PHONE });
    await page.goto(api.url);
    const line = page.locator('[data-live]');
    const reason = 'too many pages at this address follow this market; sign in with a key';
    await line.getByText(`no stream, prices may be old: ${reason}`, { exact: true }).waitFor();
    await photograph(page, 'console-start-market-refused');
    expect(await overflow(page)).toBe(0);
    expect((await open()).status).toBe(429);
    for (const other of others) other.close();
    await page.locator('[data-live][data-tone="good"]').waitFor();
    await page.close();
  });
});
