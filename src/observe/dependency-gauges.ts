import type { Collector } from './collectors.ts';
import type { Metrics } from './metrics.ts';
import { type Dependency, readiness } from './probe-server.ts';

/** Whether each dependency answers. */
export function dependencyGauge({ dependencyUp }: Metrics, dependencies: readonly Dependency[]): Collector {
  return {
    name: 'dependencies',
    async read() {
      const { missing } = await readiness(dependencies);
      for (const { name } of dependencies) dependencyUp.set({ dependency: name }, missing.includes(name) ? 0 : 1);
    },
    forget: () => dependencyUp.reset(),
  };
}

interface Pool {
  pool: string;
  open: number;
  idle: number;
  waiting: number;
  limit: number;
}

/** The current use of the connection pools. */
export function poolGauges(metrics: Metrics, pools: () => readonly Pool[]): Collector {
  const { poolConnections, poolWaiting, poolLimit } = metrics;
  return {
    name: 'pools',
    async read() {
      for (const { pool, open, idle, waiting, limit } of pools()) {
        poolConnections.set({ pool, state: 'busy' }, open - idle);
        poolConnections.set({ pool, state: 'idle' }, idle);
        poolWaiting.set({ pool }, waiting);
        poolLimit.set({ pool }, limit);
      }
    },
    forget: () => undefined,
  };
}
