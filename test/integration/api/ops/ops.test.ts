import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAccountLimits } from '../../../../api/access/account-limits.ts';
import { parseCidrs } from '../../../../src/domain/webhooks/address-policy.ts';
import { addRateUsage } from '../../../../src/store/accounts/rate-usage.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { startTestApi, type TestApi, useTestApi } from '../api-harness.ts';
import { AS_BROWSER, logIn, OPS_PASSWORDS, type OpsClient, testOps, tryLogin } from './ops-client.ts';

const api = useTestApi({ ops: testOps({ queueNames: ['alerts', 'deliveries'] }) });
let operator: OpsClient;
let viewer: OpsClient;

beforeAll(async () => {
  [operator, viewer] = await Promise.all([logIn(api), logIn(api, 'viewer')]);
});

describe('the queue dashboard', () => {
  it('serves a page without third-party hosts and with a policy that blocks them', async () => {
    const answer = await viewer.page('/ops/queues');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('text/html');
    expect(answer.text).toContain('static/js/main');
    expect(answer.text).not.toMatch(/https?:\/\/|fonts\.g|(href|src)="\/\//i);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
  });

  it('serves its own scripts and styles', async () => {
    const page = await operator.page('/ops/queues');
    const assets = [...page.text.matchAll(/(?:src|href)="(static\/[^"]+)"/g)].map(([, path]) => path);
    expect(assets.length).toBeGreaterThan(2);
    for (const asset of assets) {
      const answer = await operator.call(`/ops/queues/${asset}`);
      expect([asset, answer.status]).toEqual([asset, 200]);
    }
    const script = assets.find((asset) => asset?.endsWith('.js'));
    const { headers } = await operator.call(`/ops/queues/${script}`, { headers: { 'Accept-Encoding': 'br' } });
    expect([script, headers.get('content-encoding')]).toEqual([script, 'br']);
  });

  it('shows times in UTC', async () => {
    const { text } = await viewer.page('/ops/queues');
    expect(text.match(/"timeZone":\s*"UTC"/g)).toHaveLength(3);
  });

  it('reads the queues', async () => {
    const answer = await viewer.call('/ops/queues/api/queues');
    expect(answer.status).toBe(200);
    const { queues } = JSON.parse(answer.text) as { queues: { name: string }[] };
    expect(queues.map(({ name }) => name).sort()).toEqual(['alerts', 'deliveries']);
  });
});

describe('the login', () => {
  const paths = [
    '/ops',
    '/ops/queues',
    '/ops/queues/api/queues',
    '/ops/queues/static/favicon.ico',
    '/ops/audit',
    '/ops/x',
  ];

  it('is required for every page, dashboard asset and call', async () => {
    for (const path of paths) {
      const basic = `Basic ${Buffer.from(`ops:${OPS_PASSWORDS.operator}`).toString('base64')}`;
      for (const headers of [{}, { Authorization: `Bearer ${OPS_PASSWORDS.operator}` }, { Authorization: basic }]) {
        const answer = await api.call(path, { headers });
        expect([path, answer.status, answer.body.error.code]).toEqual([path, 401, 'unauthorized']);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Session /);
      }
    }
  });

  it('is the redirect target of a browser and redirects back', async () => {
    for (const path of [...paths, '/ops/audit?cursor=a&b=%22']) {
      const answer = await api.call(path, { headers: AS_BROWSER, redirect: 'manual' });
      expect(answer.status).toBe(303);
      const to = new URL(answer.headers.get('location') ?? '', api.url);
      expect([to.pathname, to.searchParams.get('next') ?? '/ops']).toEqual(['/ops/login', path]);
      const form = await api.call(to.pathname + to.search);
      const [, next = ''] = /name="next" value="([^"]*)"/.exec(form.text) ?? [];
      const entered = await tryLogin(api, OPS_PASSWORDS.viewer, { next: decode(next) });
      expect([entered.status, entered.headers.get('location')]).toEqual([303, path]);
    }
  });

  it.each([
    'https://evil.example/ops',
    '//evil.example/ops',
    '/ops/../v1/venues',
    '/ops/../../evil',
    '/opsx',
    '/ops\\..\\x',
    '/ops/login',
    'javascript:alert(1)',
  ])('never redirects to %s', async (next) => {
    const entered = await tryLogin(api, OPS_PASSWORDS.viewer, { next });
    const to = new URL(entered.headers.get('location') ?? '', api.url);
    expect(to.origin).toBe(api.url);
    expect(to.pathname).toMatch(/^\/ops($|\/(?!login))/);
  });

  it('sets a cookie that is hidden from scripts and from other sites', async () => {
    const [cookie] = (await tryLogin(api, OPS_PASSWORDS.operator)).headers.getSetCookie();
    expect(cookie).toMatch(/^oddswire_ops=[A-Za-z0-9_-]{43}; Path=\/ops; HttpOnly; SameSite=Strict$/);
  });

  it('accepts only the complete password of a role', async () => {
    for (const password of ['', 'wrong', `${OPS_PASSWORDS.operator} `, OPS_PASSWORDS.operator.slice(0, -1), 'ops']) {
      const fresh = await startTestApiOnce();
      const answer = await tryLogin(fresh, password);
      expect([password, answer.status]).toEqual([password, 403]);
      expect(answer.headers.getSetCookie()).toEqual([]);
      expect(answer.text).toContain('The name or the password is wrong.');
    }
  });

  it('rejects a form of another site', async () => {
    const cases = [{}, { Origin: 'https://evil.example' }, { Origin: 'null' }, { 'Sec-Fetch-Site': 'cross-site' }];
    for (const headers of cases) {
      const body = new URLSearchParams({ password: OPS_PASSWORDS.operator });
      const answer = await api.call('/ops/login', { method: 'POST', headers: headers as Record<string, string>, body });
      expect([answer.status, answer.body.error.code]).toEqual([403, 'cross_origin']);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });
});

