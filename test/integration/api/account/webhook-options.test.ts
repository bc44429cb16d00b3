import { describe, expect, it } from 'vitest';
import type { Client } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

let client: Client;
withApi((started) => {
  ({ client } = started);
});

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
