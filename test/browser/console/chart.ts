import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { readCandles } from '../../../src/store/series/reads.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsoleDesk, DRAWN } from '../console-desk.ts';
import { WIDE } from '../open-page.ts';

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
  });
}
