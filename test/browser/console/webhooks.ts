import { expect, test } from 'vitest';
import type { ConsoleDesk } from '../console-desk.ts';
import { accessibilityFaults, overflow, PHONE, photograph } from '../open-page.ts';

export function webhookTests(desk: ConsoleDesk): void {
  test.for([true, false])(
    'the options of a webhook are rejected and saved, with scripts: %s',
    async (javaScriptEnabled) => {
      const page = await desk.tabAt(PHONE, javaScriptEnabled);
      await page.goto(`${desk.api.url}/webhooks/${desk.account.webhook.id}`);
      await page.getByRole('link', { name: 'Edit' }).click();
      await page.getByLabel('events of one key').check();
      await page.getByLabel('Key of the order').selectOption('alert');
      await page.getByLabel('Condition 1: Field').fill('venue');
      await page.getByLabel('Condition 1: Value').fill('polymarket');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Condition 1, field: must be').waitFor();
      await photograph(page, `console-webhook-rejected-${javaScriptEnabled}`);
      if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
      expect(await overflow(page)).toBe(0);
      await page.getByLabel('Condition 1: Field').fill('data.venue');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').getByText('The webhook is changed.').waitFor();
      await page.getByText('is polymarket').waitFor();
    },
  );
}
