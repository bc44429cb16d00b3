import { expect, test } from 'vitest';
import { aDelivery } from '../../factories/deliveries.ts';
import { type ConsoleDesk, GOOD } from '../console-desk.ts';
import { accessibilityFaults, overflow, PHONE, photograph } from '../open-page.ts';

export function webhookTests(desk: ConsoleDesk): void {
  test('a webhook is created, tested and its delivery sent again', async () => {
    const { page } = desk.tab;
    await page.goto(`${desk.api.url}/webhooks`);
    await page.getByText('New webhook', { exact: true }).click();
    await page.getByLabel('Address of your receiver').fill('https://new.receiver.test/hook');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const secret = await page.locator('.secret').textContent();
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await page.getByRole('status').getByText('A test event is on its way.').waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.goto(`${desk.api.url}/webhooks/${desk.account.webhook.id}/deliveries/${desk.account.failed.id}`);
    await page.getByText('Send again…').click();
    await page.getByRole('button', { name: 'Send again', exact: true }).click();
    await page.getByRole('status').getByText('due again').waitFor();
    expect(desk.api.wakes).toContainEqual({ job: 'deliver-webhook', targets: [desk.account.webhook.pk] });
  });

  test.for([true, false])(
    'the options of a webhook are rejected and saved, with scripts: %s',
    async (javaScriptEnabled) => {
      const page = await desk.openPage({ viewport: PHONE, javaScriptEnabled });
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
      await page.close();
    },
  );

  test('the live page shows an event as it is made', async () => {
    const { page } = desk.tab;
    await page.goto(`${desk.api.url}/live`);
    await page.locator(GOOD).waitFor();
    const { eventId } = await aDelivery(desk.api.db, {
      accountId: desk.account.accountId,
      subscriptionPk: desk.account.webhook.pk,
    });
    await page.locator('#arrivals', { hasText: eventId }).waitFor();
    await page.getByText('1 new event').waitFor();
  });
}
