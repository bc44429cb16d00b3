import { createServer, type Server } from 'node:http';
import type { Metrics } from './metrics.ts';

/** One thing a process cannot work without. `check` rejects when it is missing. */
export interface Dependency {
  name: string;
  check(): Promise<void>;
}

export interface Readiness {
  isReady: boolean;
  /** Names of what is missing. */
  missing: string[];
}

const CHECK_TIMEOUT_MS = 2_000;

/** Asks every dependency at once. A check that does not answer in 2 s counts as missing. */
export async function readiness(dependencies: readonly Dependency[]): Promise<Readiness> {
  const results = await Promise.allSettled(dependencies.map(async (dependency) => withTimeout(dependency.check())));
  const missing = dependencies.flatMap(({ name }, index) => (results[index]?.status === 'rejected' ? [name] : []));
  return { isReady: missing.length === 0, missing };
}

async function withTimeout(check: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer')), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([check, expiry]);
  } finally {
    clearTimeout(timer);
  }
}

/** `/metrics`, `/health/live` and `/health/ready` of one process. The caller listens and closes. */
export function createProbeServer(metrics: Metrics, dependencies: readonly Dependency[]): Server {
  return createServer((request, response) => {
    const path = (request.url ?? '/').split('?')[0];
    void answer(path ?? '/', metrics, dependencies).then(
      ({ status, type, body }) => response.writeHead(status, { 'Content-Type': type }).end(body),
      () => response.writeHead(500).end(),
    );
  });
}

async function answer(path: string, metrics: Metrics, dependencies: readonly Dependency[]) {
  const json = 'application/json';
  if (path === '/metrics') {
    return { status: 200, type: metrics.registry.contentType, body: await metrics.registry.metrics() };
  }
  if (path === '/health/live') return { status: 200, type: json, body: '{"status":"live"}' };
  if (path === '/health/ready') {
    const { isReady, missing } = await readiness(dependencies);
    return {
      status: isReady ? 200 : 503,
      type: json,
      body: JSON.stringify(isReady ? { status: 'ready' } : { status: 'not_ready', missing }),
    };
  }
  return { status: 404, type: json, body: '{"status":"not_found"}' };
}
