import { asError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { StartupError } from '../runtime/lifecycle.ts';
import { createDataSource } from '../store/db/data-source.ts';
import { Database, ping, sqlState } from '../store/db/tx.ts';
import { type ClusterHome, findClusterHome, loadOrCreateConnection, ROLE } from './cluster-home.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres, WRONG_PASSWORD } from './postgres.ts';
import { livePostmaster } from './postmaster.ts';

type Home = Pick<ClusterHome, 'path' | 'data'>;

interface OperatorDatabase {
  db: Database;
  databaseUrl: string;
  /** The folder of the embedded database. */
  dataDir?: string;
  close(): Promise<void>;
}

interface OperatorDatabaseOptions {
  name: string;
  databaseUrl: string | undefined;
  /** Folders that may contain an embedded database, the first choice first. */
  dataDirs: readonly string[];
  /** Whether a running database of a later folder precedes one of an earlier folder that does not run. */
  prefersRunning: boolean;
  log: Logger;
}

/** Connections of an operator's command, which works sequentially. */
const POOL_SIZE = 2;

/** The time that commands, connected while this process kept the server, have to finish before it stops. */
const OTHERS_MS = 10_000;

/**
 * The database of an operator's command: `databaseUrl`, else an embedded database, whose server runs for the duration of the command
 * if it is not running. Creates and migrates nothing.
 * @throws StartupError when it is missing or does not answer: one line that names the address
 */
export async function openOperatorDatabase(options: OperatorDatabaseOptions): Promise<OperatorDatabase> {
  const { name, databaseUrl, dataDirs, prefersRunning, log } = options;
  if (databaseUrl) return connect({ name, log }, databaseUrl, 'the database of DATABASE_URL');
  const existing = await existingClusters(dataDirs, log);
  const [first] = existing;
  if (first === undefined) {
    throw new StartupError(`no database: DATABASE_URL is not set and ${dataDirs[0]} contains no embedded database`);
  }
  const failures: unknown[] = [];
  for (const { dataDir, url } of prefersRunning ? existing : [first]) {
    try {
      return { ...(await connect({ name, log }, url, sourceOf(dataDir))), dataDir };
    } catch (error) {
      failures.push(error);
    }
  }
  if (!(await isStopped(first.home, failures[0]))) throw failures[0];
  const { dataDir } = first;
  const server = await start(dataDir, log);
  try {
    const { close, ...opened } = await connect({ name, log }, server.url, sourceOf(dataDir));
    return { ...opened, dataDir, close: () => close().finally(() => letGo(server)) };
  } catch (error) {
    await letGo(server);
    throw error;
  }
}

const sourceOf = (dataDir: string) => `the embedded database in ${dataDir}`;

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
  return { db, databaseUrl, close: () => dataSource.destroy() };
}

/** Whether the server of a cluster does not run, after this failure to connect: its port is free, or another program has it. */
async function isStopped(home: Home, error: unknown): Promise<boolean> {
  const { cause } = asError(error);
  const { code, errors } = (cause ?? {}) as { code?: string; errors?: { code?: string }[] };
  if ([code, ...(errors ?? []).map((each) => each.code)].includes('ECONNREFUSED')) return true;
  const state = sqlState(cause);
  // A Postgres that accepts the password is the own one, although its process may be in another container.
  const isOfOther = state === undefined || state === WRONG_PASSWORD;
  return isOfOther && (await livePostmaster(home)) === null;
}

async function start(dataDir: string, log: Logger): Promise<EmbeddedPostgres> {
  try {
    return await startEmbeddedPostgres({ dataDir, log });
  } catch (error) {
    throw new StartupError(`${sourceOf(dataDir)} does not start: ${reasonOf(error)}`, error);
  }
}

/** Stops the server, unless an `oddswire start` waits to take it over. */
async function letGo(server: EmbeddedPostgres): Promise<void> {
  if (!(await server.untilUnused(OTHERS_MS))) await server.stop();
}

/** The folders with a cluster, in the given order, and the addresses of their servers. */
async function existingClusters(
  dataDirs: readonly string[],
  log: Logger,
): Promise<{ dataDir: string; home: Home; url: string }[]> {
  const found: { dataDir: string; home: Home; url: string }[] = [];
  for (const dataDir of dataDirs) {
    const home = await findClusterHome(dataDir);
    if (home === null) continue;
    const { port, password } = await loadOrCreateConnection(home, log);
    found.push({ dataDir, home, url: `postgres://${ROLE}:${password}@127.0.0.1:${port}/${ROLE}` });
  }
  return found;
}

/** The error of a refused connection has an empty message; its reasons are nested. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = asError(error) as Error & { code?: string; errors?: Error[] };
  return message || errors?.[0]?.message || code || 'no reason given';
}
