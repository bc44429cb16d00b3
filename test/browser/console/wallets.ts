import { expect, test } from 'vitest';
import { anAddress } from '../../factories/wallets.ts';
import type { ConsoleDesk } from '../console-desk.ts';
import { expectSound, overflow, PHONE, photograph, smallTargets, WIDE } from '../open-page.ts';

export function walletTests(desk: ConsoleDesk): void {
  test('a wallet is watched with the keyboard alone, and its address is checked while it is typed', async () => {
    const page = await desk.tabAt(WIDE);
    await page.goto(`${desk.api.url}/wallets`);
    await page.keyboard.press('a');
    const address = page.getByLabel('Address');
    await address.focus();
    await page.keyboard.type('0x123');
    const check = page.locator('[data-check]');
    await check
      .getByText('It must be 0x and 40 hexadecimal digits: the proxy wallet that the profile shows.')
      .waitFor();
    await check.getByText('An address of Polymarket looks like 0x').waitFor();
    await expectSound(page, 'console-wallet-check');
    const right = anAddress();
    await address.fill(right.replace('0x', '0X'));
    await check.getByText('It must be').waitFor();
    await address.fill(right);
    await check.getByText('an address', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('The wallet is watched. Its events begin now.').waitFor();
    await page.getByText('The balances are not read yet.').waitFor();
    await page.locator('summary', { hasText: 'Stop watching' }).press('Enter');
    await page.getByRole('button', { name: 'Stop watching' }).press('Enter');
    await page.getByRole('status').getByText('The wallet is no longer watched.').waitFor();
    expect(await page.getByText(right.slice(0, 6)).count()).toBe(0);
  });

  test('a wallet shows balances, their steps and its activity on a phone without scripts', async () => {
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}/wallets/${desk.account.wallet}`);
    await photograph(page, 'console-wallet-without-scripts');
    expect(await overflow(page)).toBe(0);
    expect(await page.locator('.balance-chart .line').count()).toBe(2);
    expect(
      await page.getByRole('img', { name: /^Balance of Yes: 3 changes, from 100 to 1250000\.123456789$/ }).count(),
    ).toBe(1);
    const balances = page.getByRole('table', { name: 'Balances of the last complete read' });
    expect(await balances.getByRole('row').count()).toBe(3);
    await page.getByText('No active webhook lists balance_change').waitFor();
    await page.getByText(/transactions to https:\/\/chat\.example\.test/).waitFor();
    await page.getByRole('link', { name: 'Transactions' }).click();
    const events = page.getByRole('table', { name: 'Events of the wallet' });
    await events.waitFor();
    expect(await events.getByRole('rowheader').count()).toBe(2);
    await events.getByRole('link', { name: 'pending' }).first().click();
    await page.getByText('transaction', { exact: false }).first().waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/webhooks\/wh_[^/]+\/deliveries\//);
  });

  test('the targets of the form of a wallet are large on a phone, and a rejected address keeps everything', async () => {
    const page = await desk.tabAt(PHONE, false);
    await page.goto(`${desk.api.url}/wallets`);
    await page.getByText('Watch a wallet', { exact: true }).click();
    expect(await smallTargets(page)).toEqual([]);
    await page.getByLabel('Address').fill('<b>0x</b>');
    await page.getByLabel('Label').fill('mine');
    await page.getByRole('button', { name: 'Watch the wallet' }).click();
    await page.getByText('Address: must be 0x and 40 hexadecimal digits').waitFor();
    expect([await page.getByLabel('Address').inputValue(), await page.getByLabel('Label').inputValue()]).toEqual([
      '<b>0x</b>',
      'mine',
    ]);
  });
}
