import { expect, test } from 'vitest';
import { SCOPES } from '../../../src/domain/values/api-key.ts';
import { createApiKey } from '../../../src/store/accounts/accounts.ts';
import { anAlert, aSubscription } from '../../factories/alerts.ts';
import type { ConsoleDesk } from '../console-desk.ts';
import { expectSoundForms, overflow, PHONE, photograph, WIDE, watchedPage } from '../open-page.ts';

export function startTests(desk: ConsoleDesk): void {
  async function newAccount(accountName: string) {
    return createApiKey(desk.api.db, { accountName, name: 'browser', scopes: SCOPES });
  }

  test('the first steps of an empty account tick off in place, say once that all are done, and do not return', async () => {
    const { key, accountId } = await newAccount('first-steps');
    const context = await desk.browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
    const { page, problems } = await watchedPage(context, desk.api.url);
    await page.goto(desk.api.url);
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/start`);
    await expectSoundForms(page, 'console-first-steps', () => page.reload());
    await page.getByText('0 of 3 done').waitFor();
    // The steps happen elsewhere: in another tab, and in programs.
    const other = await context.newPage();
    await other.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.getByText('1 of 3 done').waitFor();
    await photograph(page, 'console-first-steps-one');
    const webhook = { id: 'wh_first_steps', accountId, url: 'https://hooks.test/first', events: ['price_alert'] };
    await aSubscription(desk.api.db, webhook);
    await page.getByText('2 of 3 done').waitFor();
    const mint = desk.world.market.outcomes[0]?.outcomeId ?? '';
    await desk.api.db.transaction((tx) => anAlert(tx, { accountId, mint, condition: 'above', target: '0.99' }));
    await page.getByText('All three steps are done.').waitFor();
    await photograph(page, 'console-first-steps-done');
    await page.goto(desk.api.url);
    expect(new URL(page.url()).pathname).toBe('/markets');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('the first steps work without scripts: a reload ticks off, and the user skips them by the keyboard', async () => {
    const { key } = await newAccount('first-steps-plain');
    const context = await desk.browser.newContext({ viewport: PHONE, javaScriptEnabled: false });
    const { page } = await watchedPage(context, desk.api.url);
    await page.goto(desk.api.url);
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/start`);
    expect(await overflow(page)).toBe(0);
    await page.getByRole('link', { name: 'Open the markets' }).click();
    await page.goto(`${desk.api.url}${desk.marketPath()}`);
    await page.goto(desk.api.url);
    await page.getByText('1 of 3 done').waitFor();
    await photograph(page, 'console-first-steps-plain');
    await page.getByRole('button', { name: 'Do not show these steps again' }).press('Enter');
    await page.waitForURL(`${desk.api.url}/markets`);
    await page.goto(desk.api.url);
    expect(new URL(page.url()).pathname).toBe('/markets');
    await context.close();
  });
}
