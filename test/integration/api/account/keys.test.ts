import { describe, expect, it } from 'vitest';
import { revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import type { Answer, Client } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const END_KEY = sql('test_end_key', 'UPDATE api_key SET expires_at = $2 WHERE id = $1');

const { api, client, stranger } = withApi();

interface KeyData {
  id: string;
  key: string;
  name: string;
  scopes: string[];
  status: string;
  current: boolean;
  expiresAt?: string;
}
const dataOf = ({ body }: Answer) => body.data as KeyData;
const create = (body: object, owner = client) =>
  owner.account('POST', '/v1/keys', { name: 'laptop', scopes: ['alerts'], ...body });
const problems = ({ status, body }: Answer) => [status, body.error.code, body.error.details?.map(({ path }) => path)];
const as = (key: string, path: string, method = 'GET') => api.call(path, { method, headers: { 'X-API-Key': key } });
const idOfOwn = async (owner: Client) => {
  const { body } = await owner.account('GET', '/v1/keys');
  return (body.data as KeyData[]).find(({ current }) => current)?.id ?? '';
};

describe('POST /v1/keys', () => {
  it('answers 201 with a key that works at once, and stores only its hash', async () => {
    const expiresAt = new Date(api.clock.nowMs + 3_600_000).toISOString();
    const answer = await create({ name: 'laptop 🐋', scopes: ['alerts', 'markets:read', 'alerts'], expiresAt });
    const { key, ...shown } = dataOf(answer);
    expect([answer.status, answer.headers.get('location')]).toEqual([201, `/v1/keys/${shown.id}`]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(shown).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z]{12}$/),
      name: 'laptop 🐋',
      scopes: ['alerts', 'markets:read'],
      status: 'active',
      current: false,
      createdAt: expect.stringMatching(/Z$/),
      expiresAt,
    });
    expect(key.startsWith(`ow_live_${shown.id}_`)).toBe(true);
    expect((await as(key, '/v1/alerts')).status).toBe(200);
    expect((await as(key, '/v1/webhooks')).body.error.code).toBe('insufficient_scope');
    expect((await as(key, '/v1/keys')).body.error.code).toBe('insufficient_scope');
    expect(dataOf(await client.account('GET', `/v1/keys/${shown.id}`))).toEqual(shown);
    const rows = await api.db.query(sql('test_all_of_keys', 'SELECT to_jsonb(k) AS row FROM api_key k'));
    const kept = await api.db.query(sql('test_all_kept', 'SELECT to_jsonb(i) AS row FROM idempotency_key i'));
    expect(JSON.stringify([rows, kept])).not.toContain(key.split('_')[3]);
  });

  it('stores no secret in plain text for a repetition with the same Idempotency-Key', async () => {
    const send = () =>
      api.call('/v1/keys', {
        method: 'POST',
        headers: { 'X-API-Key': client.key, 'Idempotency-Key': 'one key', 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'kept', scopes: ['alerts'] }),
      });
    const { key } = dataOf(await send());
    const again = await send();
    expect([again.headers.get('idempotent-replayed'), dataOf(again).key]).toEqual(['true', key]);
    const kept = await api.db.query(sql('test_kept_of_keys', 'SELECT to_jsonb(i) AS row FROM idempotency_key i'));
    expect(kept.length).toBeGreaterThan(0);
    expect(JSON.stringify(kept)).not.toContain(key.split('_')[3]);
  });

  it('gives no scope that the key of the request lacks', async () => {
    const narrow = await api.client(['keys', 'alerts']);
    const refused = await create({ scopes: ['alerts', 'webhooks', 'wallets'] }, narrow);
    expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_scope']);
    expect(refused.body.error.details).toEqual([
      { path: 'scopes', message: 'the key of the request lacks the scope webhooks' },
      { path: 'scopes', message: 'the key of the request lacks the scope wallets' },
    ]);
    const made = dataOf(await create({ scopes: ['keys', 'alerts'] }, narrow));
    const grandchild = await api.call('/v1/keys', {
      method: 'POST',
      headers: { 'X-API-Key': made.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'x', scopes: ['markets:read'] }),
    });
    expect(grandchild.body.error.code).toBe('insufficient_scope');
    expect((await narrow.account('GET', '/v1/keys')).body.data).toHaveLength(2);
  });

  it('gives no end later than that of the key of the request, also through keys that it makes', async () => {
    const owner = await api.client(['keys', 'alerts']);
    const endMs = api.clock.nowMs + 86_400_000;
    const end = new Date(endMs).toISOString();
    await api.db.query(END_KEY, [await idOfOwn(owner), end]);
    const before = new Date(endMs - 1_000).toISOString();
    expect(dataOf(await create({ scopes: ['alerts'], expiresAt: before }, owner))).toMatchObject({ expiresAt: before });
    expect(dataOf(await create({ scopes: ['alerts'], expiresAt: end }, owner))).toMatchObject({ expiresAt: end });
    const made = dataOf(await create({ scopes: ['keys'] }, owner));
    expect(made).toMatchObject({ expiresAt: end });
    const after = new Date(endMs + 1).toISOString();
    const message = `must not be later than the end of the key of the request, ${end}`;
    for (const key of [owner.key, made.key]) {
      const late = await api.call('/v1/keys', {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'late', scopes: ['keys'], expiresAt: after }),
      });
      expect([late.status, late.body.error.details]).toEqual([400, [{ path: 'expiresAt', message }]]);
    }
    const grandchild = await api.call('/v1/keys', {
      method: 'POST',
      headers: { 'X-API-Key': made.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'grandchild', scopes: ['keys'] }),
    });
    expect(dataOf(grandchild)).toMatchObject({ expiresAt: end });
    // A key without an end gives any.
    expect(dataOf(await create({}))).not.toHaveProperty('expiresAt');
  });

  it('is repeated with an Idempotency-Key only to the key that made the request', async () => {
    const owner = await api.client();
    const narrow = dataOf(await create({ scopes: ['keys', 'alerts'] }, owner));
    const send = (key: string) =>
      api.call('/v1/keys', {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Idempotency-Key': 'shared', 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'one', scopes: ['alerts'] }),
      });
    const first = await send(owner.key);
    const other = await send(narrow.key);
    expect([first.status, other.status, other.headers.get('idempotent-replayed')]).toEqual([201, 201, null]);
    expect(dataOf(other).key).not.toBe(dataOf(first).key);
    for (const [key, made] of [
      [owner.key, first],
      [narrow.key, other],
    ] as const) {
      const again = await send(key);
      expect([again.headers.get('idempotent-replayed'), again.body]).toEqual(['true', made.body]);
    }
  });

  it('is 401 with a key that was revoked within the second of its cached look-up', async () => {
    const owner = await api.client();
    const id = await idOfOwn(owner);
    await revokeApiKey(api.db, id);
    const answer = await create({}, owner);
    expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized']);
    const rows = await api.db.query<{ rows: number }>(
      sql('test_keys_of', 'SELECT count(*)::int AS rows FROM api_key WHERE account_id = $1'),
      [owner.accountId],
    );
    expect(rows).toEqual([{ rows: 1 }]);
  });

  it.each([
    [{ name: '' }, ['name']],
    [{ name: '   ' }, ['name']],
    [{ name: 'x'.repeat(101) }, ['name']],
    [{ name: 'a\u0007b' }, ['name']],
    [{ name: 7 }, ['name']],
    [{ scopes: [] }, ['scopes']],
    [{ scopes: ['alerts', 'all'] }, ['scopes.1']],
    [{ scopes: 'alerts' }, ['scopes']],
    [{ scopes: undefined }, ['scopes']],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, ['expiresAt']],
    [{ expiresAt: 'tomorrow' }, ['expiresAt']],
    [{ expiresAt: '9999-12-31T23:00:00-02:00' }, ['expiresAt']],
    [{ account: 'other' }, ['account']],
  ])('is 400 for %j and names %j', async (body, paths) => {
    expect(problems(await create(body))).toEqual([400, 'invalid_request', paths]);
  });
});

