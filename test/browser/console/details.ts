import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { TestMarket } from '../../factories/stored-market.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsoleDesk, GOOD } from '../console-desk.ts';
import { WIDE } from '../open-page.ts';

export function detailTests(desk: ConsoleDesk): void {
  describe('a changed price', () => {
    const cellOf = ({ outcomes }: TestMarket) => `.leaders [data-price="${outcomes[0]?.outcomeId}"]`;
    /** Counts the flashes of a cell from now on. */
    const countFlashes = (page: Page, cell: string) =>
      page.evaluate(`window.flashes = 0;
        document.addEventListener('animationstart', ({ animationName, target }) => {
          if (animationName === 'flashed' && target.matches(${JSON.stringify(cell)})) window.flashes += 1;
        })`);
    /** Two frames after a change an animation has started, if there is one. */
    const flashesOf = (page: Page) =>
      page.evaluate<number>(`new Promise((resolve) => requestAnimationFrame(() =>
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(window.flashes))))))`);

    /** Publishes a price, and waits until the page shows it. */
    async function change(page: Page, market: TestMarket, price: string): Promise<void> {
      const { marketId, outcomes } = market;
      const of = { venue: 'polymarket', marketId, outcomeId: outcomes[0]?.outcomeId ?? '' };
      const as_of = Math.floor(Date.now() / 1_000);
      await desk.journal.append([{ ...of, kind: 'price', body: { as_of, price } }]);
      await page.locator(cellOf(market), { hasText: `${(Number(price) * 100).toFixed(1)} %` }).waitFor();
    }

    test.for([
      ['no-preference', 1, 2],
      ['reduce', 0, 0],
    ] as const)(
      'flashes its cell with the setting "%s" %d times, after a second change %d times',
      async ([reducedMotion, first, second]) => {
        const page = await desk.openPage({ viewport: WIDE, reducedMotion });
        await page.goto(`${desk.api.url}/markets`);
        await page.locator(GOOD).waitFor();
        const { market, siblings } = desk.world;
        const [other] = siblings;
        if (!other) throw new TypeError('the world has siblings');
        await change(page, market, '0.611');
        await flashesOf(page);
        await countFlashes(page, cellOf(market));
        await change(page, market, '0.622');
        expect(await flashesOf(page)).toBe(first);
        // The same price again is no change; the page has it when it has the later price of another market.
        await change(page, market, '0.622');
        await change(page, other, '0.211');
        expect(await flashesOf(page)).toBe(first);
        await change(page, market, '0.633');
        expect(await flashesOf(page)).toBe(second);
        await page.close();
      },
    );
  });

  describe('a copy button', () => {
    const clipboard = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()');
    async function openWithClipboard(path: string): Promise<Page> {
      const page = await desk.openPage({ viewport: WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
      await page.goto(`${desk.api.url}${path}`);
      return page;
    }

    test('copies the ids of a market and of its outcomes', async () => {
      const { marketId, outcomes } = desk.world.market;
      const page = await openWithClipboard(desk.marketPath());
      const button = page.getByRole('button', { name: 'Copy id' });
      await button.click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await clipboard(page)).toBe(marketId);
      await button.waitFor();
      for (const { outcomeId, label } of outcomes) {
        await page.getByRole('button', { name: `Copy the id of ${label}`, exact: true }).click();
        await eventually(
          () => clipboard(page),
          (text) => text === outcomeId,
        );
      }
      await page.close();
    });

    test('copies a program as it is shown', async () => {
      const page = await openWithClipboard(`/webhooks/${desk.account.webhook.id}`);
      for (const [label, start] of [
        ['curl', '# these deliveries\ncurl -H "X-API-Key: $KEY" "'],
        ['TypeScript', "import { createClient } from '@oddswire/client';\n"],
        ['JSON', '{\n  "success": true,'],
      ] as const) {
        const part = page.locator('.program details', { has: page.getByLabel(label, { exact: true }) });
        if (label !== 'curl') await part.locator('summary').click();
        await part.getByRole('button', { name: 'Copy' }).click();
        await part.getByRole('button', { name: 'Copied' }).waitFor();
        const copied = await clipboard(page);
        expect(copied).toBe(await part.locator('pre').textContent());
        expect(copied.startsWith(start)).toBe(true);
        if (label !== 'JSON') expect(copied).toContain(desk.api.url);
      }
      await page.close();
    });

    test('copies a new key', async () => {
      const page = await openWithClipboard('/usage');
      await page.getByText('New key', { exact: true }).click();
      await page.getByLabel('Name').fill('copied');
      await page.getByRole('button', { name: 'Create key' }).click();
      const key = await page.locator('.secret').textContent();
      await page.getByRole('button', { name: 'Copy' }).click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await clipboard(page)).toBe(key);
      await page.close();
    });
  });
}
