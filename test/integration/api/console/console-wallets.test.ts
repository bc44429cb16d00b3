import { describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { aBalance, anAddress, aReadWallet, aTransaction } from '../../../factories/wallets.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const api = useTestApi({ console: {}, now: Date.now });
const POLLS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
const wordsOf = (page: string) => page.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');

describe('the page of wallets', () => {
  it('lists wallets with label, balance and last activity, and the quota', async () => {
    const browser = await signIn(api);
    const empty = wordsOf((await browser.page('/wallets')).text);
    expect(empty).toContain('No wallet is watched yet.');
    const { accountId } = browser;
    await aReadWallet(api.db, {
      accountId,
      label: 'the whale',
      reads: [[aBalance('a', '1')], [aBalance('a', '2'), aBalance('b', '3')]],
    });
    await browser.post('/wallets', { venue: 'polymarket', address: anAddress(), label: '' });
    const text = wordsOf((await browser.page('/wallets')).text);
    for (const part of ['the whale', '2 tokens', '1 h ago', 'not read yet', '2 of 1,000 wallets are watched.']) {
      expect(text).toContain(part);
    }
  });

  it('says that the quota is used up, and rejects another wallet with everything that was entered', async () => {
    const browser = await signIn(api);
    const name = (await browser.page('/usage')).text.match(/Account<\/dt><dd>([^<]+)/)?.[1] ?? '';
    await setAccountQuotas(api.db, name, { wallets: 0 });
    expect(wordsOf((await browser.page('/wallets')).text)).toContain('0 of 0 wallets are watched. used up');
    const { status, text } = await browser.post('/wallets', {
      venue: 'polymarket',
      address: anAddress(),
      label: 'mine',
    });
    expect([status, text]).toEqual([403, expect.stringContaining('value="mine"')]);
  });

  it('checks an address as it is entered, in the words of the API', async () => {
    const browser = await signIn(api);
    const check = async (venue: string, address: string) =>
      wordsOf(
        (await browser.page(`/console/wallets/address?${new URLSearchParams({ venue, address }).toString()}`)).text,
      );
    const right = anAddress();
    expect(await check('polymarket', '')).toContain('An address of Polymarket looks like 0x');
    expect(await check('polymarket', '0x<b>')).toMatch(/It must be 0x and 40 hexadecimal digits.* looks like 0x/);
    expect(await check('polymarket', right.toUpperCase().replace('0X', '0x'))).toContain(right);
    expect(await check('solana', right)).toContain('It must be the base58 text of 32 bytes');
    expect(await check('nowhere', right)).toContain('wallets of this venue cannot be watched');
  });

  it('needs the scope, and is in the navigation of a key that has it', async () => {
    const [stranger, own] = [await signIn(api, ['alerts']), await signIn(api, ['wallets'])];
    for (const path of ['/wallets', '/wallets/wal_1', '/console/wallets/address']) {
      expect([path, (await stranger.page(path)).status]).toEqual([path, 403]);
    }
    expect((await stranger.page('/alerts')).text).not.toContain('href="/wallets"');
    expect((await own.page('/usage')).text).toContain('href="/wallets"');
  });
});

describe('the page of a wallet', () => {
  const of = async (browser: Awaited<ReturnType<typeof signIn>>) =>
    aReadWallet(api.db, {
      accountId: browser.accountId,
      reads: [[aBalance('a', '1')], [aBalance('a', '2.00000000000000000001')]],
      transactions: [aTransaction({ transactionId: 'tx-1' })],
    });

  it('names the webhooks that get each type, or says that none does', async () => {
    const browser = await signIn(api);
    const wallet = await of(browser);
    const without = wordsOf((await browser.page(`/wallets/${wallet.id}`)).text);
    for (const type of ['transaction', 'balance_change']) {
      expect(without).toContain(`No active webhook lists ${type}, so these events are stored and sent nowhere.`);
    }
    const hook = { url: 'https://receiver.example.com/hook', events: ['transaction'] };
    const { id } = (await browser.account('POST', '/v1/webhooks', hook)).body.data as { id: string };
    const { text } = await browser.page(`/wallets/${wallet.id}`);
    expect(wordsOf(text)).toContain('transactions to https://receiver.example.com/hook');
    expect(text).toContain(`href="/webhooks/${id}"`);
    expect(wordsOf(text)).toContain('No active webhook lists balance_change');
  });

  it('shows balances, their steps with every digit, and the activity, to its account only', async () => {
    const [browser, stranger] = [await signIn(api, ['wallets']), await signIn(api)];
    const wallet = await of(browser);
    const { text } = await browser.page(`/wallets/${wallet.id}`);
    expect(text).toContain('aria-label="Balance of Yes: 1 change, from 1 to 2.00000000000000000001"');
    expect(text).toContain('title="2.00000000000000000001"');
    expect(wordsOf(text)).toMatch(/The data begin on \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
    expect(wordsOf(text)).toMatch(/trade buy ?tx-1/);
    expect(wordsOf(text)).toContain('Your key may not read the webhooks.');
    const balances = wordsOf((await browser.page(`/wallets/${wallet.id}?type=balance_change`)).text);
    expect(balances).not.toContain('tx-1');
    expect((await stranger.page(`/wallets/${wallet.id}`)).status).toBe(404);
    expect((await stranger.post(`/wallets/${wallet.id}/delete`)).status).toBe(404);
    const gone = await browser.post(`/wallets/${wallet.id}/delete`);
    expect([gone.status, gone.headers.get('location')]).toEqual([303, '/wallets']);
    expect((await browser.page(`/wallets/${wallet.id}`)).status).toBe(404);
  });
});

describe('the page of wallets of a server that reads none', () => {
  const other = useTestApi({ console: {}, venues: enabledVenues(['kalshi'], POLLS) });

  it('says how an operator enables them', async () => {
    const text = wordsOf((await (await signIn(other)).page('/wallets')).text);
    expect(text).toContain('This server reads the wallets of no venue');
    expect(text).toContain('SOLANA_RPC_URL');
  });
});
