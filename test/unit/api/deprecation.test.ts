import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { ApiState } from '../../../api/context.ts';
import { publicRoute, register } from '../../../api/http/route.ts';
import { envelope } from '../../../api/middleware/envelope.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import type { ApiDeps } from '../../../api/server/api-deps.ts';
import { createLogger } from '../../../src/observe/logger.ts';

const old = publicRoute(
  {
    path: '/old',
    operationId: 'getOld',
    summary: 'Read a deprecated resource',
    description: 'A route that ends.',
    tag: 'health',
    deprecated: { since: '2026-11-01', sunset: '2027-05-01T00:00:00Z', link: 'https://docs.example.com/old' },
    answer: { description: 'It.', data: z.object({ id: z.string() }), example: { id: 'a' } },
  },
  async () => ({ data: { id: 'a' } }),
);

it('a deprecated route announces it in the document and in every answer, unlike other routes', async () => {
  const document = openApiDocument([old.contract], { decimalFormat: 'number', venues: [] });
  expect(document.paths?.['/old']?.get?.deprecated).toBe(true);
  const { deprecated: _, ...lasting } = old.contract;
  const app = new Koa<ApiState>();
  const router = new Router<ApiState>();
  const failing = { contract: { ...old.contract, path: '/fails' }, run: () => Promise.reject(new Error('broken')) };
  const deps = { decimalFormat: 'number' } as ApiDeps;
  register(router, deps, [old, failing, { ...old, contract: { ...lasting, path: '/new' } }]);
  app.use(async (ctx, next) => {
    ctx.state = { requestId: 'r' } as unknown as ApiState;
    await next();
  });
  app.use(envelope({ now: Date.now, log: createLogger({ process: 'test', level: 'silent' }) }));
  app.use(router.routes());
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    for (const [path, expected] of [
      ['/old', 200],
      ['/fails', 500],
    ] as const) {
      const { headers, status } = await fetch(`http://127.0.0.1:${port}${path}`);
      expect(status).toBe(expected);
      expect(headers.get('deprecation')).toBe(`@${Date.UTC(2026, 10, 1) / 1000}`);
      expect(headers.get('sunset')).toBe('Sat, 01 May 2027 00:00:00 GMT');
      expect(headers.get('link')).toBe('<https://docs.example.com/old>; rel="deprecation"; type="text/html"');
    }
    const { headers } = await fetch(`http://127.0.0.1:${port}/new`);
    expect(['deprecation', 'sunset', 'link'].map((name) => headers.get(name))).toEqual([null, null, null]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