describe('GET /v1/keys', () => {
  it('pages through the keys of the account, newest first, by state and without secrets', async () => {
    const owner = await api.client();
    const own = await idOfOwn(owner);
    const made: string[] = [];
    for (let i = 0; i < 5; i++) made.unshift(dataOf(await create({ name: `k${i}` }, owner)).id);
    await owner.account('DELETE', `/v1/keys/${made[1]}`);
    await api.db.query(END_KEY, [made[2], new Date(api.clock.nowMs - 1).toISOString()]);
    const walk = async (query: string) => {
      const ids: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const { body } = await owner.account('GET', `/v1/keys?limit=2${query}${at}`);
        expect(JSON.stringify(body)).not.toContain('ow_live_');
        ids.push(...(body.data as KeyData[]).map(({ id }) => id));
        cursor = body.meta.next_cursor as string | null;
      }
      return ids;
    };
    expect(await walk('')).toEqual([...made, own]);
    expect(await walk('&status=active')).toEqual([made[0], made[3], made[4], own]);
    expect(await walk('&status=revoked,expired')).toEqual([made[1], made[2]]);
    const { body } = await owner.account('GET', '/v1/keys?limit=1');
    const foreign = await stranger.account(
      'GET',
      `/v1/keys?cursor=${encodeURIComponent(String(body.meta.next_cursor))}`,
    );
    expect(foreign.body.error.code).toBe('invalid_cursor');
  });
});

