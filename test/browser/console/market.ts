import { expect, test } from 'vitest';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { aStoredBook, storedTrades } from '../../factories/stored-series.ts';
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
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await photograph(page, 'console-market-without-scripts');
    expect(await page.locator('.line-chart').count()).toBe(1);
    await page.getByText(/candles of .* as a table/).click();
    expect(await page.getByRole('table', { name: 'Candles, newest first' }).getByRole('row').count()).toBe(31);
    await page.getByRole('link', { name: '1w' }).click();
    expect(new URL(page.url()).search).toBe('?range=1w');
    expect(await overflow(page)).toBe(0);
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

  test('a new trade flashes its row only, and the depth follows the book without a shift of the page', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    const market = await aStoredMarket(desk.api.db);
    const [yes] = market.outcomes;
    if (!yes) throw new TypeError('the market has outcomes');
    const old = new Date(Date.now() - 60_000);
    await aStoredBook(desk.api.db, yes.tokenId, {
      asOf: old,
      bids: [['0.19', '5']],
      asks: [
        ['0.2', '9'],
        ['0.3', '9'],
      ],
    });
    const trades = Array.from({ length: 12 }, (_, n) => ({ tradeId: `old ${n}`, price: '0.2', size: '4' }));
    await storedTrades(
      desk.api.db,
      trades.map((each) => ({ ...each, tokenId: yes.tokenId, at: old })),
    );
    await page.goto(`${desk.api.url}/markets/polymarket/${market.marketId}`);
    await page.locator(GOOD).waitFor();
    await page.evaluate(`window.shifts = []; new PerformanceObserver((list) => {
      for (const each of list.getEntries()) window.shifts.push(each.value);
    }).observe({ type: 'layout-shift' })`);
    const of = { venue: 'polymarket', marketId: market.marketId, outcomeId: yes.outcomeId };
    const at = new Date();
    const trade = { price: '0.222', size: '321' };
    await storedTrades(desk.api.db, [{ tokenId: yes.tokenId, at, tradeId: 'flash', ...trade }]);
    await aStoredBook(desk.api.db, yes.tokenId, {
      asOf: at,
      bids: [['0.19', '47.96']],
      asks: [
        ['0.2', '10.5'],
        ['0.3', '20.25'],
      ],
    });
    const timestamp = Math.floor(at.getTime() / 1_000);
    await desk.journal.append([{ ...of, kind: 'trade', body: { trade_id: 'flash', timestamp, ...trade } }]);
    await page.locator('[data-part="trades"] tr.flashed', { hasText: '0.222' }).waitFor();
    expect(await page.locator('[data-part="trades"] tr.flashed').count()).toBe(1);
    const depth = page.getByRole('group', { name: /^Depth of the book/ });
    await depth.locator('[data-asks="0.2 10.5,0.3 20.25"]').waitFor();
    expect(await page.evaluate('window.shifts')).toEqual([]);
    const said = page.locator('[data-depth]');
    await depth.focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await said.getByText('30.75 offered at 0.3 or better').waitFor();
    for (let n = 0; n < 2; n++) await page.keyboard.press('ArrowLeft');
    await said.getByText('47.96 bid at 0.19 or better').waitFor();
    const picture = await depth.locator('svg').boundingBox();
    if (!picture) throw new TypeError('the depth has a picture');
    await page.mouse.move(picture.x + picture.width - 2, picture.y + 5);
    await said.getByText('30.75 offered at 0.3 or better').waitFor();
    await depth.getByText('Depth as a table').click();
    await depth.getByRole('row', { name: /ask.*0\.30.*30\.75/ }).waitFor();
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
