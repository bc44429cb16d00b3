import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

/** Connections of a pool: open ones, how many of those are idle, callers that wait, and how many there may be. */
interface PoolUse {
  open: number;
  idle: number;
  waiting: number;
  limit: number;
}

/** Use of a data source's pool, which TypeORM keeps on its driver. */
export function poolUse(dataSource: DataSource): PoolUse {
  const { master } = dataSource.driver as unknown as { master: Pool };
  return { open: master.totalCount, idle: master.idleCount, waiting: master.waitingCount, limit: master.options.max };
}
