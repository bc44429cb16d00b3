import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleDesk, GOOD } from '../console-desk.ts';
import { accessibilityFaults, expectSound, overflow, PHONE, photograph, smallTargets, WIDE } from '../open-page.ts';

export function findTests(desk: ConsoleDesk): void {
  const field = (page: Page) => page.getByRole('combobox', { name: 'Search markets' });
  const options = (page: Page) => page.locator('.find [role="option"]');
  const active = (page: Page) => page.locator('.find [aria-selected="true"]');

  test('the search of every page lists questions as one types, and the keyboard opens one', async () => {
    const { page, problems } = desk.tab;
    problems.length = 0;
    await page.setViewportSize(WIDE);
    for (const path of ['/alerts', '/usage']) {
      await page.goto(`${desk.api.url}${path}`);
      await page.keyboard.press('/');
      expect(await page.evaluate('document.activeElement.id')).toBe('find');
      await page.keyboard.type('chess fin');
      await page.getByRole('option', { name: 'All matches for “chess fin”' }).waitFor();
      expect((await options(page).allTextContents()).map((text) => text.replace(/\s+/g, ' '))).toEqual([
        'Who wins the chess final? Polymarket',
        expect.stringMatching(/^Anna\d/),
        expect.stringMatching(/^Bert\d/),
        expect.stringMatching(/^Carla\d/),
        'All matches for “chess fin”',
      ]);
      expect(await field(page).getAttribute('aria-expanded')).toBe('true');
    }
    await expectSound(page, 'console-find');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await active(page).textContent()).toMatch(/^Anna/);
    expect(await field(page).getAttribute('aria-activedescendant')).toBe(await active(page).getAttribute('id'));
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await active(page).textContent()).toMatch(/^All matches/);
    await page.keyboard.press('Escape');
    expect([await field(page).getAttribute('aria-expanded'), await field(page).inputValue()]).toEqual([
      'false',
      'chess fin',
    ]);
    await page.keyboard.press('ArrowDown');
    await options(page).first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/events/polymarket/chess-final`);
    expect(problems).toEqual([]);
  });

  test('a click opens a match, and Enter without one lists all matches', async () => {
    const { page } = desk.tab;
    await page.goto(`${desk.api.url}/alerts`);
    await field(page).fill('zurich');
    const match = page.getByRole('option', { name: /^Will it snow in Zurich/ });
    await match.click();
    await page.getByRole('heading', { level: 1, name: 'Will it snow in Zurich on Christmas Eve?' }).waitFor();
    await field(page).fill('zurich');
    await match.waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/markets?q=zurich`);
    await page.getByText('Matches for').waitFor();
  });

  test('the search says that nothing matches and that the server does not answer, and shows the newest text only', async () => {
    const page = await desk.context.newPage();
    await page.goto(`${desk.api.url}/usage`);
    await field(page).fill('zzzzqqqq');
    await page.locator('.find-note', { hasText: 'No market matches “zzzzqqqq”.' }).waitFor();
    expect(await field(page).getAttribute('aria-expanded')).toBe('false');
    await page.route('**/console/find?**', (route) => route.abort());
    await field(page).fill('zurich');
    await page
      .locator('.find-note', { hasText: 'The search got no answer: the server does not answer. Try again.' })
      .waitFor();
    await page.unroute('**/console/find?**');
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/console/find?q=earth**', async (route) => {
      await held;
      await route.continue().catch(() => undefined);
    });
    const first = page.waitForRequest(/q=earth/);
    await field(page).fill('earth');
    const cancelled = page.waitForEvent('requestfailed', (request) => request.url().includes('q=earth'));
    await first;
    await field(page).fill('orbit');
    await cancelled;
    release();
    await options(page).filter({ hasText: 'orbit' }).first().waitFor();
    expect(await options(page).filter({ hasText: 'earthquake' }).count()).toBe(0);
    await page.close();
  });

  test('hostile titles are text in matches, in the list of recently seen markets, and in the name of a star', async () => {
    const { page, problems } = desk.tab;
    problems.length = 0;
    await page.goto(`${desk.api.url}/markets/polymarket/${desk.world.hostile.marketId}`);
    await page.goto(`${desk.api.url}/markets`);
    await field(page).fill('happen');
    await options(page).filter({ hasText: '<img src=x' }).first().waitFor();
    await field(page).fill('');
    await options(page).filter({ hasText: '<img src=x' }).first().waitFor();
    await page.locator('[data-recent] a', { hasText: '<img src=x' }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect([await page.title(), problems]).toEqual(['Markets · oddswire', []]);
  });

  test('the empty field and the list of markets have the markets that this browser opened last, until the sign-out', async () => {
    const { key } = await desk.api.client();
    const page = await (await desk.browser.newContext({ viewport: WIDE })).newPage();
    const signIn = async () => {
      await page.goto(desk.api.url);
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      // An account without an alert begins with its first steps.
      await page.waitForURL(`${desk.api.url}/start`);
      await page.goto(`${desk.api.url}/markets`);
    };
    await signIn();
    await page.getByText('Markets that you open appear here.').waitFor();
    const [anna, bert] = desk.world.siblings;
    for (const market of [anna, bert, anna]) await page.goto(`${desk.api.url}/markets/polymarket/${market?.marketId}`);
    await page.goto(`${desk.api.url}/usage`);
    await page.keyboard.press('/');
    await options(page).first().waitFor();
    const titles = ['Who wins the chess final? · Anna', 'Who wins the chess final? · Bert'];
    expect(await options(page).allTextContents()).toEqual(titles);
    await photograph(page, 'console-recent', false);
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(bert?.marketId ?? ''));
    await page.goto(`${desk.api.url}/markets`);
    expect(await page.locator('[data-recent] a').allTextContents()).toEqual(titles.toReversed());
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByLabel('API key').waitFor();
    expect(await page.evaluate('localStorage.length')).toBe(0);
    await signIn();
    await page.getByText('Markets that you open appear here.').waitFor();
    await page.context().close();
  });

  test('a star puts a market on the watchlist, whose page follows its price', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    const [carla] = desk.world.siblings.slice(2);
    await page.goto(`${desk.api.url}/markets`);
    await page.getByText('All markets').click();
    const star = page.getByRole('button', { name: 'Watch Carla' });
    expect(await star.getAttribute('aria-pressed')).toBe('false');
    const saved = page.waitForResponse(/\/watchlist\/star$/);
    await star.click();
    await saved;
    expect([await star.getAttribute('aria-pressed'), new URL(page.url()).pathname]).toEqual(['true', '/markets']);
    await page.getByRole('link', { name: 'Watchlist' }).click();
    await page.locator(GOOD).waitFor();
    const rows = page.locator('a[data-row]');
    expect(await rows.first().textContent()).toBe('Who wins the chess final? · Carla');
    const outcomeId = carla?.outcomes[0]?.outcomeId ?? '';
    await desk.journal.append([
      {
        kind: 'price',
        venue: 'polymarket',
        marketId: carla?.marketId ?? '',
        outcomeId,
        body: { as_of: Math.floor(Date.now() / 1_000), price: '0.313' },
      },
    ]);
    await page.locator(`[data-price="${outcomeId}"]`, { hasText: '31.3 %' }).waitFor();
    const removed = page.waitForResponse(/\/watchlist\/star$/);
    await page.getByRole('button', { name: 'Watch Who wins the chess final? · Carla' }).click();
    await removed;
    await page.reload();
    expect(await rows.allTextContents()).not.toContain('Who wins the chess final? · Carla');
  });

  test('a star that is not saved goes back, and the page says why', async () => {
    const page = await desk.context.newPage();
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    const star = page.getByRole('button', { name: /^Watch Will a magnitude 8/ });
    expect(await star.getAttribute('aria-pressed')).toBe('true');
    await page.route('**/watchlist/star', (route) => route.abort());
    await star.click();
    await page.getByRole('alert').filter({ hasText: 'The star was not saved: the server does not answer.' }).waitFor();
    expect(await star.getAttribute('aria-pressed')).toBe('true');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.close();
  });

  test('search and star work without scripts', async () => {
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}/usage`);
    await page.getByRole('searchbox', { name: 'Search markets' }).fill('orbit');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/markets\?q=orbit$/);
    const star = page.getByRole('button', { name: /^Watch Will the satellite/ });
    await star.click();
    await page.waitForURL(/\/markets\?q=orbit$/);
    expect(await star.getAttribute('aria-pressed')).toBe('true');
    await star.click();
    await page.waitForURL(/\/markets\?q=orbit$/);
    expect(await star.getAttribute('aria-pressed')).toBe('false');
  });

  test.for([360, 390, 1100])('search, list and watchlist fit into a window of %s pixels', async (width) => {
    const page = await desk.tabAt({ width, height: 800 });
    for (const path of ['/markets', '/watchlist']) {
      await page.goto(`${desk.api.url}${path}`);
      for (const row of await page.locator('.members summary').all()) await row.click();
      await field(page).fill('chess');
      await page.getByRole('option', { name: 'All matches for “chess”' }).waitFor();
      expect([path, await overflow(page)]).toEqual([path, 0]);
      if (width < 760) expect(await smallTargets(page)).toEqual([]);
      const box = await page.locator('.find-popup').boundingBox();
      expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= width).toBe(true);
    }
  });
}
