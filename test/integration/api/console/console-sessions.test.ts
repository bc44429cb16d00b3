import { describe, expect, it } from 'vitest';
import { revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { SESSION_MAX_MS } from '../../../../src/store/accounts/sessions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { confirmJournal } from '../../../support/journal.ts';
import { ofType, openSse } from '../../../support/sse.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';
import { cookieOf, signIn, trySignIn } from './console-client.ts';

const STORED = sql('test_console_sessions', 'SELECT console_session::text AS row FROM console_session');

describe('sessions of the console', () => {
  const api = useTestApi({ console: {} });

  it('begin with a key, which neither the cookie nor the database holds', async () => {
    const { key } = await api.client();
    const answer = await trySignIn(api, key, { next: '/markets?q=x' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/markets?q=x']);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^oddswire_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    const rows = await api.db.query<{ row: string }>(STORED);
    const secrets = [key, key.split('_').at(-1) ?? '', cookieOf(answer).split('=')[1] ?? ''];
    for (const secret of secrets) expect(JSON.stringify([cookie, rows]).includes(secret)).toBe(secret === secrets[2]);
    expect(JSON.stringify(rows)).not.toContain(secrets[2]);
  });

  it('have a Secure cookie when the browser sees https', async () => {
    const { key } = await api.client();
    const answer = await trySignIn(api, key, {}, api.url.replace('http:', 'https:'));
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-oddswire_console=.*; Secure;/);
    const page = await api.call('/usage', { headers: { ...AS_BROWSER, Cookie: cookieOf(answer) } });
    expect(page.status).toBe(200);
  });

  it.each(['//evil.test', 'https://evil.test/markets', '/\\evil.test', 'javascript:alert(1)'])(
    'never lead to %s',
    async (next) => {
      const { key } = await api.client();
      const answer = await trySignIn(api, key, { next });
      expect(answer.headers.get('location')).toBe('/start');
    },
  );

  it('do not begin with a wrong key, or from another site', async () => {
    const wrong = await trySignIn(api, 'ow_live_wrong');
    expect([wrong.status, wrong.headers.getSetCookie()]).toEqual([403, []]);
    expect(wrong.text).toContain('The key is unknown, expired or revoked.');
    const { key } = await api.client();
    const foreign = await trySignIn(api, key, {}, 'https://evil.test');
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([403, []]);
  });

  it('begin on the first page when a browser loads the address of a failed sign-in again', async () => {
    const to = async (headers: Record<string, string>) => {
      const answer = await api.call('/sign-in', { redirect: 'manual', headers: { ...AS_BROWSER, ...headers } });
      return [answer.status, answer.headers.get('location')];
    };
    const { cookie } = await signIn(api);
    expect([await to({}), await to({ Cookie: cookie })]).toEqual([
      [303, '/'],
      [303, '/'],
    ]);
  });

  it('end when the key is revoked', async () => {
    const browser = await signIn(api);
    expect((await browser.page('/markets')).status).toBe(200);
    const keyId = /ow_live_([^_]+)_/.exec(browser.key)?.[1] ?? '';
    await revokeApiKey(api.db, keyId);
    const answer = await browser.page('/markets?sort=move');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/?next=%2Fmarkets%3Fsort%3Dmove']);
    expect((await browser.get('/console/stream/events')).status).toBe(401);
    expect((await browser.get('/console/session.json')).status).toBe(401);
    expect((await browser.post('/sign-out-everywhere')).status).toBe(401);
  });

  it('end after 12 hours', async () => {
    const browser = await signIn(api);
    const before = api.clock.nowMs;
    api.clock.nowMs += SESSION_MAX_MS - 1;
    expect((await browser.page('/markets')).status).toBe(200);
    api.clock.nowMs += 2;
    expect((await browser.page('/markets')).status).toBe(303);
    api.clock.nowMs = before;
  });

  it('end by a sign-out, alone or everywhere, but not those of other accounts', async () => {
    const client = await api.client();
    const [first, second, third, stranger] = [
      await signIn(api, [], client),
      await signIn(api, [], client),
      await signIn(api, [], client),
      await signIn(api),
    ];
    const out = await first.post('/sign-out');
    expect([out.status, out.headers.get('location')]).toEqual([303, '/']);
    expect(out.headers.getSetCookie().every((cookie) => cookie.includes('Max-Age=0'))).toBe(true);
    expect([(await first.page('/usage')).status, (await second.page('/usage')).status]).toEqual([303, 200]);
    await second.post('/sign-out-everywhere');
    const after = [await second.page('/usage'), await third.page('/usage'), await stranger.page('/usage')];
    expect(after.map(({ status }) => status)).toEqual([303, 303, 200]);
  });

  it('reject a form without their token', async () => {
    const browser = await signIn(api);
    const forged = await browser.post('/sign-out', { csrf: 'forged' });
    const foreign = await browser.post('/sign-out', {}, { Origin: 'https://evil.test' });
    expect([forged.status, foreign.status]).toEqual([403, 403]);
    expect((await browser.page('/usage')).status).toBe(200);
  });

  it('have only the scopes of the key', async () => {
    const browser = await signIn(api, ['webhooks']);
    const answer = await browser.page('/markets');
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('your key lacks the scope markets:read');
    expect(answer.text).not.toContain('href="/markets" aria-current');
    expect((await browser.get('/console/stream/all')).status).toBe(403);
  });

  it('end their streams, and not those of other sessions', async () => {
    const journal = confirmJournal(api.db);
    try {
      const browser = await signIn(api);
      const reader = await openSse(`${api.url}/console/stream/all`, { cookie: browser.cookie });
      await reader.next(ofType('heartbeat'));
      const other = await openSse(`${api.url}/console/stream/all`, { cookie: (await signIn(api)).cookie });
      await browser.post('/sign-out-everywhere');
      await reader.ended;
      const seen = other.events.length;
      await other.next(() => other.events.length > seen);
      other.close();
    } finally {
      await journal.stop();
    }
  });
});

describe('the paths of the console', () => {
  const api = useTestApi({ console: {} });

  it('lead a browser to the sign-in, and answer a program with 401', async () => {
    const program = await api.call('/markets', { redirect: 'manual' });
    expect([program.status, program.body.error.code]).toEqual([401, 'unauthorized']);
    const browser = await api.call('/markets', { redirect: 'manual', headers: AS_BROWSER });
    expect([browser.status, browser.headers.get('location')]).toEqual([303, '/?next=%2Fmarkets']);
  });

  it('have a strict policy, and no answer is cached', async () => {
    const { headers } = await api.call('/', { headers: AS_BROWSER });
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each(['/marketsx', '/sign-in/x', '/v1', '/index.html', '/accounts'])(
    '%s stays unknown to the API',
    async (path) => {
      const answer = await api.call(path, { headers: AS_BROWSER });
      expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found']);
    },
  );

  it('count as requests of the account', async () => {
    const browser = await signIn(api);
    await api.db.query(sql('test_limit_account', 'UPDATE account SET rate_per_minute = 3 WHERE id = $1'), [
      browser.accountId,
    ]);
    const statuses: number[] = [];
    for (let n = 0; n < 4; n++) statuses.push((await browser.page('/usage')).status);
    expect(statuses).toContain(429);
  });
});
