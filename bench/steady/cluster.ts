import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { makeCluster, openFolder } from '../../test/support/postgres/made-cluster.ts';

/** A data folder of `oddswire`, with the folder of its cluster. */
export interface DataFolder {
  /** DATA_DIR of the command. */
  readonly path: string;
  /** The folder whose cluster it uses. */
  readonly clusterDir: string;
  /** The file with the port and the password of the server. */
  readonly connectionFile: string;
}

/** A new cluster that syncs to disk, as `oddswire` makes it, and with the module that counts statements if wanted. */
export async function makeDataFolder(subfolder: string, countsStatements: boolean): Promise<DataFolder> {
  const path = await openFolder('oddswire-steady-');
  const clusterDir = join(path, subfolder);
  const { cluster } = await makeCluster(clusterDir, true);
  if (countsStatements) {
    const settings = [`shared_preload_libraries = 'pg_stat_statements'`, 'pg_stat_statements.track_planning = on'];
    await appendFile(join(cluster.data, 'postgresql.conf'), `${settings.join('\n')}\n`);
  }
  return { path, clusterDir, connectionFile: join(cluster.path, 'connection.json') };
}

/** The address of the service's server, on the port that it chose. */
export async function databaseUrlOf({ connectionFile }: DataFolder): Promise<string> {
  const { port, password } = JSON.parse(await readFile(connectionFile, 'utf8')) as { port: number; password: string };
  return `postgres://oddswire:${encodeURIComponent(password)}@127.0.0.1:${port}/oddswire`;
}

/** A client of a server, with the modules for its measurement. Modules that the server does not have are left out. */
export async function connectObserver(url: string): Promise<Observer> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  await client.connect();
  const query = async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await client.query<Row>(text, [...values])).rows;
  const missing = new Map<string, string>();
  for (const name of MODULES) {
    try {
      await query(`CREATE EXTENSION IF NOT EXISTS ${name}`);
      // Without its library in the server, this one fails at its first use.
      if (name === 'pg_stat_statements') await query('SELECT count(*) FROM pg_stat_statements');
    } catch (error) {
      missing.set(name, error instanceof Error ? error.message : String(error));
    }
  }
  const [server] = await query<{ pid: number }>(
    `SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid`,
  );
  return { query, missing, postmaster: server?.pid ?? 0, close: () => client.end() };
}

const MODULES = ['pg_stat_statements', 'pg_walinspect'] as const;

/** Reads the statistics of a server over one connection. */
export interface Observer {
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** The modules that cannot be used, with the reason. */
  readonly missing: ReadonlyMap<string, string>;
  /** The main process of the server. */
  readonly postmaster: number;
  close(): Promise<void>;
}
