import { describe, expect, it } from 'vitest';
import { createApiKey } from '../../../../src/store/accounts/accounts.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';
import { type ConsoleClient, signIn, trySignIn } from './console-client.ts';

const api = useTestApi({ console: {} });

/** A browser that keeps the cookie of the first steps. */
function withSteps(browser: ConsoleClient) {
  let steps = '';
  return {
    steps: () => steps,
    async page(path: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
      const headers = { ...AS_BROWSER, Origin: api.url, ...init.headers, Cookie: `${browser.cookie}; ${steps}` };
      const answer = await api.call(path, { redirect: 'manual', ...init, headers });
      const set = answer.headers.getSetCookie().find((line) => line.startsWith('oddswire_first_steps='));
      if (set !== undefined) steps = set.split(';')[0] ?? '';
      return answer;
    },
    /** The words of each step: `to do` or `done`. */
    async states() {
      const { text } = await this.page('/start');
      return [...text.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, title = '']) => textOf(title).replace(/\s+/g, ' ').trim());
    },
    async first() {
      return (await this.page('/')).headers.get('location');
    },
  };
}

const TO_DO = ['Look at a market to do', 'Make a webhook, or listen to do', 'Set an alert to do'];

async function anAlert(browser: ConsoleClient): Promise<void> {
  const { outcomes } = await aStoredMarket(api.db);
  const fields = { tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'above', price: '0.25' };
  expect((await browser.post('/alerts', fields)).status).toBe(303);
}

const aWebhook = { url: 'https://hooks.example.com/x', events: ['price_alert'] };

describe('the first steps', () => {
  it('are the first page of an empty account, and tick off from its rows and from a market that the browser opened', async () => {
    const client = await signIn(api);
    const browser = withSteps(client);
    expect((await trySignIn(api, client.key)).headers.get('location')).toBe('/start');
    expect(await browser.states()).toEqual(TO_DO);
    const { marketId } = await aStoredMarket(api.db);
    await browser.page('/markets/polymarket/none');
    expect(await browser.states()).toEqual(TO_DO);
    expect((await browser.page(`/markets/polymarket/${marketId}`)).status).toBe(200);
    expect(await browser.states()).toEqual(['Look at a market done', ...TO_DO.slice(1)]);
    await anAlert(client);
    expect(await browser.states()).toEqual([
      'Look at a market done',
      'Make a webhook, or listen to do',
      'Set an alert done',
    ]);
    expect(await browser.first()).toBe('/start');
    const parts = JSON.parse((await browser.page('/console/data/start.json')).text) as Record<string, string>;
    expect(textOf(parts['state'] ?? '')).toBe('2 of 3 done');
    await client.account('POST', '/v1/webhooks', aWebhook);
    expect(textOf((await browser.page('/start')).text)).toContain('All three steps are done.');
    expect(await browser.first()).toBe('/markets');
  });

  it('count a program that follows the events of the account, and not the page Live', async () => {
    const client = await signIn(api);
    const browser = withSteps(client);
    expect(await browser.states()).toEqual(TO_DO);
    for (const [path, headers, state] of [
      ['/console/stream/events', { Cookie: client.cookie }, 'Make a webhook, or listen to do'],
      ['/v1/events/stream', { 'X-API-Key': client.key }, 'Make a webhook, or listen done'],
    ] as const) {
      const stream = await fetch(`${api.url}${path}`, { headers });
      expect(stream.status).toBe(200);
      await stream.body?.cancel();
      expect(await browser.states()).toContain(state);
    }
  });

  it('do not return after the user skipped them, also in an empty account', async () => {
    const client = await signIn(api);
    const browser = withSteps(client);
    expect(await browser.states()).toEqual(TO_DO);
    const body = new URLSearchParams({ csrf: client.csrf });
    const skipped = await browser.page('/start/skip', { method: 'POST', body });
    expect([skipped.status, skipped.headers.get('location')]).toEqual([303, '/markets']);
    expect(await browser.first()).toBe('/markets');
    const { marketId } = await aStoredMarket(api.db);
    await browser.page(`/markets/polymarket/${marketId}`);
    expect(await browser.first()).toBe('/markets');
    const forged = await browser.page('/start/skip', { method: 'POST', body: new URLSearchParams({ csrf: 'x' }) });
    expect(forged.status).toBe(403);
  });

  it('are not the first page of an account in use, of a key without their scopes, or of the cookie of another account', async () => {
    const [used, reader, other] = [await signIn(api), await signIn(api, ['markets:read']), await signIn(api)];
    await used.account('POST', '/v1/webhooks', aWebhook);
    expect(await withSteps(used).first()).toBe('/markets');
    expect(await withSteps(reader).first()).toBe('/markets');
    const first = withSteps(used);
    await first.page('/start');
    expect(await first.first()).toBe('/start');
    const Cookie = `${other.cookie}; ${first.steps().replace('begun', 'over')}`;
    const answer = await api.call('/', { redirect: 'manual', headers: { ...AS_BROWSER, Cookie } });
    expect(answer.headers.get('location')).toBe('/start');
  });

  it('belong to the account of the session: those of a stranger stay open', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    await anAlert(browser);
    const { key } = await createApiKey(api.db, { accountName: 'first-steps-other', name: 'k', scopes: ['webhooks'] });
    const stream = await fetch(`${api.url}/v1/events/stream`, { headers: { 'X-API-Key': key } });
    await stream.body?.cancel();
    expect(await withSteps(stranger).states()).toEqual(TO_DO);
    expect((await api.call('/start', { redirect: 'manual', headers: AS_BROWSER })).headers.get('location')).toBe(
      '/?next=%2Fstart',
    );
  });
});
