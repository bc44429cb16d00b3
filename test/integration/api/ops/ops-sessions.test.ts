import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SESSION_IDLE_MS, SESSION_MAX_MS } from '../../../../src/store/accounts/sessions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { startTestApi, useTestApi } from '../api-harness.ts';
import { AS_BROWSER, logIn, OPS_PASSWORDS, type OpsClient, testOps, tryLogin } from './ops-client.ts';

const SESSIONS = sql(
  'test_ops_sessions',
  `SELECT encode(token_hash, 'hex') AS hash, ops_session::text AS row FROM ops_session`,
);

const api = useTestApi({ ops: testOps({ queueNames: ['alerts'] }) });

async function statusOf(client: OpsClient, path = '/ops/audit'): Promise<number> {
  return (await client.page(path)).status;
}

describe('a session', () => {
  it('is stored only as a hash of its token', async () => {
    const client = await logIn(api);
    const token = client.cookie.split('=')[1] ?? '';
    const rows = await api.db.query<{ hash: string; row: string }>(SESSIONS);
    expect(rows.map(({ hash }) => hash)).toContain(createHash('sha256').update(token).digest('hex'));
    expect(rows.map(({ row }) => row).join()).not.toContain(token);
    expect(rows.map(({ row }) => row).join()).not.toContain(OPS_PASSWORDS.operator);
  });

  it('is invalid with any other token', async () => {
    const client = await logIn(api);
    const [name = '', token = ''] = client.cookie.split('=');
    const other = `${token.startsWith('A') ? 'B' : 'A'}${token.slice(1)}`;
    for (const cookie of [`${name}=${other}`, `${name}=`, `${name}=${token}x`, `x${client.cookie}`]) {
      expect((await api.call('/ops/audit', { headers: { Cookie: cookie } })).status).toBe(401);
    }
    expect(await statusOf(client)).toBe(200);
  });

  it('ends after idle time and lasts while it is used', async () => {
    const [used, idle] = await Promise.all([logIn(api), logIn(api)]);
    for (let i = 0; i < 3; i++) {
      api.clock.nowMs += SESSION_IDLE_MS - 1_000;
      expect(await statusOf(used)).toBe(200);
    }
    expect(await statusOf(idle)).toBe(303);
  });

  it('is not extended by the refresh of an open page', async () => {
    const client = await logIn(api);
    for (const path of ['/ops/overview.json', '/ops/queues/api/queues']) {
      api.clock.nowMs += SESSION_IDLE_MS / 2 - 1_000;
      expect((await client.call(path)).status).toBe(200);
    }
    api.clock.nowMs += 3_000;
    expect((await client.call('/ops/overview.json')).status).toBe(401);
  });

  it('ends after twelve hours also when it is used', async () => {
    const client = await logIn(api);
    const endsAtMs = api.clock.nowMs + SESSION_MAX_MS;
    while (api.clock.nowMs + SESSION_IDLE_MS < endsAtMs) {
      api.clock.nowMs += SESSION_IDLE_MS - 1_000;
      // The login page redirects an existing session.
      expect(await statusOf(client, '/ops/login')).toBe(303);
    }
    expect(await statusOf(client)).toBe(200);
    api.clock.nowMs = endsAtMs;
    expect(await statusOf(client)).toBe(303);
  });

  it('ends with the logout, which deletes the cookie', async () => {
    const [client, other] = await Promise.all([logIn(api, 'viewer'), logIn(api, 'viewer')]);
    const answer = await client.post('/ops/logout');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ops/login']);
    expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(/^oddswire_ops=; Path=\/ops; .*Max-Age=0$/)]);
    expect(await statusOf(client)).toBe(303);
    expect(await statusOf(other)).toBe(200);
  });

  it('ends by logout-everywhere of an operator, but not of a viewer', async () => {
    const [operator, viewer, other] = await Promise.all([logIn(api), logIn(api, 'viewer'), logIn(api)]);
    expect((await viewer.post('/ops/logout-everywhere')).status).toBe(403);
    expect(await statusOf(other)).toBe(200);
    expect((await operator.post('/ops/logout-everywhere')).status).toBe(303);
    for (const client of [operator, viewer, other]) expect(await statusOf(client)).toBe(303);
  });

  it('is valid in every process and ends in all of them', async () => {
    const second = await startTestApi({ db: api.db, ops: testOps(), now: () => api.clock.nowMs });
    try {
      const client = await logIn(api);
      const there = (path: string) =>
        second.call(path, { redirect: 'manual', headers: { ...AS_BROWSER, Cookie: client.cookie } });
      expect((await there('/ops/audit')).status).toBe(200);
      await client.post('/ops/logout');
      expect((await there('/ops/audit')).status).toBe(303);
    } finally {
      await second.close();
    }
  });

  it('ends when the password of its role changes or is removed, while others continue', async () => {
    const [operator, viewer] = await Promise.all([logIn(api), logIn(api, 'viewer')]);
    const after = await startTestApi({
      db: api.db,
      ops: testOps({ passwords: { operator: 'another-password' } }),
      now: () => api.clock.nowMs,
    });
    try {
      for (const { cookie } of [operator, viewer]) {
        expect((await after.call('/ops/audit', { headers: { Cookie: cookie } })).status).toBe(401);
      }
      expect((await tryLogin(after, OPS_PASSWORDS.viewer)).status).toBe(403);
      expect((await tryLogin(after, 'another-password')).status).toBe(303);
    } finally {
      await after.close();
    }
    expect(await statusOf(operator)).toBe(200);
  });
});

describe('behind TLS', () => {
  const publicUrl = 'https://ops.example.com';

  it('the cookie is Secure and bound to the host, and writes need the public origin', async () => {
    const secure = await startTestApi({ ops: testOps({ publicUrl }) });
    try {
      const send = (headers: Record<string, string>) =>
        secure.call('/ops/login', {
          method: 'POST',
          redirect: 'manual',
          headers,
          body: new URLSearchParams({ password: OPS_PASSWORDS.operator }),
        });
      // The listening address differs from the public address.
      expect((await send({ Origin: secure.url })).status).toBe(403);
      expect((await send({ Origin: 'http://ops.example.com' })).status).toBe(403);
      const answer = await send({ Origin: publicUrl });
      const [cookie = ''] = answer.headers.getSetCookie();
      expect(cookie).toMatch(/^__Host-oddswire_ops=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
      const [pair = ''] = cookie.split(';');
      expect((await secure.call('/ops/audit', { headers: { Cookie: pair } })).status).toBe(200);
      const plain = pair.replace('__Host-', '');
      expect((await secure.call('/ops/audit', { headers: { Cookie: plain } })).status).toBe(401);
    } finally {
      await secure.close();
    }
  });
});

describe('the audit log', () => {
  it('records logins and logouts with address and request', async () => {
    const client = await logIn(api, 'viewer');
    await client.post('/ops/logout', {}, { 'X-Request-Id': 'req-of-mine' });
    const { actions } = await listActions(api.db, 2);
    expect(actions).toMatchObject([
      { action: 'logout', role: 'viewer', status: 'done', requestId: 'req-of-mine', address: '127.0.0.1' },
      { action: 'login', role: 'viewer', status: 'done', address: '127.0.0.1' },
    ]);
    const token = client.cookie.split('=')[1] ?? '';
    expect(actions[0]?.sessionId).toBe(createHash('sha256').update(token).digest('hex').slice(0, 10));
  });
});
