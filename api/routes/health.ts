import { readiness } from '../../src/observe/probe-server.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { notReady } from '../errors.ts';
import { sendAccountData } from '../respond.ts';

/** GET /health/live and /health/ready, without a key. Metrics are on the metrics port only. */
export function healthRoutes(router: ApiRouter, deps: ApiDeps): void {
  router.get('/health/live', (ctx) => {
    sendAccountData(ctx, deps, 200, { status: 'live' });
  });
  router.get('/health/ready', async (ctx) => {
    const { isReady, missing } = await readiness(deps.dependencies);
    if (!isReady) {
      throw notReady(
        `not available: ${missing.join(', ')}`,
        missing.map((name) => ({ path: name, message: 'not available' })),
      );
    }
    sendAccountData(ctx, deps, 200, { status: 'ready' });
  });
}
