import { describe, expect, it } from 'vitest';
import { createApiKey } from '../../../../src/store/accounts/accounts.ts';
import { type AccountQuotas, readAccountQuotas, setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAlert } from '../../../factories/alerts.ts';
import { anAddress } from '../../../factories/wallets.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';
import { type Answer, type Client, type TestApi, useTestApi } from '../api-harness.ts';

const QUOTA = 5;
const quotas = { webhooks: QUOTA, alerts: QUOTA, wallets: QUOTA, keys: QUOTA, archiveMbPerDay: QUOTA };

const api = useTestApi({ quotas });
const other = useTestApi({ quotas }, { beside: api });

const webhook = { url: 'https://receiver.example.com/hook', events: ['price_alert'] };
const KINDS = [
  ['webhooks', () => webhook, 'webhooks'],
  ['alerts', () => ({ tokenMint: 'a-token', condition: 'above', price: 0.5 }), 'active alerts'],
  ['wallets', () => ({ venue: 'polymarket', address: anAddress() }), 'watched wallets'],
] as const;

const post = (at: TestApi, { key }: Client, path: string, body: object): Promise<Answer> =>
  at.call(path, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
const statusOf = async (answer: Promise<Answer>) => (await answer).status;
const idOf = ({ body }: Answer) => (body.data as { id: string }).id;

async function idsOf(client: Client, kind: string): Promise<string[]> {
  const { data } = (await client.account('GET', `/v1/${kind}?limit=1000`)).body;
  return (data as { id: string }[]).map(({ id }) => id);
}

const NAME = sql('test_account_name', 'SELECT name FROM account WHERE id = $1');
async function nameOf({ accountId }: Client): Promise<string> {
  return (await api.db.query<{ name: string }>(NAME, [accountId]))[0]?.name ?? '';
}
const change = async (client: Client, limits: Partial<AccountQuotas>) =>
  setAccountQuotas(api.db, await nameOf(client), limits);

describe.each(KINDS)('the quota of %s', (kind, aBody, named) => {
  const create = (client: Client, at = api) => post(at, client, `/v1/${kind}`, aBody());

  it('holds exactly for many concurrent requests to two processes, repeatedly', async () => {
    const client = await api.client();
    for (const [requests, free] of [
      [20, QUOTA],
      [6, 2],
    ] as const) {
      const answers = await Promise.all(
        Array.from({ length: requests }, (_, i) => create(client, i % 2 ? api : other)),
      );
      const rejected = answers.filter(({ status }) => status !== 201);
      expect(answers.length - rejected.length).toBe(free);
      for (const { status, body, headers } of rejected) {
        expect([status, body.error.code, headers.get('location')]).toEqual([403, 'quota_exceeded', null]);
        expect(body.error.message).toBe(`quota "${kind}": this account may have at most ${QUOTA} ${named}`);
      }
      const ids = await idsOf(client, kind);
      expect(ids).toHaveLength(QUOTA);
      for (const id of ids.slice(0, 2)) await client.account('DELETE', `/v1/${kind}/${id}`);
    }
  });

  it('is neither exceeded nor lost during concurrent deletions', async () => {
    const client = await api.client();
    const most = await Promise.all(
      Array.from({ length: 4 }, async (_, worker) => {
        let seen = 0;
        for (let round = 0; round < 4; round++) {
          const answer = await create(client, worker % 2 ? api : other);
          const ids = await idsOf(client, kind);
          seen = Math.max(seen, ids.length);
          if (answer.status === 201 && round % 2 === 0) {
            await client.account('DELETE', `/v1/${kind}/${idOf(answer)}`);
          }
        }
        return seen;
      }),
    );
    expect(Math.max(...most)).toBeLessThanOrEqual(QUOTA);
    for (const id of await idsOf(client, kind)) await client.account('DELETE', `/v1/${kind}/${id}`);
    for (let i = 0; i < QUOTA; i++) expect(await statusOf(create(client))).toBe(201);
    expect(await statusOf(create(client))).toBe(403);
  });

  it('uses the own quota of an account at once, whether higher or lower', async () => {
    const client = await api.client();
    const stranger = await api.client();
    const created = async (tries: number) => {
      const statuses = [];
      for (let i = 0; i < tries; i++) statuses.push(await statusOf(create(client)));
      return statuses.filter((status) => status === 201).length;
    };
    await change(client, { [kind]: 2 });
    expect(await created(3)).toBe(2);
    await change(client, { [kind]: QUOTA + 2 });
    expect(await created(9)).toBe(QUOTA);
    await change(client, { [kind]: null });
    expect(await created(1)).toBe(0);
    expect(await idsOf(client, kind)).toHaveLength(QUOTA + 2);
    await change(client, { [kind]: 0 });
    expect((await create(client)).body.error.message).toContain('at most 0 ');
    expect(await statusOf(create(stranger))).toBe(201);
  });
});

it('a creation of many alerts counts once when the quota is used up, and still checks each item', async () => {
  const client = await api.client();
  const right = { tokenMint: 'a-token', condition: 'above', price: 0.5 };
  const alerts = [...Array.from({ length: 20 }, () => right), { ...right, price: 0 }, right];
  const answer = await client.account('POST', '/v1/alerts/bulk/create', { alerts });
  const items = answer.body.data as { alert?: object; error?: { code: string; message: string } }[];
  expect(items.slice(0, QUOTA).every(({ alert }) => alert !== undefined)).toBe(true);
  const codes = items.slice(QUOTA).map(({ error }) => error?.code);
  expect(codes).toEqual([...Array(15).fill('quota_exceeded'), 'invalid_request', 'quota_exceeded']);
  expect(items.at(-1)?.error).toEqual(items[QUOTA]?.error);
  const bound = sql('test_bound_of_alerts', 'SELECT alerts_at_most FROM account WHERE id = $1');
  // Each count after the quota is used up raises the bound by one.
  expect(await api.db.query(bound, [client.accountId])).toEqual([{ alertsAtMost: QUOTA + 1 }]);
});

it('a resumption that began before the pause of its alert does not exceed the quota', async () => {
  const client = await api.client();
  const right = { tokenMint: 'a-token', condition: 'above', price: 0.5 };
  await client.account('POST', '/v1/alerts/bulk/create', { alerts: Array.from({ length: QUOTA }, () => right) });
  const [id = ''] = await idsOf(client, 'alerts');
  const pause = sql('test_pause_alert', `UPDATE alert SET status = 'paused' WHERE id = $1`);
  let resumed: Promise<Answer> | undefined;
  await api.db.transaction(async (tx) => {
    await tx.query(pause, [id]);
    await anAlert(tx, { accountId: client.accountId, mint: 'a-token', condition: 'above', target: '0.5' });
    resumed = client.account('PATCH', `/v1/alerts/${id}`, { status: 'active' });
    await untilBlocked(api.db);
  });
  expect((await resumed)?.status).toBe(409);
  expect((await client.account('GET', '/v1/alerts?status=active')).body.data).toHaveLength(QUOTA);
  expect((await client.account('PATCH', `/v1/alerts/${id}`, { status: 'active' })).status).toBe(403);
});

describe('the quota of keys', () => {
  const aKey = { name: 'second', scopes: ['alerts'] };
  const create = (client: Client, at = api) => post(at, client, '/v1/keys', aKey);

  it('holds exactly for concurrent requests to two processes, and counts only active keys', async () => {
    const client = await api.client();
    // The key of the requests counts too.
    for (const [requests, free] of [
      [16, QUOTA - 1],
      [6, 2],
    ] as const) {
      const answers = await Promise.all(
        Array.from({ length: requests }, (_, i) => create(client, i % 2 ? api : other)),
      );
      const rejected = answers.filter(({ status }) => status !== 201);
      expect(answers.length - rejected.length).toBe(free);
      for (const { status, body } of rejected) {
        expect([status, body.error.code]).toEqual([403, 'quota_exceeded']);
        expect(body.error.message).toBe(`quota "keys": this account may have at most ${QUOTA} active keys`);
      }
      const { data } = (await client.account('GET', '/v1/keys?status=active')).body;
      const others = (data as { id: string; current: boolean }[]).filter(({ current }) => !current);
      expect(others).toHaveLength(QUOTA - 1);
      await client.account('DELETE', `/v1/keys/${others[0]?.id}`);
      const end = sql('test_key_ends', 'UPDATE api_key SET expires_at = to_timestamp(0) WHERE id = $1');
      await api.db.query(end, [others[1]?.id]);
    }
  });

  it('does not limit operators, and can differ per account', async () => {
    const client = await api.client();
    await change(client, { keys: 2 });
    expect([await statusOf(create(client)), await statusOf(create(client))]).toEqual([201, 403]);
    const accountName = await nameOf(client);
    await api.db.transaction((tx) => createApiKey(tx, { accountName, name: 'third', scopes: ['alerts'] }));
    await change(client, { keys: 4 });
    expect([await statusOf(create(client)), await statusOf(create(client))]).toEqual([201, 403]);
  });
});

describe('the counted usage', () => {
  it('excludes requests that were rejected for another reason', async () => {
    const client = await api.client();
    const wallet = { venue: 'polymarket', address: anAddress() };
    const alert = { tokenMint: 'a-token', condition: 'above', price: 0.5 };
    expect(await statusOf(post(api, client, '/v1/wallets', wallet))).toBe(201);
    for (let i = 0; i < QUOTA + 1; i++) {
      expect(await statusOf(post(api, client, '/v1/wallets', wallet))).toBe(409);
      expect(await statusOf(post(api, client, '/v1/alerts', { ...alert, webhookId: 'wh_none' }))).toBe(404);
    }
    for (let i = 1; i < QUOTA; i++) {
      expect(await statusOf(post(api, client, '/v1/wallets', { ...wallet, address: anAddress() }))).toBe(201);
    }
    expect(await statusOf(post(api, client, '/v1/alerts', alert))).toBe(201);
  });

  it('includes active alerts and existing webhooks, also paused ones', async () => {
    const client = await api.client();
    const alert = { tokenMint: 'a-token', condition: 'above', price: 0.5 };
    for (let i = 0; i < QUOTA; i++) {
      await post(api, client, '/v1/alerts', alert);
      const made = await post(api, client, '/v1/webhooks', webhook);
      await client.account('PUT', `/v1/webhooks/${idOf(made)}`, { status: 'paused' });
    }
    const over = sql(
      'test_alerts_over',
      `UPDATE alert SET status = CASE WHEN pk % 2 = 0 THEN 'triggered' ELSE 'expired' END WHERE account_id = $1`,
    );
    await api.db.query(over, [client.accountId]);
    expect(await statusOf(post(api, client, '/v1/alerts', alert))).toBe(201);
    expect(await statusOf(post(api, client, '/v1/webhooks', webhook))).toBe(403);
  });
});

it('the limits of an account can change one at a time and are read together', async () => {
  const client = await api.client();
  const none = {
    webhooks: null,
    alerts: null,
    wallets: null,
    keys: null,
    ratePerMinute: null,
    coldReadsPerMinute: null,
    archiveMbPerDay: null,
  };
  expect(await readAccountQuotas(api.db, await nameOf(client))).toEqual(none);
  expect(await change(client, { webhooks: 7, ratePerMinute: 60 })).toEqual({ ...none, webhooks: 7, ratePerMinute: 60 });
  const objects = { webhooks: 1, alerts: 2, wallets: 3, keys: 6 };
  const all = { ...objects, ratePerMinute: 4, coldReadsPerMinute: 5, archiveMbPerDay: 7 };
  expect(await change(client, all)).toEqual(all);
  expect(await change(client, { alerts: null })).toEqual({ ...all, alerts: null });
  expect(await change(client, {})).toEqual({ ...all, alerts: null });
  expect(await readAccountQuotas(api.db, await nameOf(client))).toEqual({ ...all, alerts: null });
  expect(await setAccountQuotas(api.db, 'unknown', { alerts: 1 })).toBeNull();
  expect(await readAccountQuotas(api.db, 'unknown')).toBeNull();
});
