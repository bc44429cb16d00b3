import pg from 'pg';
import { expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createDataSource } from '../../../../src/store/db/data-source.ts';
import { sqlState } from '../../../../src/store/db/tx.ts';
import { createTestDatabase } from '../../../support/postgres/database.ts';

const LOCK_NOT_AVAILABLE = '55P03';

it('a migration fails on a locked table, so that no statement queues behind its lock request', async () => {
  const test = await createTestDatabase({ poolSize: 1 });
  const holder = new pg.Client({ connectionString: test.url });
  await holder.connect();
  const dataSource = createDataSource({
    databaseUrl: test.url,
    poolSize: 1,
    applicationName: 'test-migrate',
    lockTimeoutMs: 50,
    log: createLogger({ process: 'test', level: 'silent' }),
  });
  await dataSource.initialize();
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT FROM alert');
    const migration = dataSource.query('ALTER TABLE alert ADD COLUMN later int');
    await expect(migration.catch((error: unknown) => Promise.reject(sqlState(error)))).rejects.toBe(LOCK_NOT_AVAILABLE);
    await holder.query('COMMIT');
    await dataSource.query('ALTER TABLE alert ADD COLUMN later int');
  } finally {
    await dataSource.destroy();
    await holder.end();
    await test.drop();
  }
});
