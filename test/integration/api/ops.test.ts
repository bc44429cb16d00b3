import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from './api-harness.ts';

let api: TestApi;

const PASSWORD = 'a-password-for-operators';
const login = (password = PASSWORD, user = 'ops') => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

beforeAll(async () => {
  api = await startTestApi({ ops: { password: PASSWORD, queueNames: ['alerts', 'deliveries'] } });
});
afterAll(() => api.close());

describe('the queue dashboard', () => {
  it('serves a page that names no third-party host, under a policy that allows none', async () => {
    const answer = await api.call('/ops/queues', { headers: login() });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('text/html');
    expect(answer.text).toContain('static/js/main');
    expect(answer.text).not.toMatch(/https?:\/\/|fonts\.g|(href|src)="\/\//i);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
  });

  it('serves its scripts and styles itself', async () => {
    const page = await api.call('/ops/queues', { headers: login() });
    const assets = [...page.text.matchAll(/(?:src|href)="(static\/[^"]+)"/g)].map(([, path]) => path);
    expect(assets.length).toBeGreaterThan(2);
    for (const asset of assets) {
      const answer = await api.call(`/ops/queues/${asset}`, { headers: login() });
      expect([asset, answer.status]).toEqual([asset, 200]);
    }
  });

  it('reads the queues', async () => {
    const answer = await api.call('/ops/queues/api/queues', { headers: login() });
    expect(answer.status).toBe(200);
    const { queues } = JSON.parse(answer.text) as { queues: { name: string }[] };
    expect(queues.map(({ name }) => name).sort()).toEqual(['alerts', 'deliveries']);
  });
});

describe('logging in', () => {
  it('is needed for every page, asset and call', async () => {
    for (const path of ['/ops/queues', '/ops/queues/api/queues', '/ops/queues/static/favicon.ico', '/ops', '/ops/x']) {
      for (const headers of [{}, { Authorization: `Bearer ${PASSWORD}` }]) {
        const answer = await api.call(path, { headers });
        expect([path, answer.status, answer.body.error.code]).toEqual([path, 401, 'unauthorized']);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
      }
    }
  });

  it('wants the user ops', async () => {
    expect((await api.call('/ops/queues', { headers: login(PASSWORD, 'root') })).status).toBe(401);
  });
});

describe('changes', () => {
  const path = '/ops/queues/api/queues/alerts/pause';

  it.each([
    [{}, 403],
    [{ Origin: 'https://evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Fetch-Site': 'same-site', Origin: 'self' }, 403],
    [{ 'Sec-Fetch-Site': 'same-origin' }, 200],
    [{ Origin: 'self' }, 200],
  ])('from %j are answered %i', async (headers, status) => {
    const own = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value === 'self' ? api.url : value]),
    );
    const answer = await api.call(path, { method: 'PUT', headers: { ...login(), ...own } });
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.body.error.code).toBe('cross_origin');
  });

  it('take effect', async () => {
    const headers = { ...login(), Origin: api.url };
    const isPaused = async () => {
      const answer = await api.call('/ops/queues/api/queues', { headers });
      const { queues } = JSON.parse(answer.text) as { queues: { name: string; isPaused: boolean }[] };
      return queues.find(({ name }) => name === 'alerts')?.isPaused;
    };
    await api.call(path, { method: 'PUT', headers });
    expect(await isPaused()).toBe(true);
    await api.call('/ops/queues/api/queues/alerts/resume', { method: 'PUT', headers });
    expect(await isPaused()).toBe(false);
  });
});

describe('guessing', () => {
  it('is stopped after ten wrong passwords, for the right one too', async () => {
    const guarded = await startTestApi({ ops: { password: PASSWORD, queueNames: [] } });
    try {
      for (let i = 0; i < 10; i++) {
        expect((await guarded.call('/ops/queues', { headers: login(`guess-${i}`) })).status).toBe(401);
      }
      const answer = await guarded.call('/ops/queues', { headers: login() });
      expect([answer.status, answer.body.error.code]).toEqual([429, 'rate_limited']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      await guarded.close();
    }
  });
});
