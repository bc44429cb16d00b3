import { beforeAll, describe, expect, it } from 'vitest';
import { loadAssets } from '../../../../api/pages/kit/assets.ts';
import { createOpsRouter } from '../../../../api/pages/ops/actions.ts';
import { registerPages } from '../../../../api/pages/ops/app.ts';
import type { ApiDeps } from '../../../../api/server/api-deps.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER, logIn, type OpsClient, testOps } from './ops-client.ts';

const api = useTestApi({ ops: testOps() });
let operator: OpsClient;
let viewer: OpsClient;

beforeAll(async () => {
  [operator, viewer] = await Promise.all([logIn(api), logIn(api, 'viewer')]);
});

/** The registered routes with filled path parameters. Nothing runs them. */
const routes = (() => {
  const router = createOpsRouter({} as ApiDeps, loadAssets('/ops/assets', 'ops'));
  registerPages(router, { venues: [] } as Partial<ApiDeps> as ApiDeps);
  return router.registered.map(({ kind, path }) => ({ kind, path: path.replaceAll(/:\w+/g, '1') }));
})();
const pages = routes.filter(({ kind }) => kind === 'page');
const data = routes.filter(({ kind }) => kind === 'data');
const actions = [...routes.filter(({ kind }) => kind === 'action').map(({ path }) => path), '/ops/logout-everywhere'];

it('the list of routes has every kind', () => {
  expect(pages.length).toBeGreaterThan(6);
  expect(data.length).toBeGreaterThan(0);
  expect(actions.length).toBeGreaterThan(3);
  expect(data.filter(({ path }) => !path.endsWith('.json'))).toEqual([]);
  expect(routes.filter(({ path }) => !/^\/ops($|\/)/.test(path))).toEqual([]);
});

describe('reading', () => {
  it.each([...pages, ...data])('$path requires the session of a viewer or an operator', async ({ path, kind }) => {
    for (const client of [viewer, operator]) {
      const answer = await client.page(path);
      expect([path, answer.status < 500 && answer.status !== 401 && answer.status !== 403]).toEqual([path, true]);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      const policy = answer.headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(policy).toContain("frame-ancestors 'none'");
      if (kind === 'page')
        expect(answer.text).not.toMatch(/<script(?![^>]*(src="\/ops\/|type="application\/json"))|\son\w+=|style=/i);
    }
    expect((await api.call(path)).status).toBe(401);
    expect((await api.call(path, { redirect: 'manual', headers: AS_BROWSER })).status).toBe(303);
  });

  it('shows viewers no form except the logout', async () => {
    for (const { path } of pages) {
      const { text } = await viewer.page(path);
      const forms = [...text.matchAll(/<form[^>]*method="post"[^>]*action="([^"]+)"/g)].map(([, action]) => action);
      expect([path, forms]).toEqual([path, ['/ops/logout']]);
    }
  });
});

describe('the action', () => {
  it.each(actions)('%s requires an operator and a form of the same session', async (path) => {
    const expectRejection = async (
      code: string,
      send: Promise<{ status: number; body: { error: { code: string } } }>,
    ) => {
      const { status, body } = await send;
      expect([path, status, body.error.code]).toEqual([path, code === 'unauthorized' ? 401 : 403, code]);
    };
    const asScript = { Accept: 'application/json' };
    await expectRejection('insufficient_scope', viewer.post(path, {}, asScript));
    const before = await listActions(api.db, 1);
    expect(before.actions).toMatchObject([
      { role: 'viewer', status: 'refused', result: expect.stringMatching(/^insufficient_scope/) },
    ]);
    await expectRejection('cross_origin', operator.post(path, { csrf: '' }, asScript));
    // A token of another session.
    await expectRejection('cross_origin', operator.post(path, { csrf: viewer.csrf }, asScript));
    await expectRejection('cross_origin', operator.post(path, {}, { ...asScript, Origin: 'https://evil.example' }));
    await expectRejection('cross_origin', operator.post(path, {}, { ...asScript, 'Sec-Fetch-Site': 'cross-site' }));
    const body = new URLSearchParams({ csrf: operator.csrf });
    await expectRejection('unauthorized', api.call(path, { method: 'POST', headers: { Origin: api.url }, body }));
    const asJson = await operator.call(path, {
      method: 'POST',
      headers: { Origin: api.url, 'Content-Type': 'application/json' },
      body: JSON.stringify({ csrf: operator.csrf }),
    });
    expect(asJson.status).toBe(415);
    expect((await operator.call(path, { method: 'DELETE', headers: { Origin: api.url } })).status).toBe(405);
    // No request reached an action.
    expect((await listActions(api.db, 1)).actions[0]?.pk).toBe(before.actions[0]?.pk);
  });
});

describe('a failure', () => {
  it('is a page for a browser and the envelope for a script', async () => {
    const page = await viewer.page('/ops/no-such-page');
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(page.text).toContain('the page does not exist');
    expect(page.text).toContain('<nav');
    const answer = await viewer.call('/ops/no-such-page');
    expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found']);
    expect((await viewer.page('/ops/audit?cursor=x')).status).toBe(400);
  });
});

describe('the asset files', () => {
  it('are compressed, and cached for a year under an address that changes with their content', async () => {
    const { text } = await operator.page('/ops');
    const [address = ''] = /\/ops\/assets\/[0-9a-f]{16}\/pages\.css/.exec(text) ?? [];
    const answer = await api.call(address);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    const plain = await api.call(address, { headers: { 'Accept-Encoding': 'identity' } });
    expect([plain.headers.get('content-encoding'), plain.text]).toEqual([null, answer.text]);
    const outdated = await api.call('/ops/assets/0000000000000000/lightweight-charts.js');
    expect([outdated.status, outdated.headers.get('cache-control')]).toEqual([200, 'no-store']);
  });

  it('answer the style sheet of the former release with the current one', async () => {
    const former = await api.call('/ops/assets/0000000000000000/ops.css');
    expect([former.status, former.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(former.text).toContain('.console {');
  });

  it('are exactly the files of the folder', async () => {
    const paths = ['/app.ts', '/..%2fapp.ts', '/../app.ts', '/constructor', '/a/pages.css', '', '/'];
    for (const path of paths) {
      expect([path, (await api.call(`/ops/assets/x${path}`)).status]).toEqual([path, 404]);
    }
    expect((await api.call('/ops/assets/x/pages.css', { method: 'POST', headers: { Origin: api.url } })).status).toBe(
      405,
    );
  });
});
