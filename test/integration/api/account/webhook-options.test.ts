import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const BASE = { url: 'https://receiver.example.com/hook', events: ['price_alert'] };

type Webhook = Record<string, unknown> & { id: string };

async function made(options: object): Promise<Webhook> {
  const answer = await client.account('POST', '/v1/webhooks', { ...BASE, ...options });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data as Webhook;
}
const read = async (id: string) => (await client.account('GET', `/v1/webhooks/${id}`)).body.data as Webhook;
async function changed(id: string, change: object): Promise<Webhook> {
  const answer = await client.account('PUT', `/v1/webhooks/${id}`, change);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Webhook;
}

describe('the option ordered', () => {
  it('is by market unless orderBy states another key, and can end', async () => {
    const { id } = await made({ ordered: true });
    expect(await read(id)).toMatchObject({ ordered: true, orderBy: 'market' });
    expect(await changed(id, { ordered: true, orderBy: 'wallet' })).toMatchObject({ orderBy: 'wallet' });
    expect(await changed(id, { url: 'https://other.example.com/' })).toMatchObject({ orderBy: 'wallet' });
    const ended = await changed(id, { ordered: false });
    expect([ended['ordered'], ended['orderBy']]).toEqual([undefined, undefined]);
  });
});

describe('the option filter', () => {
  it('is shown as given, and removed by null', async () => {
    const filter = [
      { field: 'data.venue', in: ['kalshi', 'manifold'] },
      { field: 'data.currentPrice', above: 0.5 },
      { field: 'data.marketId', exists: true },
    ];
    const { id } = await made({ filter });
    expect(await read(id)).toMatchObject({ filter });
    const other = [{ field: 'type', equal: 'price_alert' }];
    expect(await changed(id, { filter: other })).toMatchObject({ filter: other });
    expect((await changed(id, { filter: null }))['filter']).toBeUndefined();
  });
});

describe('the event trade', () => {
  const events = ['trade', 'price_alert'];
  const pinned = [{ field: 'data.marketId', equal: 'm-1' }];

  it.each([
    undefined,
    [{ field: 'data.venue', equal: 'kalshi' }],
    [{ field: 'data.marketId', exists: true }],
    [{ field: 'data.notional', above: 999.99 }],
    [{ field: 'data.notional', below: 5_000 }],
  ])('needs a filter that bounds it, unlike %j', async (filter) => {
    const answer = await client.account('POST', '/v1/webhooks', { ...BASE, events, filter });
    expect([answer.status, answer.body.error]).toMatchObject([
      400,
      { code: 'invalid_request', details: [{ path: 'filter', message: expect.stringContaining('data.marketId') }] },
    ]);
  });

  it.each([pinned, [{ field: 'data.eventId', in: ['e-1', 'e-2'] }], [{ field: 'data.notional', above: 1_000 }]])(
    'is accepted with the filter %j',
    async (...filter) => {
      expect(await made({ events, filter })).toMatchObject({ events, filter });
    },
  );

  it('needs the filter after each change', async () => {
    const plain = await made({});
    const bounded = await made({ events, filter: pinned });
    const refused = [
      await client.account('PUT', `/v1/webhooks/${plain.id}`, { events }),
      await client.account('PUT', `/v1/webhooks/${bounded.id}`, { filter: null }),
    ];
    expect(refused.map(({ status }) => status)).toEqual([400, 400]);
    expect(await read(plain.id)).toMatchObject({ events: ['price_alert'] });
    expect(await changed(plain.id, { events, filter: pinned })).toMatchObject({ events });
    expect(await changed(bounded.id, { events: ['price_alert'], filter: null })).toMatchObject({
      events: ['price_alert'],
    });
  });
});

const ROW = sql('test_row_of_webhook', 'SELECT to_jsonb(w) AS row FROM webhook_subscription w WHERE id = $1');
const rowOf = async (id: string) => (await api.db.query<{ row: Record<string, string> }>(ROW, [id]))[0]?.row ?? {};

