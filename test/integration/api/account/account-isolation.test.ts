import { beforeAll, describe, expect, it } from 'vitest';
import { createBacktest } from '../../../../src/store/alerts/backtest/jobs.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { anAddress } from '../../../factories/wallets.ts';
import { type Answer, type Client, useTestApi } from '../api-harness.ts';

/** The parts of the OpenAPI document that this test needs. */
interface Contract {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example?: unknown }> } }>>;
}

const PK = sql('test_webhook_pk', 'SELECT pk FROM webhook_subscription WHERE id = $1');

const api = useTestApi();
let owner: Client;
let stranger: Client;
/** The owner's resources, by path parameter. */
let owned: Record<string, string>;
/** Every account route with a resource id, from the contract. */
let routes: { method: string; path: string; body: unknown }[];
beforeAll(async () => {
  owner = await api.client();
  stranger = await api.client();
  const make = async (path: string, body: object) => {
    const answer = await owner.account('POST', path, body);
    expect(answer.status).toBe(201);
    return (answer.body.data as { id: string }).id;
  };
  const webhook_id = await make('/v1/webhooks', { url: 'https://receiver.example.com/hook', events: ['price_alert'] });
  const [row] = await api.db.query<{ pk: bigint }>(PK, [webhook_id]);
  const subscriptionPk = row?.pk ?? 0n;
  const delivery = await aDelivery(api.db, { accountId: owner.accountId, subscriptionPk, status: 'failed' });
  owned = {
    webhook_id,
    delivery_id: delivery.id,
    alert_id: await make('/v1/alerts', { tokenMint: 't', condition: 'above', price: 1, webhookId: webhook_id }),
    backtest_id: await aBacktest(owner.accountId),
    wallet_id: await make('/v1/wallets', { venue: 'polymarket', address: anAddress() }),
    key_id: await make('/v1/keys', { name: 'second', scopes: ['alerts'] }),
  };
  const { paths } = JSON.parse((await api.call('/openapi.json')).text) as Contract;
  routes = Object.entries(paths)
    .filter(([path]) => /^\/v1\/(webhooks|alerts|wallets|keys)\/.*\{/.test(path))
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([method]) => ['get', 'put', 'post', 'patch', 'delete'].includes(method))
        .map(([method, { requestBody }]) => ({
          method: method.toUpperCase(),
          path,
          // The moment of the example is too old, so the route would answer only that.
          body: path.endsWith('/recover')
            ? { since: new Date(api.clock.nowMs).toISOString() }
            : requestBody?.content['application/json']?.example,
        })),
    );
});

async function aBacktest(accountId: bigint): Promise<string> {
  const request = { tokenMint: 't', scopeKey: null, condition: 'status', startMs: 0, endMs: 1 } as const;
  const made = await api.db.transaction((tx) => createBacktest(tx, accountId, request));
  return made?.id ?? '';
}

const UNKNOWN: Record<string, string> = {
  webhook_id: 'wh_01890000-0000-7000-8000-000000000000',
  delivery_id: 'dlv_01890000-0000-7000-8000-000000000000',
  alert_id: 'alert_01890000-0000-7000-8000-000000000000',
  backtest_id: 'bt_01890000-0000-7000-8000-000000000000',
  wallet_id: 'wal_01890000-0000-7000-8000-000000000000',
  key_id: '000000000000',
};
const fill = (path: string, ids: Record<string, string>) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? `no-${name}`);
/** An answer without the parts that change per request. */
const gist = ({ status, headers, body }: Answer) => [
  status,
  body.error,
  [...headers.keys()].filter((name) => !/^(date|x-request-id)$/.test(name)),
];

