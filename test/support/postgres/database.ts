import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createDataSource } from '../../../src/store/db/data-source.ts';
import { Database } from '../../../src/store/db/tx.ts';
import { forTests } from '../for-tests.ts';

/** Created once per run by global-setup: our schema and BullMQ's, empty. */
export const TEMPLATE_DATABASE = 'oddswire_template';

export interface TestDatabase {
  url: string;
  db: Database;
  /** Ends our connections. */
  release(): Promise<void>;
  /** Drops the database, and ends all connections to it. */
  drop(): Promise<void>;
}

/** A separate database, copied from the template: tests run in parallel on one cluster, the run's by default. */
export async function createTestDatabase(
  options: { poolSize?: number; idleInTransactionMs?: number; adminUrl?: string } = {},
): Promise<TestDatabase> {
  const adminUrl = options.adminUrl ?? inject('adminUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await admin(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE_DATABASE} STRATEGY FILE_COPY`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const dataSource = createDataSource({
    databaseUrl: url.href,
    poolSize: options.poolSize ?? 10,
    applicationName: 'oddswire-test',
    ...(options.idleInTransactionMs !== undefined && { idleInTransactionMs: options.idleInTransactionMs }),
    log: createLogger({ process: 'test', level: 'silent' }),
  });
  await dataSource.initialize();
  const release = async () => {
    if (dataSource.isInitialized) await dataSource.destroy();
  };
  return {
    url: url.href,
    db: new Database(dataSource),
    release,
    async drop() {
      await release();
      await admin(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** A separate database for the tests of a file or a group. */
export function useTestDatabase(options: Parameters<typeof createTestDatabase>[0] = {}): TestDatabase {
  return forTests(
    () => createTestDatabase(options),
    (test) => test.drop(),
  );
}

async function admin(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
