import { createServer, type Server } from 'node:http';
import { briefly } from '../domain/values/caches.ts';
import { asError } from '../domain/values/errors.ts';
import { within } from '../domain/values/signals.ts';
import type { Metrics } from './metrics.ts';

/** A dependency of the process. `check` rejects when it is unavailable. */
export interface Dependency {
  name: string;
  check(): Promise<void>;
  /** The process works without it: /health/ready lists it when it is unavailable, but stays 200. */
  mayBeMissing?: boolean;
}

interface Readiness {
  isReady: boolean;
  /** Names of the unavailable dependencies. */
  missing: string[];
}

const CHECK_TIMEOUT_MS = 2_000;

/** Clients without a key may ask for readiness, so the number of their requests must not decide how often a dependency is asked. */
const CHECK_FRESH_MS = 1_000;

/** The dependency with one check per second: callers share its outcome, also a failure. */
export function checkedOncePerSecond({ check, ...dependency }: Dependency): Dependency {
  const outcome = briefly(CHECK_FRESH_MS, () => check().then(() => undefined, asError));
  return {
    ...dependency,
    async check() {
      const error = await outcome();
      if (error) throw error;
    },
  };
}

/** Checks all dependencies at once. A check without an answer in 2 s counts as unavailable. */
export async function readiness(dependencies: readonly Dependency[]): Promise<Readiness> {
  const results = await Promise.allSettled(
    dependencies.map(async (dependency) => within(CHECK_TIMEOUT_MS, dependency.check(), noAnswer)),
  );
  const missing = dependencies.filter((_, index) => results[index]?.status === 'rejected');
  return { isReady: missing.every(({ mayBeMissing }) => mayBeMissing), missing: missing.map(({ name }) => name) };
}

function noAnswer(): never {
  throw new Error('no answer');
}

/** The checks of the process itself, beside its dependencies. */
interface Probed {
  readonly metrics: Pick<Metrics, 'registry' | 'text'>;
  readonly dependencies: readonly Dependency[];
  /** The reasons why the work of the process is stalled; empty otherwise. */
  stallReasons(): Promise<readonly string[]>;
}

/** Alive unless the work is stalled although all dependencies answer: only then does a restart help. */
export async function liveness({ dependencies, stallReasons }: Omit<Probed, 'metrics'>): Promise<readonly string[]> {
  const reasons = await stallReasons();
  return reasons.length === 0 || !(await readiness(dependencies)).isReady ? [] : reasons;
}

/** `/metrics`, `/health/live` and `/health/ready` of one process. The caller listens and closes. */
export function createProbeServer(probed: Probed): Server {
  return createServer((request, response) => {
    const path = (request.url ?? '/').split('?')[0];
    void answer(path ?? '/', probed).then(
      ({ status, type, body }) => response.writeHead(status, { 'Content-Type': type }).end(body),
      () => response.writeHead(500).end(),
    );
  });
}

async function answer(path: string, probed: Probed) {
  const { metrics, dependencies } = probed;
  const json = (status: number, body: object) => ({ status, type: 'application/json', body: JSON.stringify(body) });
  if (path === '/metrics') {
    return { status: 200, type: metrics.registry.contentType, body: await metrics.text() };
  }
  if (path === '/health/live') {
    const reasons = await liveness(probed);
    return reasons.length === 0 ? json(200, { status: 'live' }) : json(503, { status: 'wedged', wedged: reasons });
  }
  if (path === '/health/ready') {
    const { isReady, missing } = await readiness(dependencies);
    if (!isReady) return json(503, { status: 'not_ready', missing });
    const reasons = await probed.stallReasons();
    return reasons.length === 0
      ? json(200, { status: 'ready' })
      : json(503, { status: 'not_ready', missing, wedged: reasons });
  }
  return json(404, { status: 'not_found' });
}
