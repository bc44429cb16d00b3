import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { startTestApi, type TestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ console: {} });
});
afterAll(() => api?.close());

async function aWebhook(of: ConsoleClient): Promise<{ id: string; pk: bigint }> {
  const id = newId('wh');
  const { accountId } = of;
  return {
    id,
    pk: await aSubscription(api.db, { id, accountId, url: 'https://hooks.test/x', events: ['price_alert'] }),
  };
}

describe('alerts in the console', () => {
  it('are created once when a browser sends the form twice', async () => {
    const browser = await signIn(api);
    const { outcomes, marketId } = await aStoredMarket(api.db);
    const back = `/markets/polymarket/${marketId}`;
    const fields = { tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'above', price: '0.25', back };
    const answers = [await browser.post('/alerts', fields), await browser.post('/alerts', fields)];
    expect(answers.map(({ status, headers }) => [status, headers.get('location')])).toEqual([
      [303, back],
      [303, back],
    ]);
    const { body } = await browser.account('GET', '/v1/alerts');
    expect(body.data).toMatchObject([{ price: 0.25, condition: 'above', status: 'active' }]);
    await browser.post('/alerts', { ...fields, price: '0.3' });
    expect((await browser.account('GET', '/v1/alerts')).body.data).toHaveLength(2);
  });

  it('are rejected with the reasons of the API', async () => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db);
    const answer = await browser.post('/alerts', {
      tokenMint: outcomes[0]?.outcomeId ?? '',
      condition: 'above',
      price: 'much',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('price: must be a number');
  });

  it('show their market, its price and the distance, and belong to one account', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const { outcomes, marketId } = await aStoredMarket(api.db, { title: 'Will the owl hoot?' });
    const [yes] = outcomes;
    if (!yes) throw new TypeError('the market has outcomes');
    await aStoredPrice(api.db, yes.tokenId, { price: '0.2', asOf: new Date() });
    const made = await browser.post('/alerts', { tokenMint: yes.outcomeId, condition: 'above', price: '0.25' });
    const path = made.headers.get('location') ?? '';
    const list = (await browser.page('/alerts')).text;
    for (const text of ['Will the owl hoot?', `/markets/polymarket/${marketId}`, '25.0 %', '20.0 %', '+5.0 pt']) {
      expect(list).toContain(text);
    }
    expect((await stranger.page('/alerts')).text).not.toContain('owl');
    expect([(await browser.page(path)).status, (await stranger.page(path)).status]).toEqual([200, 404]);
    expect((await stranger.post(`${path}/delete`)).status).toBe(404);
    expect((await browser.post(`${path}/delete`)).status).toBe(303);
    expect((await browser.page(path)).status).toBe(404);
  });
});

describe('webhooks in the console', () => {
  it('are created with a secret that one page shows once', async () => {
    const browser = await signIn(api);
    const answer = await browser.post('/webhooks', { url: 'https://hooks.test/new', events: 'price_alert' });
    expect(answer.status).toBe(200);
    const secret = /whsec_[\w+/=]+/.exec(answer.text)?.[0] ?? '';
    expect(secret).not.toBe('');
    expect((await browser.page('/webhooks')).text).not.toContain(secret);
  });

  it('are paused, resumed, rotated, tested and deleted by their account only', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const { id } = await aWebhook(browser);
    const path = `/webhooks/${id}`;
    for (const [action, fields] of [
      ['status', { status: 'paused' }],
      ['status', { status: 'active' }],
      ['rotate', {}],
      ['test', { eventType: 'price_alert' }],
      ['recover', { since: new Date(Date.now() - 3_600_000).toISOString().slice(0, 16) }],
    ] as const) {
      expect((await stranger.post(`${path}/${action}`, fields)).status).toBe(404);
      expect((await browser.post(`${path}/${action}`, fields)).status).toBe(action === 'rotate' ? 200 : 303);
    }
    expect((await browser.page(path)).text).toContain('price_alert');
    expect((await browser.post(`${path}/delete`)).headers.get('location')).toBe('/webhooks');
    expect((await browser.page(path)).status).toBe(404);
  });

  it('send a delivery again, with a check of the key at the write', async () => {
    const browser = await signIn(api);
    const { id, pk } = await aWebhook(browser);
    const delivery = await aDelivery(api.db, { accountId: browser.accountId, subscriptionPk: pk, status: 'failed' });
    const path = `/webhooks/${id}/deliveries/${delivery.id}`;
    expect((await browser.page(path)).text).toContain(delivery.eventId);
    const limited = await signIn(api, ['alerts']);
    expect((await limited.post(`${path}/resend`)).status).toBe(403);
    expect((await browser.post(`${path}/resend`)).status).toBe(303);
    expect(api.wakes).toContainEqual({ job: 'deliver-webhook', targets: [pk] });
    expect((await browser.post(`${path}/resend`, { once: 'again' })).status).toBe(409);
  });
});