describe('the option headers', () => {
  const headers = { Authorization: 'Bearer a-token-of-the-receiver', 'X-Team': 'odds' };

  it('is sealed for the webhook, and no answer shows a value', async () => {
    const answer = await client.account('POST', '/v1/webhooks', { ...BASE, headers });
    const { id } = answer.body.data as Webhook;
    const texts = [
      answer.text,
      (await client.account('GET', `/v1/webhooks/${id}`)).text,
      JSON.stringify(await rowOf(id)),
    ];
    for (const text of texts) expect(text).not.toContain('a-token-of-the-receiver');
    expect(await read(id)).toMatchObject({ headerNames: ['Authorization', 'X-Team'] });
    const sealed = (await rowOf(id))['sealed_headers'] ?? '';
    expect(JSON.parse(api.secretBox.open(sealed, `${id}:headers`))).toEqual(headers);
    expect(() => api.secretBox.open(sealed, id)).toThrow();
  });

  it.each([[null], [{}]])('is replaced as a whole, and removed by %j', async (none) => {
    const { id } = await made({ headers });
    expect(await changed(id, { headers: { 'X-Other': '1' } })).toMatchObject({ headerNames: ['X-Other'] });
    expect((await changed(id, { headers: none }))['headerNames']).toBeUndefined();
    expect((await rowOf(id))['sealed_headers']).toBeNull();
  });

  it('is erased with the webhook', async () => {
    const { id } = await made({ headers });
    await client.account('DELETE', `/v1/webhooks/${id}`);
    expect((await rowOf(id))['sealed_headers']).toBeNull();
  });

  it('never appears in the message of a rejection', async () => {
    const answer = await client.account('POST', '/v1/webhooks', { ...BASE, headers: { Host: 'a-secret-value' } });
    expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'headers.Host']);
    expect(answer.text).not.toContain('a-secret-value');
  });
});

describe('the options maxPerSecond and description', () => {
  it('are shown, changed, and removed by null', async () => {
    const { id } = await made({ maxPerSecond: 2.5, description: 'alerts of the desk' });
    expect(await read(id)).toMatchObject({ maxPerSecond: 2.5, description: 'alerts of the desk' });
    expect(await changed(id, { maxPerSecond: 10 })).toMatchObject({
      maxPerSecond: 10,
      description: 'alerts of the desk',
    });
    const without = await changed(id, { maxPerSecond: null, description: null });
    expect([without['maxPerSecond'], without['description']]).toEqual([undefined, undefined]);
  });
});

describe('the option format', () => {
  const url = 'https://discord.com/api/webhooks/12345/the-secret-token';

  it('seals the URL of a chat service, and shows its host only', async () => {
    const answer = await client.account('POST', '/v1/webhooks', { ...BASE, url, format: 'discord' });
    const { id } = answer.body.data as Webhook;
    expect(answer.body.data).toMatchObject({ url: 'https://discord.com/***', format: 'discord', maxPerSecond: 1 });
    const list = await client.account('GET', '/v1/webhooks');
    const texts = [answer.text, list.text, JSON.stringify(await read(id)), JSON.stringify(await rowOf(id))];
    for (const text of texts) expect(text).not.toContain('the-secret-token');
    expect(api.secretBox.open((await rowOf(id))['sealed_url'] ?? '', `${id}:url`)).toBe(url);
  });

  it('applies to a new URL, changes together with one, and ends with json', async () => {
    const { id } = await made({ url, format: 'discord' });
    const other = 'https://discord.com/api/webhooks/12345/another-token';
    expect(await changed(id, { url: other })).toMatchObject({ url: 'https://discord.com/***' });
    expect(api.secretBox.open((await rowOf(id))['sealed_url'] ?? '', `${id}:url`)).toBe(other);
    const telegram = 'https://api.telegram.org/bot1:token/sendMessage?chat_id=5';
    const shown = await changed(id, { url: telegram, format: 'telegram' });
    expect(shown).toMatchObject({ url: 'https://api.telegram.org/***', format: 'telegram' });
    for (const bad of ['https://api.telegram.org/bot1:token/sendMessage', 'https://api.telegram.org/***']) {
      const answer = await client.account('PUT', `/v1/webhooks/${id}`, { url: bad });
      expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'url']);
    }
    const plain = await changed(id, { url: BASE.url, format: 'json' });
    expect([plain['url'], plain['format']]).toEqual([BASE.url, undefined]);
    expect((await rowOf(id))['sealed_url']).toBeNull();
  });

  it('is erased with the webhook, URL included', async () => {
    const { id } = await made({ url, format: 'discord' });
    await client.account('DELETE', `/v1/webhooks/${id}`);
    expect((await rowOf(id))['sealed_url']).toBeNull();
  });

  it('needs a URL', async () => {
    const { id } = await made({});
    const answer = await client.account('PUT', `/v1/webhooks/${id}`, { format: 'slack' });
    expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'url']);
  });
});

