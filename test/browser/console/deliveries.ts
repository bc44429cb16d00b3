import { expect, test } from 'vitest';
import type { ConsoleDesk } from '../console-desk.ts';
import { accessibilityFaults, overflow, PHONE, WIDE } from '../open-page.ts';

export function deliveryTests(desk: ConsoleDesk): void {
  const deliveryPath = () => `/webhooks/${desk.account.webhook.id}/deliveries/${desk.account.retrying.id}`;

  test.for([true, false])(
    'deliveries are filtered and opened on a phone, with scripts: %s',
    async (javaScriptEnabled) => {
      const page = await desk.tabAt(PHONE, javaScriptEnabled);
      await page.goto(`${desk.api.url}/deliveries`);
      await page.getByLabel('Webhook').selectOption({ label: 'hooks.receiver.test/odds' });
      await page.getByLabel('Event type').selectOption('price_alert');
      await page.getByRole('button', { name: 'Show' }).click();
      await page.getByRole('navigation', { name: 'State' }).getByRole('link', { name: 'Pending' }).click();
      const { searchParams } = new URL(page.url());
      expect([searchParams.get('webhook'), searchParams.get('type'), searchParams.get('status')]).toEqual([
        desk.account.webhook.id,
        'price_alert',
        'pending',
      ]);
      expect(await overflow(page)).toBe(0);
      await page.locator(`a[href="${deliveryPath()}"]`).click();
      await page.getByText('Your receiver answered 503 in the last 3 attempts.').waitFor();
      await page
        .getByRole('cell', { name: 'retry-after' })
        .or(page.getByRole('rowheader', { name: 'retry-after' }))
        .first()
        .waitFor();
      await page.goBack();
      expect(new URL(page.url()).searchParams.get('status')).toBe('pending');
    },
  );

  test('a delivery is reached, read and left by keys alone', async () => {
    const page = await desk.tabAt(WIDE);
    await page.goto(`${desk.api.url}/deliveries?webhook=${desk.account.webhook.id}&status=pending`);
    // Other tests may have made newer ones.
    const rows = await page
      .locator('a[data-row]')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    for (let at = 0; at <= rows.indexOf(deliveryPath()); at += 1) await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**${deliveryPath()}`);
    const attempt = page.locator('#attempt-1 summary');
    await attempt.focus();
    await page.keyboard.press('Enter');
    await page.getByText('The receiver gave no answer').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  test('the body of an answer is copied as the page shows it', async () => {
    const page = await desk.openPage({ viewport: WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
    await page.goto(`${desk.api.url}${deliveryPath()}`);
    const card = page.locator('#attempt-4');
    await card.getByRole('button', { name: 'Copy' }).click();
    await card.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(
      '{\n  "error": "upstream is down",\n  "retry": true\n}',
    );
    await page.close();
  });

  test('the receiver of a webhook changes with the chosen signature, and only one language is open', async () => {
    const page = await desk.tabAt(WIDE);
    await page.goto(`${desk.api.url}/webhooks/${desk.account.webhook.id}`);
    await page.getByLabel('Receiver in TypeScript').getByText('verifyWebhook').first().waitFor();
    const part = page.locator('details[name="receiver"]', { has: page.getByLabel('Receiver in Go') });
    await part.locator('summary').click();
    await page.getByLabel('Receiver in Go').waitFor();
    expect(await page.locator('details[name="receiver"][open]').count()).toBe(1);
    await page.getByRole('link', { name: 'X-Webhook-Signature' }).click();
    await page.getByLabel('Receiver in TypeScript').getByText('x-webhook-signature').first().waitFor();
  });
}
