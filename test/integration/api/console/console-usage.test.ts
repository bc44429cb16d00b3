import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { openSse } from '../../../support/sse.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const api = useTestApi({ console: {}, onRequest: ({ route }) => routes.push(route) });
const routes: string[] = [];

/** The texts of the cells of a row of a page. */
function rowOf(page: string, name: string): string[] {
  const row = page.split('<tr role="row">').find((each) => each.includes(`"text">${name}<`)) ?? '';
  return row.split('</t').map((cell) => cell.replaceAll(/<[^>]*>|^[hd]>/g, '').trim());
}

async function create(browser: ConsoleClient, fields: Record<string, string>, scopes: readonly string[]) {
  const form = new URLSearchParams({ csrf: browser.csrf, once: newId('req'), ...fields });
  for (const scope of scopes) form.append('scopes', scope);
  return api.call('/usage/keys', {
    method: 'POST',
    redirect: 'manual',
    headers: { ...AS_BROWSER, Origin: api.url, Cookie: browser.cookie },
    body: form,
  });
}

it('a page counts as one request in the limits and the metrics, however many routes it calls', async () => {
  const browser = await signIn(api);
  const { accountId } = browser;
  const usedBefore = api.deps.limits.look('requests', accountId, null)?.remaining ?? 0;
  routes.length = 0;
  await browser.page('/alerts');
  await expect.poll(() => routes).toEqual(['/alerts']);
  expect(usedBefore - (api.deps.limits.look('requests', accountId, null)?.remaining ?? 0)).toBe(1);
});

describe('the usage page', () => {
  it('shows the limits of the account and its use of them', async () => {
    const browser = await signIn(api);
    const { accountId } = browser;
    await aSubscription(api.db, { id: newId('wh'), accountId, url: 'https://hooks.test/x', events: ['price_alert'] });
    await browser.account('POST', '/v1/alerts', { tokenMint: 't', condition: 'above', price: 0.5 });
    await browser.account('POST', '/v1/alerts', { condition: 'trade', notional: 5, scope: { venue: 'polymarket' } });
    const stream = await openSse(`${api.url}/v1/all/stream`, { Authorization: `Bearer ${browser.key}` });
    const { text } = await browser.page('/usage');
    expect(rowOf(text, 'Webhooks')).toContain('1 of 1,000');
    expect(rowOf(text, 'Active alerts')).toContain('2 of 10,000');
    expect(rowOf(text, 'Active alerts on a venue, category or search')).toContain('1 of 50');
    expect(rowOf(text, 'Active keys')).toContain('1 of 1,000');
    expect(rowOf(text, 'Open streams')).toContain('1 of 100');
    const requests = rowOf(text, 'Requests, this minute').join(' ');
    const remaining = Number(/([\d,]+) remain for/.exec(requests)?.[1]?.replaceAll(',', ''));
    const used = Number(/(\d+) of 1,000,000/.exec(requests)?.[1]);
    expect(used + remaining).toBe(1_000_000);
    // Reading the page counts as one request, and the look at the limit as none.
    const again = rowOf((await browser.page('/usage')).text, 'Requests, this minute').join(' ');
    expect(again).toContain(`${(remaining - 1).toLocaleString('en-US')} remain`);
    await stream.close();
  });

  it('has the address /account of earlier releases', async () => {
    const browser = await signIn(api);
    const answer = await browser.page('/account');
    expect([answer.status, answer.headers.get('location')]).toEqual([308, '/usage']);
  });

  it('shows no keys to a session without the scope', async () => {
    const browser = await signIn(api, ['alerts']);
    const { text } = await browser.page('/usage');
    expect(text).toContain('does not have the scope <code>keys</code>');
    expect(text).not.toContain('New key');
    expect((await create(browser, { name: 'x' }, ['alerts'])).status).toBe(403);
  });
});

describe('keys on the usage page', () => {
  it('are shown once, at their creation, and can be revoked', async () => {
    const browser = await signIn(api);
    const made = await create(browser, { name: ' bot ', expiresAt: '2999-01-31' }, ['alerts']);
    const key = /ow_live_[0-9A-Za-z_]+/.exec(made.text)?.[0] ?? '';
    expect(made.status).toBe(200);
    expect((await api.call('/v1/alerts', { headers: { 'X-API-Key': key } })).status).toBe(200);
    const { body } = await browser.account('GET', '/v1/keys');
    const [first] = body.data as { id: string; name: string; expiresAt: string }[];
    expect(first).toMatchObject({ name: 'bot', expiresAt: '2999-02-01T00:00:00.000Z' });
    const page = await browser.page('/usage');
    expect(page.text).toContain(`<code>${first?.id}</code>`);
    expect(page.text).not.toContain(key);
    const revoked = await browser.post(`/usage/keys/${first?.id}/revoke`);
    expect([revoked.status, revoked.headers.get('location')]).toEqual([303, '/usage']);
    expect((await browser.page('/usage')).text).toContain('The key “bot” is revoked.');
    expect((await browser.page('/usage?status=revoked')).text).toContain(`<code>${first?.id}</code>`);
  });

  it('are rejected at the fields, with the values that were entered', async () => {
    const browser = await signIn(api);
    const answer = await create(browser, { name: 'x'.repeat(101), expiresAt: '2001-01-01' }, []);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(`value="${'x'.repeat(101)}"`);
    expect(answer.text).toMatch(/id="field-name-problem">must have 1 to 100 characters/);
    expect(answer.text).toMatch(/id="field-scopes-problem">must have at least one scope/);
    const late = await create(browser, { name: 'x', expiresAt: '2001-01-01' }, ['alerts']);
    expect(late.text).toMatch(/id="field-expiresAt-problem">must be in the future/);
  });

  it('have links to their states on the page of a rejected form too', async () => {
    const browser = await signIn(api);
    const { text } = await create(browser, { name: '' }, ['alerts']);
    const links = [...text.matchAll(/href="(\/usage[^"]*)"/g)].map(([, path = '']) => path.replaceAll('&#61;', '='));
    expect(links).toEqual(expect.arrayContaining(['/usage?status=expired', '/usage?status=revoked']));
    for (const path of links) expect([path, (await browser.page(path)).status]).toEqual([path, 200]);
  });

  it('sign the browser out when it revokes the key of its session', async () => {
    const browser = await signIn(api);
    const { body } = await browser.account('GET', '/v1/keys');
    const [own] = body.data as { id: string }[];
    await browser.post(`/usage/keys/${own?.id}/revoke`);
    const after = await browser.page('/usage');
    expect([after.status, after.headers.get('location')]).toEqual([303, '/?next=%2Fusage']);
  });
});
