import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { LINK_MINUTES } from '../../../../src/store/accounts/sign-in-links.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { type Answer, startTestApi, useTestApi } from '../api-harness.ts';
import { AS_BROWSER, logIn, type OpsClient, testOps } from '../ops/ops-client.ts';
import { cookieOf } from './console-client.ts';

const api = useTestApi({ console: {}, ops: testOps() });
let ops: OpsClient;
beforeAll(async () => {
  ops = await logIn(api);
});

const textOf = ({ text }: Answer) => text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

/** Creates a link on the page of the operators; returns its path. */
async function aLink(account: string, scopes = ['markets:read', 'keys'], by = ops): Promise<string> {
  const form = new URLSearchParams({ csrf: by.csrf, account });
  for (const scope of scopes) form.append('scopes', scope);
  const answer = await by.call('/ops/keys/link', {
    method: 'POST',
    headers: { ...AS_BROWSER, Origin: api.url },
    body: form,
  });
  expect(answer.status).toBe(200);
  return new RegExp(`${api.url}(/console/sign-in/[\\w-]{43})<`).exec(answer.text)?.[1] ?? '';
}

const open = (path: string, headers = {}) =>
  api.call(path, { redirect: 'manual', headers: { ...AS_BROWSER, ...headers } });
const use = (path: string, headers: Record<string, string> = { Origin: api.url }) =>
  api.call('/console/sign-in', {
    method: 'POST',
    redirect: 'manual',
    headers: { ...AS_BROWSER, ...headers },
    body: new URLSearchParams({ token: path.split('/').at(-1) ?? '' }),
  });

describe('a sign-in link', () => {
  it('signs one person in with its scopes, and works once', async () => {
    const account = newId('req');
    const path = await aLink(account);
    // Previews of links only read them.
    for (let i = 0; i < 2; i++) {
      const page = await open(path);
      expect([page.status, page.headers.getSetCookie()]).toEqual([200, []]);
      expect(textOf(page)).toContain(`You sign in to the account ${account} , with the scopes markets:read, keys.`);
    }
    const [first, second] = await Promise.all([use(path), use(path)]);
    expect([first.status, second.status].sort()).toEqual([303, 404]);
    const [used = first, refused = second] = first.status === 303 ? [first, second] : [second, first];
    expect(used.headers.get('location')).toBe('/markets');
    const usage = await open('/usage', { Cookie: cookieOf(used) });
    expect(textOf(usage)).toContain(`Account ${account}`);
    expect(textOf(usage)).toContain('Scopes markets:read, keys');
    expect((await open('/alerts', { Cookie: cookieOf(used) })).status).toBe(403);
    expect(textOf(refused)).toContain('This link was used, has expired, or is not complete.');
    expect(refused.headers.getSetCookie()).toEqual([]);
  });

  it('has one page after its use, after its end, and when it is unknown', async () => {
    const used = await aLink(newId('req'));
    await use(used);
    const ended = await aLink(newId('req'));
    const before = api.clock.nowMs;
    api.clock.nowMs += LINK_MINUTES * 60_000;
    const pages = [];
    for (const path of [used, ended, `/console/sign-in/${'x'.repeat(43)}`, '/console/sign-in/short']) {
      for (const answer of [await open(path), await use(path)]) pages.push([answer.status, textOf(answer)]);
    }
    api.clock.nowMs = before;
    expect(new Set(pages.map((page) => JSON.stringify(page))).size).toBe(1);
    expect(pages[0]?.[0]).toBe(404);
  });

  it('is stored as a hash, and its session ends with a key that nobody has', async () => {
    const path = await aLink(newId('req'));
    const token = path.split('/').at(-1) ?? '';
    const rows = () => api.db.query(sql('test_links', 'SELECT to_jsonb(l) AS row FROM sign_in_link l'));
    expect(JSON.stringify(await rows())).not.toContain(token);
    const cookie = cookieOf(await use(path));
    const keys = await api.db.query<{ id: string; expiresAt: Date }>(
      sql(
        'test_link_key',
        `SELECT id, expires_at FROM api_key WHERE name LIKE 'sign-in link (%' ORDER BY created_at DESC LIMIT 1`,
      ),
    );
    expect(keys[0]?.expiresAt.getTime()).toBe(api.clock.nowMs + 12 * 3_600_000);
    await ops.post(`/ops/keys/${keys[0]?.id}/revoke`);
    expect((await open('/usage', { Cookie: cookie })).status).toBe(303);
  });

  it('is not used by another site, and needs a role that may act', async () => {
    const path = await aLink(newId('req'));
    expect((await use(path, { Origin: 'https://evil.test' })).status).toBe(403);
    expect((await use(path, {})).status).toBe(403);
    expect((await use(path)).status).toBe(303);
    const viewer = await logIn(api, 'viewer');
    expect((await viewer.page('/ops/keys')).text).not.toContain('New sign-in link');
    const refused = await viewer.post('/ops/keys/link', { account: 'acme', scopes: 'alerts' });
    expect(refused.status).toBe(403);
    const { actions } = await listActions(api.db, 1);
    expect(actions).toMatchObject([{ action: 'key.link', status: 'refused', role: 'viewer' }]);
  });

  it('is in the audit trail when it is made and when it is used, without its token', async () => {
    const account = newId('req');
    const path = await aLink(account, ['alerts']);
    expect((await listActions(api.db, 1)).actions).toMatchObject([
      {
        action: 'key.link',
        target: `account ${account}`,
        status: 'done',
        role: 'operator',
        result: 'Created a sign-in link with the scopes alerts.',
      },
    ]);
    await use(path);
    const { actions } = await listActions(api.db, 2);
    expect(actions[0]).toMatchObject({ action: 'key.create', source: 'api', account, status: 'done' });
    expect(actions[0]?.result).toMatch(/^signed in with a link of .*: alerts$/);
    const all = JSON.stringify(actions, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect(all).not.toContain(path.split('/').at(-1));
  });

  it('names each fault of its form, and does not exist while the console is off', async () => {
    const faulty = await ops.post('/ops/keys/link', { account: ' ' });
    expect([faulty.status, textOf(faulty)]).toEqual([
      400,
      expect.stringContaining('scopes: choose at least one scope'),
    ]);
    const other = await startTestApi({ ops: testOps() }, { beside: api });
    try {
      const operator = await logIn(other);
      expect((await operator.page('/ops/keys')).text).not.toContain('New sign-in link');
      const answer = await other.call('/ops/keys/link', {
        method: 'POST',
        headers: { ...AS_BROWSER, Origin: other.url, Cookie: operator.cookie },
        body: new URLSearchParams({ csrf: operator.csrf, account: 'acme', scopes: 'alerts' }),
      });
      expect(answer.status).toBe(404);
    } finally {
      await other.close();
    }
  });
});
