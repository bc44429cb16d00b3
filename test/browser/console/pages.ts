import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { registerConsolePages } from '../../../api/pages/console/app.ts';
import { createConsoleRouter } from '../../../api/pages/console/route.ts';
import { loadAssets } from '../../../api/pages/kit/assets.ts';
import { type ConsoleDesk, DRAWN, GOOD } from '../console-desk.ts';
import { contrastFaults } from '../contrast.ts';
import { unvisited } from '../every-page.ts';
import { accessibilityFaults, expectSoundForms, overflow, PHONE, photograph, WIDE, watchedPage } from '../open-page.ts';

/** The largest size of a page with its scripts and styles, compressed bytes. */
const MAX_PAGE_BYTES = 150 * 1024;
const MAX_PLAIN_BYTES = 60 * 1024;
/** The sizes of text, pixels. */
const TEXT_SIZES = [12, 14, 16, 20, 28];
/** The narrowest window in which tables scroll with the page. */
const NARROWEST = { width: 1100, height: 700 };
/** Parts of the address of a webhook that may be secrets. */
const SECRETS = ['query-secret', 'T0SECRETSECRET'];

/** The sizes of the texts of a page, without its chart. */
const textSizes = (page: Page) =>
  page.evaluate<number[]>(`[...new Set([...document.body.querySelectorAll('*:not(.chart *)')]
    .filter((each) => [...each.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== ''))
    .map((each) => parseFloat(getComputedStyle(each).fontSize)))]`);

