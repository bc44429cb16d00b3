import { asError } from '../domain/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { createDataSource } from '../store/data-source.ts';
import { ping } from '../store/ping.ts';
import { Database } from '../store/tx.ts';
import { findClusterHome, keptConnection, ROLE } from './cluster-home.ts';
import { StartupError } from './lifecycle.ts';

export interface OperatorDatabase {
  db: Database;
  close(): Promise<void>;
}

/** Connections of an operator's command: it works through things one after the other. */
const POOL_SIZE = 2;

/**
 * The database that an operator's command speaks to: `databaseUrl`, else the embedded server that `npm start` runs in
 * `dataDir`. Nothing is created, migrated or started.
 * @throws StartupError when there is none, or it does not answer: one line that says which was tried.
 */
export async function openOperatorDatabase(options: {
  name: string;
  databaseUrl: string | undefined;
  dataDir: string;
  log: Logger;
}): Promise<OperatorDatabase> {
  const { name, databaseUrl, dataDir, log } = options;
  const dataSource = createDataSource({
    databaseUrl: databaseUrl || (await embeddedUrl(dataDir, log)),
    poolSize: POOL_SIZE,
    applicationName: `oddswire-${name}`,
    log,
  });
  const which = databaseUrl ? 'the database of DATABASE_URL' : `the embedded database in ${dataDir}`;
  try {
    await dataSource.initialize();
  } catch (error) {
    const hint = databaseUrl ? '' : ' (is `npm start` running?)';
    throw new StartupError(`${which} does not answer${hint}: ${reasonOf(error)}`, error);
  }
  const db = new Database(dataSource);
  try {
    await ping(db);
  } catch (error) {
    await dataSource.destroy();
    throw new StartupError(`${which} does not answer: ${reasonOf(error)}`, error);
  }
  return { db, close: () => dataSource.destroy() };
}

async function embeddedUrl(dataDir: string, log: Logger): Promise<string> {
  const home = await findClusterHome(dataDir);
  if (home === null) {
    throw new StartupError(`no database: DATABASE_URL is not set and there is no embedded one in ${dataDir}`);
  }
  const { port, password } = await keptConnection(home, log);
  return `postgres://${ROLE}:${password}@127.0.0.1:${port}/${ROLE}`;
}

/** A refused connection has an empty message of its own and its reasons inside. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = asError(error) as Error & { code?: string; errors?: Error[] };
  return message || errors?.[0]?.message || code || 'no reason given';
}
