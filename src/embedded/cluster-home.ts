import { createHash, randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Logger } from '../observe/logger.ts';
import { EmbeddedPostgresError } from '../runtime/errors.ts';
import { freePort } from './free-port.ts';
import type { NativePostgres } from './native-postgres.ts';
import { makeOpenFolder, readPrivateFile, writePrivateFile } from './private-file.ts';
import { runAs, type ServerUser } from './run-as.ts';

/** The role and the database of the embedded server. */
export const ROLE = 'oddswire';

/** The folder of one embedded cluster: `data` (of Postgres), `connection.json`, `postgres.log`. */
export interface ClusterHome {
  readonly path: string;
  readonly data: string;
  /** The user of the server: the owner of an existing `data`. */
  readonly user: ServerUser;
}

/** Port and password of the server: chosen once, kept in `connection.json` (mode 600). */
export interface Connection {
  readonly port: number;
  readonly password: string;
}

/**
 * The home of DATA_DIR's cluster: `DATA_DIR/postgres`, or, when the server's user has no access to it, a folder below
 * `sharedDir` named after that path's hash. `DATA_DIR/postgres-location` stores the choice, so that it stays the same.
 */
export async function openClusterHome(options: {
  dataDir: string;
  user: ServerUser;
  sharedDir: string;
  log: Logger;
}): Promise<ClusterHome> {
  const { user, sharedDir, log } = options;
  const dataDir = resolve(options.dataDir);
  const wanted = join(dataDir, 'postgres');
  await makeOpenFolder(dataDir);
  if (user.ids === undefined) {
    await mkdir(wanted, { recursive: true, mode: 0o700 });
    return home(wanted, user);
  }
  const pointer = join(dataDir, 'postgres-location');
  const recorded = await recordedLocation(pointer);
  if (recorded !== null) {
    await makeHomeForOther(recorded);
    return home(recorded, user);
  }
  const isNew = await makeHomeForOther(wanted);
  const found = await home(wanted, user);
  const entered = await runAs(found.user, '/bin/sh', ['-c', 'cd "$1"', 'sh', wanted]);
  if (entered.code === 0) return found;

  if (isNew) await rmdir(wanted);
  const elsewhere = await makeHomeElsewhere(sharedDir, wanted, log);
  await writeFile(pointer, `${elsewhere}\n`);
  log.warn({ wanted, used: elsewhere, user: user.name }, 'the database is in a folder that the server user can reach');
  return home(elsewhere, user);
}

/** The home of an existing cluster, or null; changes nothing. */
export async function findClusterHome(dataDir: string): Promise<Pick<ClusterHome, 'path' | 'data'> | null> {
  const folder = resolve(dataDir);
  const path = (await recordedLocation(join(folder, 'postgres-location'))) ?? join(folder, 'postgres');
  const data = join(path, 'data');
  return (await ownerOf(data)) === null ? null : { path, data };
}

/** Creates a missing cluster. An interrupted start leaves only an incomplete folder, which does not count as a cluster. */
export async function ensureCluster(
  cluster: ClusterHome,
  native: NativePostgres,
  durable: boolean,
  log: Logger,
): Promise<void> {
  if ((await ownerOf(join(cluster.data, 'PG_VERSION'))) !== null) return;
  const { ids } = cluster.user;
  const { password } = await loadOrCreateConnection(cluster, log);
  const partial = await mkdtemp(`${cluster.data}.`);
  const passwordFile = `${partial}.password`;
  try {
    await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' });
    if (ids !== undefined) {
      await chown(passwordFile, ids.uid, ids.gid);
      await chown(partial, ids.uid, ids.gid);
    }
    const result = await runAs(cluster.user, native.initdb, [
      `--pgdata=${partial}`,
      `--username=${ROLE}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      // Without checksums a hint bit needs no image of its page in the write-ahead log.
      ...(durable ? [] : ['--no-sync', '--no-data-checksums']),
    ]);
    if (result.code !== 0) throw new EmbeddedPostgresError(`initdb failed: ${result.stderr.trim()}`);
    // An empty or incomplete folder of an earlier start is harmless.
    await rm(cluster.data, { recursive: true, force: true });
    await rename(partial, cluster.data);
  } finally {
    await rm(passwordFile, { force: true });
    await rm(partial, { recursive: true, force: true });
  }
}

/** Port and password, made on first use. */
export async function loadOrCreateConnection(cluster: Pick<ClusterHome, 'path'>, log: Logger): Promise<Connection> {
  const path = join(cluster.path, 'connection.json');
  const text = await readPrivateFile(path, log);
  if (text !== null) {
    const { port, password } = JSON.parse(text) as Partial<Connection>;
    if (typeof port === 'number' && typeof password === 'string') return { port, password };
    throw new EmbeddedPostgresError(`${path} does not contain a port and a password`);
  }
  const connection = { port: await freePort(), password: randomBytes(24).toString('base64url') };
  await writeConnection(cluster, connection);
  return connection;
}

export async function writeConnection(cluster: Pick<ClusterHome, 'path'>, connection: Connection): Promise<void> {
  await writePrivateFile(join(cluster.path, 'connection.json'), `${JSON.stringify(connection)}\n`);
}

async function recordedLocation(pointer: string): Promise<string | null> {
  try {
    return (await readFile(pointer, 'utf8')).trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Root keeps the home and lets the server's user pass through it, so that root writes in no folder of another user. */
async function makeHomeForOther(path: string): Promise<boolean> {
  const made = await mkdir(path, { recursive: true });
  await chmod(path, 0o711);
  return made !== undefined;
}

/** A new folder each time: after DATA_DIR was removed, the next start has new keys too. */
async function makeHomeElsewhere(sharedDir: string, wanted: string, log: Logger): Promise<string> {
  await makeOpenFolder(sharedDir);
  const prefix = `${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}-`;
  const older = (await readdir(sharedDir)).filter((name) => name.startsWith(prefix));
  if (older.length > 0) {
    log.warn(
      { in: sharedDir, older },
      'this folder still contains databases of a removed data folder; delete them if not needed',
    );
  }
  const path = await mkdtemp(join(sharedDir, prefix));
  await makeHomeForOther(path);
  return path;
}

async function home(path: string, user: ServerUser): Promise<ClusterHome> {
  const data = join(path, 'data');
  const owner = await ownerOf(data);
  if (owner === null) return { path, data, user };
  const self = process.getuid?.();
  if (self !== 0 && owner.uid !== self) {
    throw new EmbeddedPostgresError(
      `${data} belongs to user ${owner.uid}: start as that user, or set another DATA_DIR`,
    );
  }
  const isOther = user.ids !== undefined && owner.uid !== 0 && owner.uid !== user.ids.uid;
  return { path, data, user: isOther ? { name: `uid ${owner.uid}`, ids: owner } : user };
}

async function ownerOf(path: string): Promise<{ uid: number; gid: number } | null> {
  try {
    const { uid, gid } = await stat(path);
    return { uid, gid };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
