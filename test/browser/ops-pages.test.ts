import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadAssets } from '../../api/pages/kit/assets.ts';
import { createOpsRouter } from '../../api/pages/ops/actions.ts';
import { registerPages } from '../../api/pages/ops/app.ts';
import { anOperator } from '../factories/operators.ts';
import { startTestApi } from '../integration/api/api-harness.ts';
import { OPS_PASSWORDS, testOps } from '../integration/api/ops/ops-client.ts';
import { eventually } from '../support/eventually.ts';
import { unvisited } from './every-page.ts';
import { describeInChromium, pageLike } from './in-chromium.ts';
import {
  accessibilityFaults,
  colorFaults,
  expectSound,
  expectSoundForms,
  overflow,
  PHONE,
  photograph,
  smallTargets,
  type WatchedPage,
  WIDE,
  watchedPage,
} from './open-page.ts';
import { anOpsWorld, type OpsWorld, overloadTheMachine, stopComparisons } from './ops-world.ts';

const DESK = { width: 1440, height: 900 };
const start = () => startTestApi({ console: {}, ops: testOps({ queueNames: ['deliveries'] }), now: Date.now });

describeInChromium('the operator pages in Chromium', start, (opened) => {
  let world: OpsWorld;
  let operator: BrowserContext;
  /** One tab for all pages, because a tab caches compiled code. */
  let tab: WatchedPage;
  beforeAll(async () => {
    world = await anOpsWorld(opened.api.db);
    await stopComparisons(opened.api.db, world.market);
    operator = await logIn('operator');
    tab = await watchedPage(operator, opened.api.url);
  });

  async function logIn(role: 'operator' | 'viewer'): Promise<BrowserContext> {
    const context = await opened.browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
    const page = await context.newPage();
    await page.goto(`${opened.api.url}/ops`);
    await page.getByLabel('Password').fill(OPS_PASSWORDS[role]);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL(`${opened.api.url}/ops`);
    await page.close();
    return context;
  }

  const marketPath = () => `/ops/markets/polymarket/${world.market.marketId}`;
  const pages: [name: string, path: () => string][] = [
    ['overview', () => '/ops'],
    ['deliveries', () => '/ops/deliveries'],
    ['delivery', () => `/ops/deliveries/${world.deliveries.failed.id}`],
    ['webhooks', () => '/ops/webhooks'],
    ['webhook', () => `/ops/webhooks/${world.failing.id}`],
    ['alerts', () => '/ops/alerts'],
    ['markets', () => '/ops/markets'],
    ['market', marketPath],
    ['venues', () => '/ops/venues'],
    ['venue', () => '/ops/venues/polymarket'],
    ['keys', () => '/ops/keys'],
    ['accounts', () => '/ops/accounts'],
    ['account', () => `/ops/accounts/${world.accountId}`],
    ['audit', () => '/ops/audit'],
    ['docs', () => '/docs'],
    ['guides', () => '/docs/read'],
    ['guide', () => '/docs/read/operations'],
    ['streams', () => '/docs/streams'],
    ['queues', () => '/ops/queues'],
  ];
  const CELL = "getComputedStyle(document.querySelector('#candle-chart td')).display";
  /** The number of tables that are wider than their place. */
  const CUT = `[...document.querySelectorAll('.table-wrap')].filter((box) => box.scrollWidth > box.clientWidth + 1).length`;
  const SECRETS = ['query-secret-of-the-url', 'T0SECRETSECRET'];
  /** The last element that a script adds. */
  const READY: Readonly<Record<string, string>> = {
    market: '#candle-chart[data-drawn="60"]',
    docs: '.search',
    queues: 'main a[href="/ops/queues/queue/deliveries"] >> nth=0',
  };
  /** Pages with the markup of a library. The tests ignore its accessibility faults. */
  const FOREIGN = new Set(['queues']);

  test('the list contains every page of the router', () => {
    const router = createOpsRouter(opened.api.deps, loadAssets('/ops/assets', 'ops'));
    registerPages(router, opened.api.deps);
    const visited = pages.map(([, path]) => path());
    expect(unvisited(router.registered, visited)).toEqual([]);
  });

  describe('each page', () => {
    test.for(pages)(
      '%s has no errors, no foreign hosts, no accessibility faults, no overflow on a phone and no cut table on a desk',
      async ([name, path]) => {
        const { page, problems } = tab;
        problems.length = 0;
        const load = async () => {
          const response = await page.goto(`${opened.api.url}${path()}`);
          expect(response?.status()).toBe(200);
          const ready = READY[name];
          if (ready !== undefined) await page.locator(ready).waitFor();
          // Its groups have tests of their own below.
          if (name === 'docs')
            await page.evaluate('for (const each of document.querySelectorAll(".group")) each.remove()');
          expect(await page.title()).not.toBe('pwned');
          const content = await page.content();
          expect(SECRETS.filter((secret) => content.includes(secret))).toEqual([]);
          expect(content).not.toContain('\u202e');
          // The phone style for tables must not apply to the table of the chart library.
          if (name === 'market') expect(await page.evaluate<string>(CELL)).toBe('table-cell');
        };
        if (!FOREIGN.has(name)) {
          await expectSoundForms(page, name, load);
          await page.setViewportSize(DESK);
          expect(await page.evaluate<number>(CUT)).toBe(0);
        } else {
          await page.setViewportSize(PHONE);
          await load();
          await photograph(page, `${name}-390`, false);
          expect(await overflow(page)).toBe(0);
        }
        expect(problems).toEqual([]);
      },
    );
  });

  const GROUPS = [
    ...[
      'streams',
      'markets',
      'webhooks',
      'deliveries',
      'alerts',
      'wallets',
      'watchlist',
      'archive',
      'keys',
      'events',
      'health',
      'contract',
    ],
    ...['schemas', 'errors', 'headers'],
  ];
  test('the groups of the API reference are all listed', async () => {
    const text = await (await fetch(`${opened.api.url}/docs`)).text();
    expect([...text.matchAll(/<h2 id="(?:tag-)?([\w-]+)"/g)].map(([, id]) => id)).toEqual(GROUPS);
  });

  describe('the groups of the API reference', () => {
    let reference: Page;
    beforeAll(async () => {
      reference = await operator.newPage();
      await reference.goto(`${opened.api.url}/docs`);
      await reference.locator('.scripts').waitFor({ state: 'attached' });
      await reference.evaluate(`window.groups = new Map([...document.querySelectorAll('.group')].map((each) => {
        for (const part of each.querySelectorAll('details')) part.open = true;
        return [each.querySelector('h2').id.replace('tag-', ''), each];
      })); window.place = window.groups.values().next().value.parentElement;`);
    });
    afterAll(() => reference?.close());

    // One group at a time: the check of all elements at once takes minutes on a busy machine.
    test.for(GROUPS)('%s has no accessibility faults when every part is open', async (group) => {
      await reference.setViewportSize(PHONE);
      await reference.emulateMedia({ colorScheme: 'dark' });
      await reference.evaluate(`for (const each of window.groups.values()) each.remove();
        window.place.append(window.groups.get('${group}'));`);
      expect(await accessibilityFaults(reference)).toEqual([]);
      expect([await overflow(reference), await smallTargets(reference)]).toEqual([0, []]);
      await reference.emulateMedia({ colorScheme: 'light' });
      expect(await colorFaults(reference)).toEqual([]);
      await reference.setViewportSize(WIDE);
      expect(await overflow(reference)).toBe(0);
    });
  });

  test('the API reference finds an entry by a word, and opens the entry of an address', async () => {
    const { page, problems } = tab;
    problems.length = 0;
    await page.setViewportSize(WIDE);
    await page.goto(`${opened.api.url}/docs`);
    await page.getByRole('searchbox').fill('cooldownseconds create');
    await page.locator('#createAlert').waitFor();
    expect(await page.locator('#listMarkets').isVisible()).toBe(false);
    expect(await page.getByRole('status').textContent()).toMatch(/^\d+ of \d+ entries match$/);
    await page.getByRole('searchbox').press('Enter');
    await page.locator('#createAlert[open]').waitFor();
    // An address of the page of former releases.
    await page.goto(`${opened.api.url}/docs#/markets/listMarkets`);
    await page.reload();
    await page.locator('#listMarkets[open]').waitFor();
    expect(problems).toEqual([]);
  });

  test('the API reference sends a request with the key, and shows the answer, curl and TypeScript without the key', async () => {
    const { page, problems } = tab;
    problems.length = 0;
    const { key } = await opened.api.client();
    await page.setViewportSize(WIDE);
    await page.goto(`${opened.api.url}/docs#listMarkets`);
    await page.reload();
    // The check of a small page is quick.
    await page.evaluate(
      `for (const each of document.querySelectorAll('.group:not(:has(#listMarkets))')) each.remove()`,
    );
    const entry = page.locator('#listMarkets');
    await page.getByLabel('API key for the requests').fill(key);
    await entry.getByText('Try it').click();
    await entry.getByLabel('limit').fill('1');
    await entry.getByRole('button', { name: 'Send' }).click();
    await entry.getByText(/^200 .*after/).waitFor();
    await entry.locator('.answer').getByText('"market_id"').first().waitFor();
    const [curl = '', typescript = ''] = await entry.locator('.answer pre').allInnerTexts();
    expect(curl).toBe(`curl -H "Authorization: Bearer $KEY" \\\n  "${opened.api.url}/v1/all/markets?limit=1"`);
    expect(typescript).toContain(`await fetch("${opened.api.url}/v1/all/markets?limit=1"`);
    expect(await entry.locator('.answer').textContent()).not.toContain(key);
    await photograph(page, 'docs-tried-1280', false);
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    await entry.locator('.answer').scrollIntoViewIfNeeded();
    await photograph(page, 'docs-tried-390', false);
    expect([await overflow(page), await smallTargets(page)]).toEqual([0, []]);
    expect(problems).toEqual([]);
    await page.setViewportSize(WIDE);
  });

  test('the API reference shows a stream as it arrives, and stops it', async () => {
    const { page } = tab;
    const { key } = await opened.api.client();
    await page.goto(`${opened.api.url}/docs`);
    await page.reload();
    await page.getByLabel('API key for the requests').fill(key);
    const form = page.locator('form[data-path="/v1/events/stream"]');
    await form.evaluate((each) => {
      (each.closest('.entry') as unknown as { open: boolean }).open = true;
      (each.closest('.try') as unknown as { open: boolean }).open = true;
    });
    await form.getByRole('button', { name: 'Send' }).click();
    const answer = form.locator('xpath=following-sibling::div');
    await answer.getByText('heartbeat').first().waitFor();
    await form.getByRole('button', { name: 'Stop' }).click();
    await answer.getByText(/^200.*, stopped$/).waitFor();
    await form.getByRole('button', { name: 'Send' }).waitFor();
  });

  test('a visitor without a session sees the login page without faults', async () => {
    const context = await opened.browser.newContext({ viewport: PHONE });
    const { page, problems } = await watchedPage(context, opened.api.url);
    await expectSoundForms(page, 'login', async () => {
      await page.goto(`${opened.api.url}${marketPath()}?interval=1m`);
      expect(new URL(page.url()).pathname).toBe('/ops/login');
    });
    await page.getByLabel('Password').fill(OPS_PASSWORDS.viewer);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${opened.api.url}${marketPath()}?interval=1m`);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('an operator makes a sign-in link, which one page shows', async () => {
    const { page, problems } = tab;
    problems.length = 0;
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(`${opened.api.url}/ops/keys`);
    await page.getByText('New sign-in link', { exact: true }).click();
    await page.getByText('New key', { exact: true }).click();
    for (const viewport of [PHONE, WIDE]) {
      await page.setViewportSize(viewport);
      await expectSound(page, `link-form-${viewport.width}`);
    }
    await page.getByLabel('Account of the person').fill('Meridian Research');
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await page.locator('.secret').textContent();
    expect(link?.startsWith(`${opened.api.url}/console/sign-in/`)).toBe(true);
    await photograph(page, 'link-made');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(link);
    expect(problems).toEqual([]);
  });

  test('a named operator logs in by keyboard and sees the own name', async () => {
    await anOperator(opened.api.db, { name: 'alice', role: 'viewer', password: 'the-password-of-alice' });
    const context = await opened.browser.newContext({ viewport: PHONE });
    const { page, problems } = await watchedPage(context, opened.api.url);
    await page.goto(`${opened.api.url}/ops`);
    await page.locator('input[name="name"]:focus').waitFor();
    await page.keyboard.type('alice');
    await page.keyboard.press('Tab');
    await page.keyboard.type('the-password-of-alice');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${opened.api.url}/ops`);
    expect(await page.locator('header .who').textContent()).toMatch(/alice\s+viewer/);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the warning before a revocation is completely visible', async () => {
    const { page } = tab;
    await page.setViewportSize(DESK);
    await page.goto(`${opened.api.url}/ops/keys`);
    await page.locator('summary', { hasText: 'Revoke' }).first().click();
    expect(await page.evaluate<number>(CUT)).toBe(0);
  });

  test('a market can be read without a script, and by keyboard', async () => {
    const page = await pageLike(operator, { viewport: PHONE, javaScriptEnabled: false });
    await page.goto(`${opened.api.url}${marketPath()}?interval=1m`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#main$/);
    const candles = page.getByText('The last 30 candles as a table');
    await candles.focus();
    await page.keyboard.press('Enter');
    const rows = page.getByRole('table', { name: 'Candles, newest first' }).getByRole('row');
    await rows.first().waitFor();
    expect(await rows.count()).toBe(31);
    await page.getByRole('link', { name: '4h' }).press('Enter');
    await page.getByText('No candle of this interval exists yet.').waitFor();
    await page.close();
  });

  test('the pages of an overloaded machine with late polls and a given-up feed have no faults', async () => {
    await overloadTheMachine(opened.api.db);
    const { page, problems } = tab;
    problems.length = 0;
    // The overview keeps its facts for a few seconds.
    await eventually(
      async () => {
        await page.goto(`${opened.api.url}/ops`);
        return page.locator('main').textContent();
      },
      (text) => text?.includes('Polymarket is late') === true,
      { everyMs: 500 },
    );
    for (const [name, path] of [
      ['overview-overloaded', '/ops'],
      ['venue-overloaded', '/ops/venues/polymarket'],
    ] as const) {
      await expectSoundForms(page, name, () => page.goto(`${opened.api.url}${path}`));
      expect(await page.locator('main').textContent()).toMatch(/given[_ ]up/);
    }
    expect(problems).toEqual([]);
  });
});