describe('a webhook', () => {
  it('without options has no field of an option', async () => {
    const { secret: _, ...shown } = await made({});
    expect(Object.keys(shown).sort()).toEqual(['createdAt', 'events', 'id', 'status', 'url']);
  });

  it.each([
    [{ orderBy: 'market' }, ['orderBy']],
    [{ ordered: false, orderBy: 'market' }, ['orderBy']],
    [{ ordered: 'yes' }, ['ordered']],
    [{ ordered: null }, ['ordered']],
    [{ ordered: true, orderBy: 'time' }, ['orderBy']],
    [{ filter: [] }, ['filter']],
    [{ maxPerSecond: 0 }, ['maxPerSecond']],
    [{ url: BASE.url, format: 'teams' }, ['format']],
    [{ url: BASE.url, format: null }, ['format']],
    [{ url: BASE.url, format: 'telegram' }, ['url']],
    [{ maxPerSecond: 1001 }, ['maxPerSecond']],
    [{ maxPerSecond: '5' }, ['maxPerSecond']],
    [{ description: 7 }, ['description']],
    [{ description: 'x'.repeat(501) }, ['description']],
    [{ headers: 'X: y' }, ['headers']],
    [{ headers: { 'X-A': 1 } }, ['headers.X-A']],
    [{ headers: { 'Content-Length': '1' } }, ['headers.Content-Length']],
    [{ headers: { 'X-Webhook-Id': '1' } }, ['headers.X-Webhook-Id']],
    [{ headers: { 'X-A': 'line\nbreak' } }, ['headers.X-A']],
    [{ filter: {} }, ['filter']],
    [{ filter: Array(11).fill({ field: 'type', exists: true }) }, ['filter']],
    [{ filter: [{ field: 'type' }] }, ['filter.0']],
    [{ filter: [{ field: 'type', equal: 'a', in: ['a'] }] }, ['filter.0']],
    [{ filter: [{ field: 'data', exists: true }] }, ['filter.0.field']],
    [{ filter: [{ field: 'data.a.b.c.d.e', exists: true }] }, ['filter.0.field']],
    [{ filter: [{ field: 'data.a', equal: null }] }, ['filter.0.equal']],
    [{ filter: [{ field: 'data.a', equal: 'x'.repeat(257) }] }, ['filter.0.equal']],
    [{ filter: [{ field: 'data.a', above: '1' }] }, ['filter.0.above']],
    [{ filter: [{ field: 'data.a', in: [] }] }, ['filter.0.in']],
    [{ filter: [{ field: 'data.a', like: 'x' }] }, ['filter.0.like', 'filter.0']],
  ])('is rejected with the options %j, at its creation and as a change', async (options, paths) => {
    const { id } = await made({});
    for (const answer of [
      await client.account('POST', '/v1/webhooks', { ...BASE, ...options }),
      await client.account('PUT', `/v1/webhooks/${id}`, options),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
      expect(answer.body.error.details?.map(({ path }) => path)).toEqual(paths);
    }
  });
});
