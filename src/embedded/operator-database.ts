import { asError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { StartupError } from '../runtime/lifecycle.ts';
import { createDataSource } from '../store/db/data-source.ts';
import { ping } from '../store/db/ping.ts';
import { Database } from '../store/db/tx.ts';
import { findClusterHome, keptConnection, ROLE } from './cluster-home.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts';

interface OperatorDatabase {
  db: Database;
  close(): Promise<void>;
}

/** Connections of an operator's command, which works sequentially. */
const POOL_SIZE = 2;

/** The time that commands, connected while this process kept the server, have to finish before it stops. */
const OTHERS_MS = 10_000;

/**
 * The database of an operator's command: `databaseUrl`, else the embedded database of `dataDir`, whose server runs for the
 * duration of the command if it is not running. Creates and migrates nothing.
 * @throws StartupError when it is missing or does not answer: one line that names the address
 */
export async function openOperatorDatabase(options: {
  name: string;
  databaseUrl: string | undefined;
  dataDir: string;
  log: Logger;
}): Promise<OperatorDatabase> {
  const { databaseUrl, dataDir } = options;
  if (databaseUrl) return connect(options, databaseUrl, 'the database of DATABASE_URL');
  const source = `the embedded database in ${dataDir}`;
  const url = await embeddedUrl(dataDir, options.log);
  try {
    return await connect(options, url, source);
  } catch (error) {
    if (!isRefused(error)) throw error;
  }
  const server = await start(options, source);
  try {
    const { db, close } = await connect(options, server.url, source);
    return { db, close: () => close().finally(() => letGo(server)) };
  } catch (error) {
    await letGo(server);
    throw error;
  }
}

async function connect(
  { name, log }: { name: string; log: Logger },
  databaseUrl: string,
  source: string,
): Promise<OperatorDatabase> {
  const applicationName = `oddswire-${name}`;
  const dataSource = createDataSource({ databaseUrl, poolSize: POOL_SIZE, applicationName, log });
  try {
    await dataSource.initialize();
  } catch (error) {
    throw new StartupError(`${source} does not answer: ${reasonOf(error)}`, error);
  }
  const db = new Database(dataSource);
  try {
    await ping(db);
  } catch (error) {
    await dataSource.destroy();
    throw new StartupError(`${source} does not answer: ${reasonOf(error)}`, error);
  }
  return { db, close: () => dataSource.destroy() };
}

/** Whether the port of the embedded server is free. */
function isRefused(error: unknown): boolean {
  const { cause } = asError(error);
  const { code, errors } = (cause ?? {}) as { code?: string; errors?: { code?: string }[] };
  return [code, ...(errors ?? []).map((each) => each.code)].includes('ECONNREFUSED');
}

async function start({ dataDir, log }: { dataDir: string; log: Logger }, source: string): Promise<EmbeddedPostgres> {
  try {
    return await startEmbeddedPostgres({ dataDir, log });
  } catch (error) {
    throw new StartupError(`${source} does not start: ${reasonOf(error)}`, error);
  }
}

/** Stops the server, unless an `npm start` waits to take it over. */
async function letGo(server: EmbeddedPostgres): Promise<void> {
  if (!(await server.untilUnused(OTHERS_MS))) await server.stop();
}

async function embeddedUrl(dataDir: string, log: Logger): Promise<string> {
  const home = await findClusterHome(dataDir);
  if (home === null) {
    throw new StartupError(`no database: DATABASE_URL is not set and ${dataDir} contains no embedded database`);
  }
  const { port, password } = await keptConnection(home, log);
  return `postgres://${ROLE}:${password}@127.0.0.1:${port}/${ROLE}`;
}

/** The error of a refused connection has an empty message; its reasons are nested. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = asError(error) as Error & { code?: string; errors?: Error[] };
  return message || errors?.[0]?.message || code || 'no reason given';
}