let once: Promise<TestApi> | undefined;
function startTestApiOnce(): Promise<TestApi> {
  once ??= startTestApi({ ops: testOps() });
  return once;
}
afterAll(async () => (await once)?.close());

describe('writes to the queues', () => {
  const path = '/ops/queues/api/queues/alerts/pause';

  it.each([
    [{}, 403],
    [{ Origin: 'https://evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Fetch-Site': 'same-site', Origin: 'self' }, 403],
    [{ 'Sec-Fetch-Site': 'same-origin' }, 200],
    [{ Origin: 'self' }, 200],
  ])('with %j are answered with %i', async (headers, status) => {
    const own = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value === 'self' ? api.url : value]),
    );
    const answer = await operator.call(path, { method: 'PUT', headers: own });
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.body.error.code).toBe('cross_origin');
  });

  it('take effect and appear in the audit log', async () => {
    const headers = { Origin: api.url };
    const isPaused = async () => {
      const answer = await operator.call('/ops/queues/api/queues');
      const { queues } = JSON.parse(answer.text) as { queues: { name: string; isPaused: boolean }[] };
      return queues.find(({ name }) => name === 'alerts')?.isPaused;
    };
    await operator.call(path, { method: 'PUT', headers });
    expect(await isPaused()).toBe(true);
    await operator.call('/ops/queues/api/queues/alerts/resume', { method: 'PUT', headers });
    expect(await isPaused()).toBe(false);
    const { text } = await viewer.page('/ops/audit');
    expect(text).toContain('PUT /api/queues/alerts/pause');
    expect(text).toContain('PUT /api/queues/alerts/resume');
    await operator.call('/ops/queues/api/queues/no-such-queue/pause', { method: 'PUT', headers });
    const { actions } = await listActions(api.db, 2);
    expect(actions).toMatchObject([
      { action: 'queue.write', role: 'operator', status: 'failed', result: 'answered 404' },
      { action: 'queue.write', role: 'operator', status: 'done', result: 'answered 200' },
    ]);
  });

  it('are rejected for viewers with every method', async () => {
    for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
      for (const target of [path, '/ops/queues/api/queues/alerts', '/ops/queues']) {
        const answer = await viewer.call(target, { method, headers: { Origin: api.url } });
        expect([method, target, answer.status]).toEqual([method, target, 403]);
        expect(answer.body.error.code).toBe('insufficient_scope');
      }
    }
  });

  it('are rejected as forms, which other sites could send', async () => {
    for (const body of [new URLSearchParams({ name: 'x' }), 'text']) {
      const answer = await operator.call('/ops/queues/api/queues/alerts/add', {
        method: 'POST',
        headers: { Origin: api.url },
        body,
      });
      expect([answer.status, answer.body.error.code]).toEqual([415, 'unsupported_media_type']);
    }
  });
});

