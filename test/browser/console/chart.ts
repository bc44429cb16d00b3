import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { readCandles } from '../../../src/store/series/reads.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsoleDesk, DRAWN } from '../console-desk.ts';
import { keepPicture, WIDE } from '../open-page.ts';

const PRICES = sql('test_chart_prices', 'SELECT ts::float8 AS ts, price FROM snapshot WHERE token_id = $1');
/** Of the width of the chart, where a test points. */
const PLACES = [0.75, 0.8, 0.85, 0.9, 0.93];

interface Point {
  time: number;
  value: number;
}
export function chartTests(desk: ConsoleDesk): void {
  async function openChart(kind: 'line' | 'candle'): Promise<Page> {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}${desk.marketPath()}?chart=${kind}`);
    await page.locator(DRAWN).waitFor();
    return page;
  }
  /** Moves the mouse to a place of the plot, and returns the text above the chart. */
  async function pointAt(page: Page, place: number): Promise<string> {
    const plot = await page.locator('#market-chart canvas').first().boundingBox();
    if (!plot) throw new TypeError('the chart has a plot');
    await page.mouse.move(plot.x + place * plot.width, plot.y + plot.height / 3);
    const legend = page.locator('[data-legend]');
    return eventually(
      async () => (await legend.textContent()) ?? '',
      (text) => text !== '',
      { everyMs: 20 },
    );
  }
  const secondsOf = (text: string) => Date.parse(`${text.slice(0, 16).replace(' ', 'T')}Z`) / 1_000;
  const yes = () => desk.world.market.outcomes[0]?.tokenId ?? 0n;

  describe('the chart of a market', () => {
    test('shows open, high, low, close and volume of the candle under the cursor', async () => {
      const stored = await readCandles(desk.api.db, yes(), 900, { start: 0, end: Math.ceil(Date.now() / 1_000) });
      const page = await openChart('candle');
      const times: number[] = [];
      for (const place of PLACES) {
        const text = await pointAt(page, place);
        const time = secondsOf(text);
        const candle = stored.find(({ bucket }) => bucket === time);
        if (!candle) throw new TypeError(`no candle of ${text}`);
        const [open, high, low, close] = [candle.open, candle.high, candle.low, candle.close].map(
          (price) => `${Number((Number(price) * 100).toFixed(2))} %`,
        );
        expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC /);
        expect(text.slice(17)).toBe(
          `UTC · O ${open} H ${high} L ${low} C ${close} · volume ${Number(candle.volume)} · not judged yet`,
        );
        times.push(time);
      }
      expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
      await page.mouse.move(0, 0);
      await page.locator('[data-legend]:empty').waitFor({ state: 'attached' });
    });

    test('shows the price of the line under the cursor', async () => {
      const page = await openChart('line');
      const text = await pointAt(page, 0.2);
      const outcome = desk.world.market.outcomes[0]?.outcomeId;
      const path = `/console/data${desk.marketPath()}/series.json?range=1d&outcome=${outcome}`;
      const { line } = (await (await page.request.get(`${desk.api.url}${path}`)).json()) as { line: Point[] };
      const point = line.find(({ time }) => time === secondsOf(text));
      expect(text).toContain(` UTC · ${(Number(point?.value) * 100).toFixed(1)} %`);
    });

    test('has an axis from 0 to 100 %, and zooms to its prices and back on demand', async () => {
      const page = await openChart('line');
      /** The price at a height of the plot, which a click enters into the form of an alert. */
      const priceAt = async (height: number) => {
        const plot = await page.locator('#market-chart canvas').first().boundingBox();
        await page.locator('#market-chart').click({ position: { x: 300, y: height * (plot?.height ?? 0) } });
        return Number(await page.getByRole('textbox', { name: 'Price' }).inputValue());
      };
      const prices = (await desk.api.db.query<{ price: string }>(PRICES, [yes()])).map(({ price }) => Number(price));
      const most = Math.max(...prices);
      expect(most).toBeLessThan(0.4);
      // The chart draws its axis in a later frame.
      await eventually(
        () => priceAt(0.1),
        (price) => price > 0.9,
      );
      const zoom = page.getByRole('button', { name: 'Zoom the axis' });
      expect(await zoom.getAttribute('aria-pressed')).toBe('false');
      await zoom.click();
      const back = page.getByRole('button', { name: 'Axis from 0 to 100 %' });
      expect(await back.getAttribute('aria-pressed')).toBe('true');
      await eventually(
        () => priceAt(0.1),
        (price) => price > Math.min(...prices) && price < most + 0.1,
      );
      await back.click();
      await eventually(
        () => priceAt(0.1),
        (price) => price > 0.9,
      );
    });

    test('breaks its line in a gap, and names the reason under the cursor', async () => {
      const page = await openChart('line');
      const bands = (await page.locator('#market-chart').getAttribute('data-bands')) ?? '';
      expect([...new Set(bands.split(' '))].toSorted()).toEqual(['gap', 'pending', 'unknown']);
      const texts = new Set<string>();
      for (let place = 0.1; place < 0.86; place += 0.02) texts.add(await pointAt(page, place));
      const inGap = [...texts].filter((text) => text.endsWith('not complete: the venue was not read'));
      expect(inGap.length).toBeGreaterThan(1);
      expect(inGap.some((text) => text.includes(' UTC · no value'))).toBe(true);
      expect([...texts].some((text) => / %.* · unknown: trades were not compared with the venue$/.test(text))).toBe(
        true,
      );
      await page.getByText('not proven complete in 2 times').click();
      await page.locator('.gap-list li', { hasText: 'the venue was not read' }).waitFor();
    });

    test('has a line of 30 days, whose candles are days', async () => {
      const page = await openChart('candle');
      const isRead = page.waitForResponse(/series\.json\?.*range=1m/);
      await page.getByRole('link', { name: '1m', exact: true }).click();
      const { interval } = (await (await isRead).json()) as { interval: string };
      expect([interval, new URL(page.url()).searchParams.get('range')]).toEqual(['1d', '1m']);
    });

    test('marks the firings of alerts, and opens the alert of a mark', async () => {
      const page = await openChart('line');
      await page.locator('#market-chart[data-firings="4"]').waitFor();
      await page.getByText('4 firings of your alerts in this range').click();
      const rows = page.getByRole('table', { name: 'Firings in this range, newest first' }).getByRole('row');
      expect(await rows.count()).toBe(5);
      const links = rows.getByRole('link', { name: 'Above 31 %' });
      expect(await links.first().getAttribute('href')).toBe(`/alerts/${desk.account.rule}`);
      // The newest firing is that of the first alert, a moment ago at 16 %: at the right end of the line.
      const plot = await page.locator('#market-chart canvas').first().boundingBox();
      if (!plot) throw new TypeError('the chart has a plot');
      const legend = page.locator('[data-legend]');
      let isFound = false;
      for (let x = plot.width - 4; x > 0.7 * plot.width && !isFound; x -= 3) {
        for (let share = 0.74; share < 0.9 && !isFound; share += 0.02) {
          await page.mouse.move(plot.x + x, plot.y + share * plot.height);
          isFound = /^fired .* · 16\.0 % · /.test((await legend.textContent()) ?? '');
        }
      }
      expect(isFound).toBe(true);
      await page.mouse.down();
      await page.mouse.up();
      await page.waitForURL(/\/alerts\//);
    });

    test('compares other markets of the event, whose choice stays in the address', async () => {
      const { page } = desk.tab;
      await page.setViewportSize(WIDE);
      await page.goto(`${desk.api.url}/markets/polymarket/${desk.world.siblings[0]?.marketId}`);
      await page.locator(DRAWN).waitFor();
      await page.evaluate('window.isSamePage = true');
      const fold = page.locator('.compare > summary');
      await fold.focus();
      await page.keyboard.press('Enter');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
      await page.locator('#market-chart[data-lines="2"]').waitFor();
      await page.getByRole('checkbox', { name: 'Carla' }).check();
      await page.locator('#market-chart[data-lines="3"]').waitFor();
      const names = await page.locator('.chart-legend li').allTextContents();
      expect(names.map((name) => name.replace(/\s+/g, ' ').trim())).toEqual([
        expect.stringMatching(/^Anna \d/),
        expect.stringMatching(/^Bert \d/),
        expect.stringMatching(/^Carla \d/),
      ]);
      const before = await page.locator('[data-line]').allTextContents();
      await pointAt(page, 0.2);
      expect(await page.locator('[data-line]').allTextContents()).not.toEqual(before);
      expect(new URL(page.url()).searchParams.getAll('compare')).toHaveLength(2);
      await page.goBack();
      await page.locator('#market-chart[data-lines="2"]').waitFor();
      expect(await page.evaluate('window.isSamePage')).toBe(true);
      await page.reload();
      await page.locator('#market-chart[data-lines="2"]').waitFor();
      const plain = await desk.tabAt(WIDE, false);
      await plain.goto(page.url());
      expect(await plain.locator('.line-chart .line').count()).toBe(2);
      await plain.locator('.compare > summary').click();
      await plain.getByRole('checkbox', { name: 'Dirk' }).check();
      await plain.locator('.compare button').click();
      expect(await plain.locator('.line-chart .line').count()).toBe(3);
    });

    test('of an event has the leading markets, ranges and a choice of lines', async () => {
      const { page } = desk.tab;
      await page.setViewportSize(WIDE);
      await page.goto(`${desk.api.url}/events/polymarket/chess-final?range=1w`);
      await page.locator('#market-chart[data-lines="4"]').waitFor();
      await page.getByRole('link', { name: '6h' }).click();
      await page.waitForURL(/range=6h/);
      await page.locator('.compare > summary').click();
      await page.getByRole('checkbox', { name: 'Bert' }).uncheck();
      await page.locator('#market-chart[data-lines="3"]').waitFor();
      expect(new URL(page.url()).searchParams.get('range')).toBe('6h');
    });

    test('is saved as a picture with its title, range and time', async () => {
      const page = await openChart('line');
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Picture' }).click();
      const download = await saved;
      expect(download.suggestedFilename()).toBe(`${desk.world.market.marketId}-1d.png`);
      const bytes = await readFile(await download.path());
      expect(bytes.subarray(1, 4).toString()).toBe('PNG');
      const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
      const plot = await page.locator('#market-chart').boundingBox();
      expect(width).toBe(Math.round(plot?.width ?? 0));
      // The caption stands above and below the chart.
      expect(height).toBeGreaterThan((plot?.height ?? 0) + 80);
      await keepPicture(bytes, 'chart-picture');
    });
  });
}
