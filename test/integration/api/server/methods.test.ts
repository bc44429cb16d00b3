import { describe, expect, it } from 'vitest';
import { registerConsolePages } from '../../../../api/pages/console/app.ts';
import { createConsoleRouter } from '../../../../api/pages/console/route.ts';
import { loadAssets } from '../../../../api/pages/kit/assets.ts';
import { createOpsRouter } from '../../../../api/pages/ops/actions.ts';
import { registerPages } from '../../../../api/pages/ops/app.ts';
import type { ApiDeps } from '../../../../api/server/api-deps.ts';
import { type OpenApi, operationsOf } from '../../../support/api-contract.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from '../console/console-client.ts';
import { logIn, testOps } from '../ops/ops-client.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

const api = useTestApi({ ops: testOps(), console: {} });

interface Accepted {
  path: string;
  methods: string[];
}

/** The accepted methods of each path, with an id in place of each parameter. A fixed path decides about its own address. */
function byPath(routes: readonly { path: string; method: string }[], fill: RegExp, id: string): Accepted[] {
  const methods = new Map<string, Set<string>>();
  for (const { path, method } of routes) {
    const known = methods.get(path) ?? new Set();
    for (const one of method === 'GET' ? ['GET', 'HEAD'] : [method]) known.add(one);
    methods.set(path, known);
  }
  return [...methods].flatMap(([path, known]) => {
    const filled = path.replaceAll(fill, id);
    if (filled !== path && methods.has(filled)) return [];
    return [{ path: filled, methods: [...known].sort() }];
  });
}

/** The refusals of every method that a path does not accept, and the expected ones. */
async function refusals(paths: readonly Accepted[], call: (path: string, method: string) => Promise<Response>) {
  const refused: string[] = [];
  const expected: string[] = [];
  for (const { path, methods } of paths) {
    for (const method of METHODS.filter((each) => !methods.includes(each))) {
      const answer = await call(path, method);
      refused.push(`${method} ${path}: ${answer.status} ${answer.headers.get('allow')}`);
      expected.push(`${method} ${path}: 405 ${methods.join(', ')}`);
    }
  }
  return { refused, expected };
}

describe('a method that a path does not accept', () => {
  // A segment of a fixed path is also a possible id.
  it.each(['1', 'backtest', 'markets', 'stream'])(
    'is 405 with Allow on every route of the document, with the id %s',
    async (id) => {
      const routes = operationsOf(api.contract.document as OpenApi).map(({ path, method }) => ({
        path,
        method: method.toUpperCase(),
      }));
      const paths = byPath(routes, /\{\w+\}/g, id);
      expect(paths.length).toBeGreaterThan(25);
      const { refused, expected } = await refusals(paths, (path, method) => fetch(`${api.url}${path}`, { method }));
      expect(refused).toEqual(expected);
    },
  );

  it('is 405 with Allow on the paths beside the document', async () => {
    const paths = [
      { path: '/v1/stream', methods: ['GET', 'HEAD'] },
      { path: '/llms.txt', methods: ['GET', 'HEAD'] },
      { path: '/docs/read/api', methods: ['GET', 'HEAD'] },
      { path: '/mcp', methods: ['POST'] },
    ];
    const { refused, expected } = await refusals(paths, (path, method) => fetch(`${api.url}${path}`, { method }));
    expect(refused).toEqual(expected);
  });

  it('is 405 with Allow on every path of the console', async () => {
    const router = createConsoleRouter({} as ApiDeps, {} as never, loadAssets('/ops/assets', 'ops'));
    registerConsolePages(router, { venues: [] } as Partial<ApiDeps> as ApiDeps);
    const routes = router.registered.map(({ kind, path }) => ({ path, method: kind === 'action' ? 'POST' : 'GET' }));
    const client = await signIn(api);
    const { refused, expected } = await refusals(byPath(routes, /:\w+/g, '1'), (path, method) =>
      fetch(`${api.url}${path}`, { method, headers: { cookie: client.cookie, origin: api.url } }),
    );
    expect(refused).toEqual(expected);
  });

  it('is 405 with Allow on every path of the operator pages', async () => {
    const router = createOpsRouter({} as ApiDeps, loadAssets('/ops/assets', 'ops'));
    registerPages(router, { venues: [] } as Partial<ApiDeps> as ApiDeps);
    const routes = router.registered.map(({ kind, path }) => ({ path, method: kind === 'action' ? 'POST' : 'GET' }));
    const client = await logIn(api);
    const { refused, expected } = await refusals(byPath(routes, /:\w+/g, '1'), (path, method) =>
      fetch(`${api.url}${path}`, { method, headers: { cookie: client.cookie, origin: api.url } }),
    );
    expect(refused).toEqual(expected);
  });
});