describe('password guessing', () => {
  it('gets 429 after ten wrong passwords, while the right one and sessions stay valid', async () => {
    const guarded = await startTestApi({ ops: testOps() });
    try {
      const inside = await logIn(guarded);
      for (let i = 0; i < 10; i++) expect((await tryLogin(guarded, `guess-${i}`)).status).toBe(403);
      const body = new URLSearchParams({ password: 'guess-10' });
      const answer = await guarded.call('/ops/login', { method: 'POST', headers: { Origin: guarded.url }, body });
      expect([answer.status, answer.body.error.code]).toEqual([429, 'rate_limited']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await tryLogin(guarded, OPS_PASSWORDS.operator)).status).toBe(303);
      expect((await inside.page('/ops/audit')).status).toBe(200);
      // All guesses cause one entry, so that guessing cannot fill the log.
      expect((await inside.page('/ops/audit')).text.match(/wrong password/g)).toHaveLength(1);
    } finally {
      await guarded.close();
    }
  });

  it('counts per client address behind a trusted proxy', async () => {
    const guarded = await startTestApi({ ops: testOps({ trustedProxies: parseCidrs('127.0.0.1/32') }) });
    const tryFrom = async (address: string, password: string) => {
      const headers = { Origin: guarded.url, 'X-Forwarded-For': address };
      const body = new URLSearchParams({ password });
      return (await guarded.call('/ops/login', { method: 'POST', redirect: 'manual', headers, body })).status;
    };
    try {
      for (let i = 0; i < 10; i++) expect(await tryFrom('203.0.113.7', `guess-${i}`)).toBe(403);
      expect(await tryFrom('203.0.113.7', 'guess')).toBe(429);
      expect(await tryFrom('203.0.113.8', 'guess')).toBe(403);
    } finally {
      await guarded.close();
    }
  });

  it('counts in all processes together', async () => {
    const clock = { nowMs: 1_800_000_000_000 };
    const now = () => clock.nowMs;
    const first = await startTestApi({ ops: testOps(), now });
    const limitsOfProcess = () =>
      createAccountLimits({
        addUsage: (entries) => addRateUsage(first.db, entries),
        defaults: { requests: 0, cold_reads: 0 },
        log: first.deps.log,
        now,
      });
    const limits = [limitsOfProcess(), limitsOfProcess()] as const;
    const processes = await Promise.all(
      limits.map((own) => startTestApi({ ops: testOps(), now, limits: own }, { beside: first })),
    );
    const [here, there] = processes as [TestApi, TestApi];
    try {
      for (let i = 0; i < 10; i++) expect((await tryLogin(here, `guess-${i}`)).status).toBe(403);
      expect((await tryLogin(there, 'guess')).status).toBe(403);
      for (const own of limits) await own.sync();
      expect((await tryLogin(there, 'guess')).status).toBe(429);
      expect((await tryLogin(there, OPS_PASSWORDS.operator)).status).toBe(303);
    } finally {
      for (const own of limits) await own.close();
      for (const process of processes) await process.close();
      await first.close();
    }
  });
});

function decode(html: string): string {
  return html.replace(/&#(\d+);/g, (_, codePoint: string) => String.fromCharCode(Number(codePoint)));
}
