import pg from 'pg';
import { createLogger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import { createDataSource } from '../../../src/store/db/data-source.ts';
import { migrate } from '../../../src/store/db/migrate.ts';
import { TEMPLATE_DATABASE } from './database.ts';

/** Creates the template of test databases: our schema and BullMQ's, empty. */
export async function createTemplate(adminUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  await client.query(`DROP DATABASE IF EXISTS ${TEMPLATE_DATABASE}`);
  await client.query(`CREATE DATABASE ${TEMPLATE_DATABASE}`);
  await client.end();
  const url = new URL(adminUrl);
  url.pathname = `/${TEMPLATE_DATABASE}`;
  const log = createLogger({ process: 'test', level: 'silent' });
  const dataSource = createDataSource({ databaseUrl: url.href, poolSize: 1, applicationName: 'template', log });
  await dataSource.initialize();
  await migrate(dataSource);
  await dataSource.destroy();
  const backend = createQueueBackend({ databaseUrl: url.href, prefix: 'test', workers: 0, log });
  await backend.migrate();
  await backend.close();
}
