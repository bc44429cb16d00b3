import type { Page, Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { asksForReason, type ConsoleDesk, DRAWN, GOOD, hide } from '../console-desk.ts';
import { accessibilityFaults, PHONE, WIDE } from '../open-page.ts';

export function marketListTests(desk: ConsoleDesk): void {
  test('the table follows prices, and applies filters at once', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}/markets`);
    await page.locator(GOOD).waitFor();
    const [yes] = desk.world.market.outcomes;
    await desk.journal.append([
      {
        kind: 'price',
        venue: 'polymarket',
        marketId: desk.world.market.marketId,
        outcomeId: yes?.outcomeId ?? '',
        body: { as_of: Math.floor(Date.now() / 1_000), price: '0.777' },
      },
    ]);
    await page.locator(`[data-price="${yes?.outcomeId}"]`, { hasText: '77.7 %' }).waitFor();
    await page.getByLabel('Status').selectOption('closed');
    await page.getByText('No market matches.').waitFor();
    await page.goBack();
    await page.getByText('snow in Zurich').first().waitFor();
    expect(await page.getByLabel('Status').inputValue()).toBe('open');
  });

  test('a search by words states its own order, and stays with other filters', async () => {
    const { page } = desk.tab;
    const hint = page.getByText('A search by words has its own order: the best match first.');
    await page.goto(`${desk.api.url}/markets?q=zurich`);
    expect(await hint.count()).toBe(0);
    await page.getByLabel('Order').selectOption('close_at');
    await hint.waitFor();
    expect(new URL(page.url()).searchParams.get('q')).toBe('zurich');
    expect(
      await page
        .getByRole('searchbox')
        .or(page.getByRole('combobox', { name: 'Search markets' }))
        .inputValue(),
    ).toBe('zurich');
    await page.getByRole('link', { name: 'Show all markets' }).click();
    await page.getByText('earthquake').first().waitFor();
  });

  test('the keyboard moves through rows, opens one, lists the keys and finds the search from every page', async () => {
    const { page } = desk.tab;
    await page.goto(`${desk.api.url}/markets`);
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    const titles = await page.locator('a[data-row]').allTextContents();
    for (const [key, row] of [
      ['j', 0],
      ['j', 1],
      ['j', 2],
      ['k', 1],
      ['k', 0],
      ['k', 0],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused()).toBe(titles[row]);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('j');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'hidden' });
    expect(await focused()).toBe(titles[0]);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}${desk.marketPath()}`);
    await page.locator(DRAWN).waitFor();
    await page.keyboard.press('/');
    await page.locator('input[name="q"]:focus').waitFor();
    await page.keyboard.type('zurich');
    await page.getByRole('option', { name: /snow in Zurich/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/markets\?q=zurich$/);
    await page.getByText('1 question', { exact: true }).waitFor();
  });

  /** The addresses of the streams that the page requests from now on. */
  function requestedStreams(page: Page): string[] {
    const requested: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/console/stream/')) requested.push(request.url());
    });
    return requested;
  }

  test('the table has one stream after several filters and a hidden page', async () => {
    const page = await desk.context.newPage();
    await page.goto(`${desk.api.url}/markets`);
    for (const category of ['Science', 'Economics', 'Games', 'Science']) {
      await page.getByLabel('Category').selectOption(category);
      await page.waitForURL(new RegExp(`category=${category}`));
      await page.locator(GOOD).waitFor();
    }
    const requested = requestedStreams(page);
    await hide(page, true);
    await page.getByText('paused while the page is hidden').waitFor();
    await hide(page, false);
    await page.locator(GOOD).waitFor();
    expect(requested).toHaveLength(1);
    await page.close();
  });

  test('a filter ends the former stream also while the page asks for the reason of its end', async () => {
    const page = await desk.context.newPage();
    await page.clock.install();
    await page.goto(`${desk.api.url}/markets`);
    await page.locator(GOOD).waitFor();
    const held: Route[] = [];
    await page.route('**/console/stream/**', (route) =>
      asksForReason(route.request()) ? void held.push(route) : route.fallback(),
    );
    await page.route('**/console/stream/**', (route) => route.fulfill({ status: 503 }), { times: 1 });
    const asked = page.waitForRequest(asksForReason);
    await page.getByLabel('Category').selectOption('Economics');
    await asked;
    await page.getByLabel('Category').selectOption('Science');
    await page.locator(GOOD).waitFor();
    const requested = requestedStreams(page);
    await page.unroute('**/console/stream/**');
    // The page may have cancelled the request.
    for (const each of held) await each.continue().catch(() => undefined);
    // A stream that the page still wants opens again some seconds after this answer.
    const isAnswered = `fetch('/health/live').then((answer) => answer.text())`;
    await page.evaluate(isAnswered);
    await page.clock.fastForward(10_000);
    await page.evaluate(isAnswered);
    expect(requested).toEqual([]);
    await page.close();
  });

  test('the table works without scripts', async () => {
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}/markets`);
    await page.getByLabel('Category').selectOption('Games');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await page.locator('a[data-row]').allTextContents()).toEqual(['Who wins the chess final?']);
    await page.getByText('All markets').click();
    await page.locator('.members').getByRole('link', { name: 'Dirk' }).click();
    await page.waitForURL(new RegExp(`/markets/polymarket/${desk.world.siblings[3]?.marketId}`));
  });

  test('an open row follows all of its markets, and stays open when the table is read again', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}/markets`);
    await page.locator(GOOD).waitFor();
    const dirk = desk.world.siblings[3];
    const id = dirk?.outcomes[0]?.outcomeId;
    const followed = page.waitForRequest(
      (request) => request.url().includes('/console/stream/') && request.url().includes(dirk?.marketId ?? ''),
    );
    await page.getByText('All markets').click();
    await followed;
    await page.locator(GOOD).waitFor();
    const price = (text: string) => [
      {
        kind: 'price',
        venue: 'polymarket',
        marketId: dirk?.marketId ?? '',
        outcomeId: id ?? '',
        body: { as_of: Math.floor(Date.now() / 1_000), price: text },
      } as const,
    ];
    await desk.journal.append(price('0.061'));
    await page.locator(`.members [data-price="${id}"]`, { hasText: '6.1 %' }).waitFor();
    const anna = desk.world.siblings[0]?.outcomes[0]?.outcomeId;
    // Among the leaders, and in the open list.
    expect(await page.locator(`[data-price="${anna}"]`).count()).toBe(2);
  });
}
