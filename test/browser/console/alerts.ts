import { expect, test } from 'vitest';
import type { ConsoleDesk } from '../console-desk.ts';
import { accessibilityFaults, overflow, PHONE, photograph, WIDE } from '../open-page.ts';

export function alertTests(desk: ConsoleDesk): void {
  test.for([true, false])(
    'a rule is tried on the past before it is set, with scripts: %s',
    async (javaScriptEnabled) => {
      const page = await desk.openPage({ viewport: WIDE, javaScriptEnabled });
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
      await page.close();
    },
  );

  test.for([true, false])('an alert on markets is set and edited, with scripts: %s', async (javaScriptEnabled) => {
    const page = await desk.openPage({ viewport: WIDE, javaScriptEnabled });
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
    await page.close();
  });
}