describe('DELETE /v1/keys/{id}', () => {
  it('revokes a key of the account for good, and leaves it in the list', async () => {
    const { id, key } = dataOf(await create({}));
    const revoked = await client.account('DELETE', `/v1/keys/${id}`);
    expect([revoked.status, dataOf(revoked)]).toMatchObject([200, { id, status: 'revoked' }]);
    expect(await client.account('DELETE', `/v1/keys/${id}`)).toMatchObject({ status: 200, body: revoked.body });
    expect((await as(key, '/v1/alerts')).status).toBe(401);
  });

  it('lets a key revoke itself', async () => {
    const owner = await api.client();
    const id = await idOfOwn(owner);
    expect((await owner.account('DELETE', `/v1/keys/${id}`)).status).toBe(200);
    await expect.poll(async () => (await owner.account('GET', '/v1/keys')).status).toBe(401);
  });

  it('ends the stream of the key', async () => {
    const { id, key } = dataOf(await create({ scopes: ['markets:read'] }));
    const stream = await fetch(`${api.url}/v1/all/stream`, { headers: { Authorization: `Bearer ${key}` } });
    expect(stream.status).toBe(200);
    await client.account('DELETE', `/v1/keys/${id}`);
    // It would otherwise not end.
    expect(await stream.text()).toContain('retry:');
  });

  it('is 404 for a key of another account, which stays valid', async () => {
    const id = await idOfOwn(stranger);
    for (const method of ['GET', 'DELETE']) {
      const answer = await client.account(method, `/v1/keys/${id}`);
      expect([answer.status, answer.body.error.code]).toEqual([404, 'key_not_found']);
    }
    expect((await stranger.account('GET', `/v1/keys/${id}`)).body.data).toMatchObject({ status: 'active' });
  });
});

it('the audit trail has creations and revocations with the key that made them', async () => {
  const own = await idOfOwn(client);
  const { id } = dataOf(await create({}));
  const last = async () => (await listActions(api.db, 1)).actions[0];
  const by = { source: 'api', actor: own, accountId: client.accountId, status: 'done', target: id };
  expect(await last()).toMatchObject({ ...by, action: 'key.create', result: 'name, scopes' });
  await client.account('DELETE', `/v1/keys/${id}`);
  expect(await last()).toMatchObject({ ...by, action: 'key.revoke' });
});
