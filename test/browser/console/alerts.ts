import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ConsoleDesk, DRAWN } from '../console-desk.ts';
import { accessibilityFaults, expectSound, overflow, PHONE, photograph, smallTargets, WIDE } from '../open-page.ts';

export function alertTests(desk: ConsoleDesk): void {
  test.for([true, false])(
    'a rule is tried on the past before it is set, with scripts: %s',
    async (javaScriptEnabled) => {
      const page = await desk.tabAt(WIDE, javaScriptEnabled);
      await page.goto(
        `${desk.api.url}/alerts/new?tokenMint=${desk.world.market.outcomes[0]?.outcomeId}&condition=crosses_above`,
      );
      await page.locator('#field-price').fill('0.21');
      await page.getByLabel('fire again').check();
      await page.getByLabel('Cool-down', { exact: true }).fill('15 min');
      await page.getByRole('button', { name: 'Try it on the past' }).click();
      await page.getByText('It would have fired twice').waitFor();
      await page.getByRole('table', { name: 'Firings on the past' }).waitFor();
      const fired = await page.getByRole('table', { name: 'Firings on the past' }).getByRole('rowheader').count();
      expect(await page.locator('.trial-chart .mark').count()).toBe(fired);
      for (const viewport of [WIDE, PHONE]) {
        await page.setViewportSize(viewport);
        await photograph(page, `console-trial-${viewport.width}-${javaScriptEnabled}`);
        expect(await overflow(page)).toBe(0);
        // The checker needs timers of the page.
        if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
      }
      expect(await page.getByLabel('Cool-down', { exact: true }).inputValue()).toBe('15 min');
      await page.getByRole('button', { name: 'Set alert' }).click();
      await page.getByRole('status').getByText('it fires when it rises to 21 %').waitFor();
    },
  );

  test.for([true, false])('an alert on markets is set and edited, with scripts: %s', async (javaScriptEnabled) => {
    const page = await desk.tabAt(WIDE, javaScriptEnabled);
    await page.goto(`${desk.api.url}/alerts`);
    await page.getByRole('link', { name: 'New alert' }).click();
    await page.getByLabel('Condition').selectOption('volume');
    await page.getByLabel('all outcomes of markets').check();
    expect(await page.getByLabel('Move', { exact: true }).isVisible()).toBe(false);
    await page.getByLabel('Words').fill('earthquake');
    await page.getByLabel('Amount').fill('a lot');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByText('Amount: must be a number').waitFor();
    expect(await page.getByLabel('Words').inputValue()).toBe('earthquake');
    expect(await page.getByLabel('Amount').getAttribute('aria-invalid')).toBe('true');
    await photograph(page, `console-alert-rejected-${javaScriptEnabled}`);
    // The checker needs timers of the page.
    if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByLabel('Amount').fill('5000');
    await page.getByLabel('Window', { exact: true }).fill('1 h');
    await page.getByLabel('fire again').check();
    await page.getByLabel('Cool-down', { exact: true }).fill('15 min');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires when 5,000 or more is traded within 1 h.').waitFor();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Amount').fill('6000');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('status').getByText('The alert is changed.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('status').getByText('The alert is paused.').waitFor();
  });

  /** Counts the presses of the pointer on a page, over its navigations. */
  async function countPresses(page: Page): Promise<() => Promise<number>> {
    await page.addInitScript(`addEventListener('click', ({ isTrusted, detail }) => {
      if (isTrusted && detail > 0) sessionStorage.presses = Number(sessionStorage.presses ?? 0) + 1;
    }, true)`);
    return async () => Number(await page.evaluate('sessionStorage.presses ?? 0'));
  }

  test('a price of a market becomes an alert with two presses, from its chart, book, trades and headline', async () => {
    const page = await desk.openPage({ viewport: WIDE });
    const presses = await countPresses(page);
    const places = [
      ['#market-chart', undefined],
      ['[data-part="book"] tbody tr:has-text("0.230") [data-label^="Price"]', '0.23'],
      ['[data-part="trades"] tbody tr:has-text("Yes"):has-text("0.21") [data-label^="Price"] >> nth=0', '0.21'],
      ['.headline [data-price]', undefined],
    ] as const;
    for (const [index, [place, price]] of places.entries()) {
      await page.goto(`${desk.api.url}${desk.marketPath()}`);
      await page.locator(DRAWN).waitFor();
      await page.locator(place).click(place === '#market-chart' ? { position: { x: 300, y: 120 } } : {});
      const field = page.getByRole('textbox', { name: 'Price' });
      await field.waitFor();
      if (price !== undefined) expect(await field.inputValue()).toBe(price);
      await page.locator('[data-sentence]', { hasText: /reaches [\d.]+ % or (more|less)/ }).waitFor();
      await page.getByRole('button', { name: 'Set alert' }).click();
      await page.getByRole('status').getByText('The alert is set').waitFor();
      expect(await presses()).toBe(2 * (index + 1));
    }
    await page.close();
  });

  test('an alert is chosen by words and set with three presses, and shows its last week while its price is typed', async () => {
    const page = await desk.openPage({ viewport: WIDE });
    const presses = await countPresses(page);
    const running = { now: 0, most: 0 };
    await page.route('**/alerts/new', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      running.now += 1;
      running.most = Math.max(running.most, running.now);
      await route.continue();
    });
    page.on('requestfinished', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/alerts/new')) running.now -= 1;
    });
    await page.goto(`${desk.api.url}/alerts`);
    await page.getByRole('link', { name: 'New alert' }).click();
    await page.getByRole('combobox', { name: 'Outcome', exact: true }).focus();
    await page.keyboard.type('magnitude earthquake');
    await page.getByRole('option', { name: /^Yes/ }).first().click();
    await page.locator('.chosen', { hasText: 'Yes of Will a magnitude 8 earthquake' }).waitFor();
    const price = page.getByRole('textbox', { name: 'Price', exact: true });
    await eventually(
      () => price.inputValue(),
      (text) => /^0\.2\d$/.test(text),
    );
    const sentence = page.locator('[data-sentence]');
    await price.fill('');
    await price.pressSequentially('0.2111', { delay: 90 });
    await sentence.getByText('reaches 21.11 % or more, oddswire sends one event to the default webhook').waitFor();
    await page.locator('[data-trial]').getByText('It would have fired once').waitFor();
    expect(await page.locator('.trial-chart .mark').count()).toBe(1);
    expect(running.most).toBe(1);
    await expectSound(page, 'console-alert-words');
    await page.setViewportSize(PHONE);
    await expectSound(page, 'console-alert-words-phone');
    expect(await smallTargets(page)).toEqual([]);
    await page.setViewportSize(WIDE);
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires once, when it reaches 21.11 % or more').waitFor();
    expect(await presses()).toBe(3);
    await page.close();
  });

  test('an alert is chosen and set with the keyboard alone, and a pasted id is an outcome', async () => {
    const page = await desk.tabAt(WIDE);
    await page.goto(`${desk.api.url}/markets?q=rates`);
    await page.keyboard.press('j');
    await page.keyboard.press('a');
    await page.waitForURL(/alerts\/new\?tokenMint=/);
    await page.locator('.chosen', { hasText: 'cut rates' }).waitFor();
    await page.getByRole('button', { name: 'Change the outcome' }).focus();
    await page.keyboard.press('Enter');
    const search = page.getByRole('combobox', { name: 'Outcome', exact: true });
    await search.waitFor();
    expect(await page.evaluate('document.activeElement.name')).toBe('find.tokenMint');
    await page.keyboard.type('snow');
    await page.getByRole('option', { name: /^No/ }).first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('.chosen', { hasText: 'No of Will it snow in Zurich' }).waitFor();
    await page.getByRole('button', { name: 'Change the outcome' }).click();
    await search.fill(desk.world.market.outcomes[0]?.outcomeId ?? '');
    await page.locator('.chosen', { hasText: 'Yes of Will a magnitude 8 earthquake' }).waitFor();
    await page.getByRole('textbox', { name: 'Price', exact: true }).fill('0.9');
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('it fires once, when it reaches 90 % or more').waitFor();
  });

  test('without scripts an alert is chosen from the matches of words, with everything that was entered', async () => {
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}/alerts/new`);
    await page.getByRole('textbox', { name: 'Price', exact: true }).fill('0.93');
    await page.getByLabel('Outcome', { exact: true }).fill('snow');
    await page.getByRole('button', { name: 'Search for the outcome', exact: true }).click();
    await page.getByText('2 matches').waitFor();
    await photograph(page, 'console-alert-matches-without-scripts');
    expect(await overflow(page)).toBe(0);
    expect(await page.getByRole('textbox', { name: 'Price', exact: true }).inputValue()).toBe('0.93');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByText('Outcome: choose one of the matches').waitFor();
    await page.getByRole('radio', { name: /No of Will it snow/ }).check();
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires once, when it reaches 93 % or more').waitFor();
  });

  test('a market or an event of a scope is chosen by words, and hostile titles stay text', async () => {
    const page = await desk.tabAt(WIDE);
    await page.goto(`${desk.api.url}/alerts/new?subject=scope&condition=trade&notional=500`);
    const search = page.getByRole('combobox', { name: 'Market or event' });
    await search.fill('chess final');
    await page
      .getByRole('option', { name: /Who wins the chess final/ })
      .first()
      .click();
    await page.locator('.chosen', { hasText: 'all markets of Who wins the chess final?' }).waitFor();
    await page
      .getByText('When one trade of any outcome of a market of the event “Who wins the chess final?”')
      .waitFor();
    await page.getByRole('button', { name: 'Change the market or event' }).click();
    await search.fill(desk.world.hostile.marketId);
    await page.locator('[name="condition"]').selectOption('resolution');
    await page.locator('.chosen', { hasText: 'the market Will' }).waitFor();
    expect(await page.title()).not.toBe('pwned');
    await photograph(page, 'console-alert-hostile');
  });
}