describe('a resource of another account', () => {
  it('is 404 on every route, with the same answer as for an unknown id', async () => {
    expect(routes.length).toBeGreaterThanOrEqual(15);
    for (const { method, path, body } of routes) {
      const foreign = await stranger.account(method, fill(path, owned), body);
      const unknown = await stranger.account(method, fill(path, UNKNOWN), body);
      expect([method, path, foreign.status]).toEqual([method, path, 404]);
      expect(gist(foreign)).toEqual(gist(unknown));
    }
  });

  it('is unknown to a bulk deletion, which leaves it', async () => {
    const ids = [owned.alert_id, UNKNOWN['alert_id']];
    const { status, body } = await stranger.account('POST', '/v1/alerts/bulk/delete', { ids });
    expect([status, body.data]).toEqual([200, ids.map((id) => ({ id, deleted: false }))]);
    expect((await owner.account('GET', `/v1/alerts/${owned.alert_id}`)).status).toBe(200);
  });

  it('is 404 when the path names a foreign delivery under an own webhook', async () => {
    const hook = await stranger.account('POST', '/v1/webhooks', {
      url: 'https://r.example.com/',
      events: ['price_alert'],
    });
    const { id } = hook.body.data as { id: string };
    for (const { method, path, body } of routes.filter((route) => route.path.includes('{delivery_id}'))) {
      const foreign = await stranger.account(method, fill(path, { ...owned, webhook_id: id }), body);
      const unknown = await stranger.account(method, fill(path, { ...UNKNOWN, webhook_id: id }), body);
      expect(foreign.status).toBe(404);
      expect(gist(foreign)).toEqual(gist(unknown));
    }
  });

  it('cannot be referenced by a resource of this account', async () => {
    const alert = { tokenMint: 't', condition: 'above', price: 1 };
    const [foreign, unknown] = [
      await stranger.account('POST', '/v1/alerts', { ...alert, webhookId: owned['webhook_id'] }),
      await stranger.account('POST', '/v1/alerts', { ...alert, webhookId: UNKNOWN['webhook_id'] }),
    ];
    expect(foreign.status).toBe(404);
    expect(gist(foreign)).toEqual(gist(unknown));
  });

  it('is in no list of this account, and its cursors are invalid for this account', async () => {
    const { key: _, ...fresh } = await api.client();
    for (const list of ['/v1/webhooks', '/v1/alerts', '/v1/wallets']) {
      expect((await fresh.account('GET', list)).body.data).toEqual([]);
      expect((await owner.account('GET', list)).body.data).toHaveLength(1);
    }
    expect((await fresh.account('GET', '/v1/keys')).body.data).toMatchObject([{ name: 'test', current: true }]);
    expect((await owner.account('GET', '/v1/keys')).body.data).toHaveLength(2);
    await owner.account('POST', '/v1/alerts', { tokenMint: 't', condition: 'below', price: 1 });
    const { next_cursor } = (await owner.account('GET', '/v1/alerts?limit=1')).body.meta;
    const walked = await fresh.account('GET', `/v1/alerts?limit=1&cursor=${next_cursor}`);
    expect([walked.status, walked.body.error.code]).toEqual([400, 'invalid_cursor']);
    expect((await owner.account('GET', `/v1/alerts?limit=1&cursor=${next_cursor}`)).body.data).toHaveLength(1);
  });

  it('is unchanged after all these requests', async () => {
    for (const [name, path] of [
      ['webhook_id', '/v1/webhooks/{webhook_id}'],
      ['delivery_id', '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}'],
      ['alert_id', '/v1/alerts/{alert_id}'],
      ['wallet_id', '/v1/wallets/{wallet_id}'],
      ['key_id', '/v1/keys/{key_id}'],
    ] as const) {
      const answer = await owner.account('GET', fill(path, owned));
      expect([answer.status, (answer.body.data as { id: string }).id]).toEqual([200, owned[name]]);
    }
    const { body } = await owner.account('GET', fill('/v1/webhooks/{webhook_id}/deliveries/{delivery_id}', owned));
    expect(body.data).toMatchObject({ status: 'failed', attempts: 0 });
    const key = await owner.account('GET', fill('/v1/keys/{key_id}', owned));
    expect(key.body.data).toMatchObject({ status: 'active' });
  });
});
