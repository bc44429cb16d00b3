import { expect, test } from 'vitest';
import { storedTrades } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsoleDesk, DRAWN, GOOD, hide } from '../console-desk.ts';
import { expectSound, overflow, PHONE, photograph, WIDE } from '../open-page.ts';

export function marketTests(desk: ConsoleDesk): void {
  test('a market follows its price and its trades, and changes its range without a reload', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.locator(GOOD).waitFor();
    const [yes] = desk.world.market.outcomes;
    if (!yes) throw new TypeError('the market has outcomes');
    const of = { venue: 'polymarket', marketId: desk.world.market.marketId, outcomeId: yes.outcomeId };
    const now = Math.floor(Date.now() / 1_000);
    await storedTrades(desk.api.db, [
      { tokenId: yes.tokenId, at: new Date(), tradeId: 'live', price: '0.345', size: '77' },
    ]);
    await desk.journal.append([
      { ...of, kind: 'price', body: { as_of: now, price: '0.345' } },
      { ...of, kind: 'trade', body: { trade_id: 'live', timestamp: now, price: '0.345', size: '77' } },
    ]);
    await page.locator('.headline', { hasText: '34.5 %' }).waitFor();
    await page.locator('[data-part="trades"] tr', { hasText: '0.345' }).waitFor();
    expect(await page.title()).toMatch(/^34\.5 %/);
    await page.evaluate('window.isSamePage = true');
    await page.getByRole('link', { name: '1w' }).click();
    await page.waitForURL(/range=1w/);
    await page.getByRole('link', { name: 'candle' }).click();
    await page.waitForURL(/chart=candle/);
    await page.goBack();
    await page.goBack();
    expect(await page.getByRole('link', { name: '1d' }).getAttribute('aria-current')).toBe('true');
    expect(await page.evaluate('window.isSamePage')).toBe(true);
  });

  test('a hidden market page closes its stream, and opens it again', async () => {
    const { page } = desk.tab;
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.locator(GOOD).waitFor();
    await hide(page, true);
    await page.getByText('paused while the page is hidden').waitFor();
    await eventually(
      async () => desk.api.streams.usage().connections,
      (open) => open === 0,
    );
    await hide(page, false);
    await page.locator(GOOD).waitFor();
  });

  test('a market shows its data without scripts', async () => {
    const page = await desk.openPage({ viewport: PHONE, javaScriptEnabled: false });
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await photograph(page, 'console-market-without-scripts');
    expect(await page.locator('.line-chart').count()).toBe(1);
    await page.getByText('as a table').click();
    expect(await page.getByRole('table', { name: 'Candles, newest first' }).getByRole('row').count()).toBe(31);
    await page.getByRole('link', { name: '1w' }).click();
    expect(new URL(page.url()).search).toBe('?range=1w');
    expect(await overflow(page)).toBe(0);
    await page.close();
  });

  test('an order shows its cost and the levels that it takes, and the fault of its size', async () => {
    const { page } = desk.tab;
    for (const [name, viewport] of [
      ['wide', WIDE],
      ['phone', PHONE],
    ] as const) {
      await page.setViewportSize(viewport);
      await page.goto(`${desk.api.url}${desk.marketPath()}`);
      await page.locator(GOOD).waitFor();
      await page.getByRole('textbox', { name: 'Size' }).fill('1500');
      await page.getByRole('button', { name: 'Show the cost' }).click();
      await page.locator('[data-part="order"] .depth-chart').waitFor();
      expect(new URL(page.url()).searchParams.get('size')).toBe('1500');
      expect(await page.locator('[data-part="order"] .used').count()).toBe(1);
      await page.locator('[data-part="order"]').scrollIntoViewIfNeeded();
      await photograph(page, `console-market-order-${name}`);
      expect(await overflow(page)).toBe(0);
      await page.getByRole('textbox', { name: 'Size' }).fill('1.2345');
      await page.getByRole('button', { name: 'Show the cost' }).click();
      await page.locator('[data-part="order"] .problem').waitFor();
      await page.getByRole('status').filter({ hasText: 'refused' }).waitFor();
    }
  });

  test('the curl link of a market opens the request', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.locator('summary', { hasText: 'curl' }).click();
    await page.getByRole('link', { name: 'curl' }).click();
    await page.locator('#program-curl').waitFor({ state: 'visible' });
  });

  test('a click on the chart and two more set an alert', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.locator(DRAWN).waitFor();
    await page.locator('#market-chart').click({ position: { x: 300, y: 120 } });
    const price = page.getByRole('textbox', { name: 'Price' });
    expect(Number(await price.inputValue())).toBeGreaterThan(0.5);
    expect(await page.getByLabel('Condition').inputValue()).toBe('above');
    expect(await page.locator('[data-distance]').textContent()).toMatch(/points above the present price/);
    await page.getByText('It would not have fired').waitFor();
    await price.fill('0.875');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires once, when it reaches 87.5 % or more').waitFor();
    await page.locator('[data-alert="0.875"]').waitFor();
    await page.keyboard.press('a');
    expect(await page.evaluate('document.activeElement.name')).toBe('price');
  });

  test('an alert is tried on the past on the chart of its market, and again for another range', async () => {
    const { page, problems } = desk.tab;
    problems.length = 0;
    await page.setViewportSize(PHONE);
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.locator(DRAWN).waitFor();
    await page.keyboard.press('a');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('0.21');
    await page.getByRole('button', { name: 'Try it on the past' }).click();
    await page.locator('[data-trial]').getByText('It would have fired once').waitFor();
    for (const viewport of [PHONE, WIDE]) {
      await page.setViewportSize(viewport);
      await page.locator('#market-chart[data-marks="1"]').waitFor();
      await expectSound(page, `console-trial-market-${viewport.width}`);
    }
    await page.getByRole('link', { name: '1h', exact: true }).click();
    await page.getByText(/would( not)? have fired .* on 1\d observations/).waitFor();
    await page.getByRole('textbox', { name: 'Price' }).fill('7');
    await page.getByRole('button', { name: 'Try it on the past' }).click();
    await page.getByText(/^Price: .*at most 1/).waitFor();
    expect(await page.locator('#market-chart').getAttribute('data-marks')).toBe('0');
    expect(problems.filter((line) => !/ 400 /.test(line))).toEqual([]);
  });
}
