import { z } from 'zod';
import { type Dependency, readiness } from '../../src/observe/probe-server.ts';
import { notReady } from '../errors.ts';
import { publicRoute, type Route } from '../http/route.ts';

const live = z.object({ status: z.literal('live') });
const ready = z.object({ status: z.literal('ready') });

const tag = 'health';

/** GET /health/live and /health/ready, without a key. Metrics are on the metrics port only. */
export function healthRoutes(deps: { dependencies: readonly Dependency[] }): Route[] {
  return [
    publicRoute(
      {
        path: '/health/live',
        operationId: 'getLiveness',
        summary: 'Liveness of the process',
        description: 'Fails when the process is stalled and a restart helps.',
        tag,
        answer: { description: 'The process runs.', data: live, example: { status: 'live' } },
      },
      async () => ({ data: { status: 'live' as const } }),
    ),
    publicRoute(
      {
        path: '/health/ready',
        operationId: 'getReadiness',
        summary: 'Readiness of the API and its dependencies',
        description: '503 names the dependency that is not available.',
        tag,
        answer: { description: 'All dependencies are available.', data: ready, example: { status: 'ready' } },
        errors: ['not_ready'],
      },
      async () => {
        const { isReady, missing } = await readiness(deps.dependencies);
        if (!isReady) {
          throw notReady(
            `not available: ${missing.join(', ')}`,
            missing.map((name) => ({ path: name, message: 'not available' })),
          );
        }
        return { data: { status: 'ready' as const } };
      },
    ),
  ];
}