export function pageTests(desk: ConsoleDesk): void {
  const compared = () =>
    desk.world.siblings
      .slice(1)
      .map(({ outcomes: [yes] }) => `compare=${yes?.outcomeId}`)
      .join('&');
  const pages: [name: string, path: () => string, ready?: string][] = [
    ['markets', () => '/markets', GOOD],
    ['markets-none', () => '/markets?q=zzzzqqqq'],
    ['markets-play', () => '/markets?money=all', GOOD],
    ['watchlist', () => '/watchlist', GOOD],
    ['market', desk.marketPath, DRAWN],
    ['market-candles', () => `${desk.marketPath()}?chart=candle&range=1w`, DRAWN],
    ['market-no', () => `${desk.marketPath()}?outcome=${desk.world.market.outcomes[1]?.outcomeId}`, DRAWN],
    ['sibling', () => `/markets/polymarket/${desk.world.siblings[0]?.marketId}`, DRAWN],
    ['market-compare', () => `/markets/polymarket/${desk.world.siblings[0]?.marketId}?${compared()}`, DRAWN],
    ['hostile', () => `/markets/polymarket/${desk.world.hostile.marketId}`, GOOD],
    ['decided', () => `/markets/polymarket/${desk.world.decided.marketId}`, GOOD],
    ['resolutions', () => '/resolutions'],
    ['resolutions-none', () => '/resolutions?state=voided'],
    ['event', () => '/events/polymarket/chess-final', DRAWN],
    ['event-month', () => '/events/polymarket/chess-final?range=1m', DRAWN],
    ['alerts', () => '/alerts'],
    ['alerts-fired', () => '/alerts?status=triggered'],
    ['alerts-none', () => '/alerts?status=expired'],
    ['alert', () => `/alerts/${desk.account.alert}`],
    ['alert-rule', () => `/alerts/${desk.account.rule}`],
    ['alert-edit', () => `/alerts/${desk.account.rule}/edit`],
    ['alert-new', () => `/alerts/new?tokenMint=${desk.world.market.outcomes[0]?.outcomeId}`],
    ['alert-new-volume', () => '/alerts/new?condition=volume&subject=scope&scope.q=earthquake&repeat=true'],
    ['wallets', () => '/wallets'],
    ['wallet', () => `/wallets/${desk.account.wallet}`],
    ['wallet-new', () => `/wallets/${desk.account.newWallet}`],
    ['webhooks', () => '/webhooks'],
    ['webhook', () => `/webhooks/${desk.account.webhook.id}`],
    ['webhook-none', () => `/webhooks/${desk.account.message.webhookId}`],
    ['webhook-signature', () => `/webhooks/${desk.account.webhook.id}?signature=body`],
    ['webhook-new', () => '/webhooks/new'],
    ['webhook-edit', () => `/webhooks/${desk.account.webhook.id}/edit`],
    ['delivery', () => `/webhooks/${desk.account.webhook.id}/deliveries/${desk.account.failed.id}`],
    ['delivery-retrying', () => `/webhooks/${desk.account.webhook.id}/deliveries/${desk.account.retrying.id}`],
    ['deliveries', () => '/deliveries'],
    ['deliveries-none', () => `/deliveries?webhook=${desk.account.webhook.id}&status=cancelled&since=2026-01-01T00:00`],
    ['delivery-chat', () => `/webhooks/${desk.account.message.webhookId}/deliveries/${desk.account.message.id}`],
    ['live', () => '/live', GOOD],
    ['archive', () => '/archive?month=2026-01'],
    ['archive-day', () => '/archive?kind=trades&venue=polymarket&from=2026-01-03&to=2026-01-03'],
    ['archive-gap', () => '/archive?kind=trades&venue=polymarket&from=2026-01-08&to=2026-01-14'],
    ['archive-none', () => '/archive?kind=books'],
    ['usage', () => '/usage'],
    ['first-steps', () => '/start'],
    ['error', () => '/markets?venue=nowhere'],
  ];

  test('the list contains every page of the router', () => {
    const { deps } = desk.api;
    const assets = loadAssets('/console/assets', 'console');
    const router = createConsoleRouter(deps, {} as never, assets);
    registerConsolePages(router, deps);
    const visited = pages.map(([, path]) => path());
    expect(unvisited(router.registered, visited)).toEqual([]);
  });

  test.for(pages)(
    '%s has no errors, no foreign hosts, no accessibility faults, no sideways scroll, five sizes of text, and fits into 150 KB, or 60 KB without a chart',
    async ([name, path, ready]) => {
      const { page, problems } = desk.tab;
      problems.length = 0;
      await expectSoundForms(page, `console-${name}`, async () => {
        await page.goto(`${desk.api.url}${path()}`);
        if (ready !== undefined) await page.locator(ready).first().waitFor();
        const content = await page.content();
        expect(await page.title()).not.toBe('pwned');
        expect(SECRETS.filter((secret) => content.includes(secret))).toEqual([]);
      });
      const bytes = await page.evaluate<number>(
        `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
          .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
      );
      const hasChart = (await page.locator('#market-chart').count()) > 0;
      expect(bytes).toBeLessThan(hasChart ? MAX_PAGE_BYTES : MAX_PLAIN_BYTES);
      await page.evaluate(`document.querySelectorAll('details').forEach((each) => { each.open = true; })`);
      for (const viewport of [PHONE, NARROWEST, WIDE]) {
        await page.setViewportSize(viewport);
        expect([viewport.width, await overflow(page)]).toEqual([viewport.width, 0]);
        expect((await textSizes(page)).filter((size) => !TEXT_SIZES.includes(size))).toEqual([]);
        await photograph(page, `console-${name}-open-${viewport.width}`);
      }
      const failed = name === 'error' ? / 400 / : / never /;
      expect(problems.filter((line) => !failed.test(line))).toEqual([]);
    },
  );

  test('the header of a long table stays below the header of the page while the rows scroll', async () => {
    const { page } = desk.tab;
    for (const [path, height] of [
      ['/markets', 320],
      ['/deliveries', 400],
    ] as const) {
      await page.setViewportSize({ width: 1280, height });
      await page.goto(`${desk.api.url}${path}`);
      const [top, below] = await page.evaluate<[number, number]>(`(() => {
        const table = [...document.querySelectorAll('table')].at(-1);
        table.querySelector('tbody tr:last-child').scrollIntoView({ block: 'end' });
        return [table.querySelector('thead th').getBoundingClientRect().top,
          document.querySelector('header.top').getBoundingClientRect().bottom];
      })()`);
      expect([path, Math.round(top - below)]).toEqual([path, 0]);
    }
  });

  test('the start says what oddswire is, without a session', async () => {
    const stranger = await desk.browser.newContext({ viewport: WIDE });
    const { page, problems } = await watchedPage(stranger, desk.api.url);
    await expectSoundForms(page, 'console-start', async () => {
      await page.goto(`${desk.api.url}/markets?q=snow`);
      expect(new URL(page.url()).search).toBe('?next=%2Fmarkets%3Fq%3Dsnow');
    });
    await page.getByLabel('API key').fill(desk.signInKey);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/markets?q=snow`);
    expect(problems).toEqual([]);
    await stranger.close();
  });

  test('the quick check of contrast finds the same texts as axe, which the pages use in the other colours', async () => {
    const page = await desk.browser.newPage();
    const cases = [
      ['color: #777', true],
      ['color: #767676', false],
      ['color: #949494; font-size: 24px', false],
      ['color: #999; font-size: 24px', true],
      ['color: #949494; font-size: 19px; font-weight: 700', false],
      ['color: #949494; font-size: 19px', true],
      ['color: rgb(0 0 0 / 0.4)', true],
      ['color: rgb(0 0 0 / 0.7)', false],
      ['color: black; opacity: 0.4', true],
      ['color: color-mix(in srgb, black 45%, white)', true],
      ['color: oklch(0.4 0.1 250)', false],
      ['background: rgb(0 0 0 / 0.6); color: black', true],
      ['background: #204060; color: white', false],
      ['background: #204060; color: #8090a0', true],
      ['visibility: hidden; color: white', false],
    ] as const;
    const texts = cases.map(([style], at) => `<p><span id="t${at}" style="${style}">Some words</span></p>`);
    await page.setContent(
      `<html lang="en"><title>x</title><body style="background: white"><main>${texts.join('')}</main>`,
    );
    const idsIn = (faults: readonly string[]) => faults.map((line) => Number(/id="t(\d+)"/.exec(line)?.[1]));
    const wrong = cases.flatMap(([, isFault], at) => (isFault ? [at] : []));
    expect(idsIn(await contrastFaults(page))).toEqual(wrong);
    expect(idsIn(await accessibilityFaults(page, ['color-contrast'])).sort((a, b) => a - b)).toEqual(wrong);
    await page.close();
  });
}
