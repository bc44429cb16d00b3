import { expect, test } from 'vitest';
import { SCOPES } from '../../../src/domain/values/api-key.ts';
import { issueSignInLink } from '../../../src/store/accounts/sign-in-links.ts';
import { ACCOUNT_NAME, type ConsoleDesk } from '../console-desk.ts';
import { accessibilityFaults, expectSound, PHONE, photograph, WIDE, watchedPage } from '../open-page.ts';

export function keyTests(desk: ConsoleDesk): void {
  test('a key is created, shown once and revoked', async () => {
    const { page } = desk.tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${desk.api.url}/usage`);
    await page.getByText('New key', { exact: true }).click();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('button', { name: 'Create key' }).dblclick();
    const key = await page.locator('.secret').textContent();
    expect(key).toMatch(/^ow_live_/);
    await photograph(page, 'console-new-key');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.reload();
    await page.getByText('The key was shown once, at its creation.').waitFor();
    expect(await page.content()).not.toContain(key);
    await photograph(page, 'console-new-key-again');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(key);
    await page
      .getByRole('row', { name: /laptop/ })
      .locator('summary')
      .click();
    await page.getByRole('button', { name: 'Revoke the key laptop' }).click();
    await page.getByRole('status').getByText('The key “laptop” is revoked.').waitFor();
  });

  test('a sign-in link shows a button, works once and then says so', async () => {
    const stranger = await desk.browser.newContext({ viewport: WIDE });
    const { page, problems } = await watchedPage(stranger, desk.api.url);
    const { token } = await desk.api.db.transaction((tx) =>
      issueSignInLink(tx, { accountName: ACCOUNT_NAME, scopes: SCOPES, issuedBy: 'alice' }, Date.now()),
    );
    const path = `${desk.api.url}/console/sign-in/${token}`;
    await page.goto(path);
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      await expectSound(page, `console-link-${viewport.width}`);
    }
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${desk.api.url}/markets`);
    expect(problems).toEqual([]);
    await page.goto(path);
    await page.getByText('This link was used, has expired, or is not complete.').waitFor();
    await photograph(page, 'console-link-used');
    expect(await accessibilityFaults(page)).toEqual([]);
    await stranger.close();
  });
}
