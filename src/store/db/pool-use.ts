import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

/** Connections of a pool: open ones, idle ones among them, waiting callers, and the maximum. */
interface PoolUse {
  open: number;
  idle: number;
  waiting: number;
  limit: number;
}

/** The pool use of a data source; TypeORM keeps the pool on its driver. */
export function poolUse(dataSource: DataSource): PoolUse {
  const { master } = dataSource.driver as unknown as { master: Pool };
  return { open: master.totalCount, idle: master.idleCount, waiting: master.waitingCount, limit: master.options.max };
}
