import { once } from 'node:events';
import { chmod, cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { nativeFolder } from '../../../src/embedded/native-postgres.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/embedded/postgres.ts';
import { untilGone } from '../../../src/embedded/postmaster.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { EmbeddedPostgresError } from '../../../src/runtime/errors.ts';
import { copyCluster, openFolder } from '../../support/postgres/made-cluster.ts';

const isRoot = process.getuid?.() === 0;

let folder: string;
let dataDir: string;
let running: EmbeddedPostgres[];
let lines: string[];

beforeEach(async () => {
  folder = await openFolder('oddswire-embedded-');
  dataDir = join(folder, 'data');
  running = [];
  lines = [];
});

afterEach(async () => {
  for (const server of running) await server.stop();
  await rm(folder, { recursive: true, force: true });
});

type Options = Partial<Parameters<typeof startEmbeddedPostgres>[0]>;

async function start(more: Options = {}): Promise<EmbeddedPostgres> {
  const log = createLogger({ process: 'test', level: 'info', destination: { write: (line) => lines.push(line) } });
  const server = await startEmbeddedPostgres({ dataDir, durable: false, log, ...more });
  running.push(server);
  return server;
}

/** Starts on an existing cluster, for tests of later behaviour. */
async function startMade(more: Options = {}): Promise<EmbeddedPostgres> {
  await copyCluster(inject('madeCluster'), dataDir);
  return start(more);
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

describe('startEmbeddedPostgres', () => {
  it('creates a cluster that listens on loopback only, with UTF-8 and a password', async () => {
    const server = await start();
    expect(server).toMatchObject({ adopted: false, location: join(dataDir, 'postgres') });
    const [row] = await query(
      server.url,
      `SELECT current_database() AS database, current_setting('listen_addresses') AS listens,
         current_setting('unix_socket_directories') AS sockets, current_setting('server_encoding') AS encoding,
         upper('ž') AS upper, current_setting('TimeZone') AS zone, current_setting('max_connections') AS connections`,
    );
    expect(row).toEqual({
      database: 'oddswire',
      listens: '127.0.0.1',
      sockets: '',
      encoding: 'UTF8',
      upper: 'Ž',
      zone: 'UTC',
      // A cluster of tests has more: it is not durable.
      connections: '400',
    });
    const wrong = new URL(server.url);
    wrong.password = 'guess';
    await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
    expect((await stat(join(server.location, 'connection.json'))).mode & 0o777).toBe(0o600);
    expect(lines.join()).not.toContain(new URL(server.url).password);
  });

  it('syncs to disk by default, and logs messages of the server, but no statement of a client', async () => {
    const server = await startMade({ durable: true });
    expect(await query(server.url, 'SHOW fsync')).toEqual([{ fsync: 'on' }]);
    await expect(query(server.url, "SELECT 'confidential' FROM nowhere")).rejects.toThrow();
    const text = await readFile(join(server.location, 'postgres.log'), 'utf8');
    expect(text).toContain('ready to accept connections');
    expect(text).not.toContain('nowhere');
  });

  it('keeps data, address and password over a restart, leaves no process, and moves when another program has its port', async () => {
    const first = await startMade();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.stop();
    await first.stop();
    expect(await untilGone(first.pid, 0)).toBe(true);

    const second = await start();
    expect(second).toMatchObject({ url: first.url, adopted: false });
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    expect((await readdir(second.location)).sort()).toEqual(['connection.json', 'data', 'postgres.log']);
    await second.stop();

    const other = createServer().listen(first.port, '127.0.0.1');
    await once(other, 'listening');
    const third = await start();
    other.close();
    expect(third.port).not.toBe(first.port);
    expect(await query(third.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  });

  it('reports the end of the server, and starts again after a crash', async () => {
    const first = await startMade();
    await query(first.url, 'CREATE TABLE kept ()');
    process.kill(first.pid, 'SIGKILL');
    await first.lost;
    const second = await start();
    expect(second.adopted).toBe(false);
    expect(await query(second.url, 'SELECT * FROM kept')).toEqual([]);
  });

  it('ignores a pid file whose pid belongs to another program', async () => {
    const first = await startMade();
    await first.stop();
    const pidFile = [process.pid, join(first.location, 'data'), 1, first.port, '', '127.0.0.1', '', 'ready   ', ''];
    await writeFile(join(first.location, 'data', 'postmaster.pid'), pidFile.join('\n'));
    const second = await start();
    expect(second.adopted).toBe(false);
    expect(second.pid).not.toBe(process.pid);
  });

  it('does not touch a server that another process controls', async () => {
    const first = await startMade();
    await expect(start({ takeOverMs: 200 })).rejects.toThrow(/in use by another running oddswire/);
    expect(await query(first.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('reports the reason when the binaries do not run', async () => {
    const broken = start({ nativeDir: join(folder, 'nothing'), sharedDir: join(folder, 'shared') });
    await expect(broken).rejects.toThrow(EmbeddedPostgresError);
    await expect(broken).rejects.toThrow(/do not run here.*DATABASE_URL/);
  });
});

describe.skipIf(!isRoot)('startEmbeddedPostgres as root', () => {
  it('runs as another user, also from a folder that only root can enter, and logs the folder that it uses instead', async () => {
    const closed = join(folder, 'closed');
    const platformPackage = dirname(nativeFolder());
    await cp(platformPackage, join(closed, 'package'), { recursive: true, verbatimSymlinks: true });
    // The state after `npm ci` under a strict umask without the package's install script.
    await rm(join(closed, 'package', 'native', 'lib', 'libicuuc.so.60'), { force: true });
    await chmod(closed, 0o700);
    const options = {
      dataDir: join(closed, 'data'),
      nativeDir: join(closed, 'package', 'native'),
      sharedDir: join(folder, 'shared'),
    };

    const first = await start(options);
    expect(dirname(first.location)).toBe(options.sharedDir);
    const status = await readFile(`/proc/${first.pid}/status`, 'utf8');
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe('0');
    await query(first.url, 'CREATE TABLE kept ()');
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toContainEqual(expect.objectContaining({ level: 'warn', used: first.location }));
    expect(logged).toContainEqual(expect.objectContaining({ level: 'warn', from: options.nativeDir }));
    expect(await readFile(join(options.dataDir, 'postgres-location'), 'utf8')).toBe(`${first.location}\n`);
    await first.stop();

    // When the folder becomes accessible later, the data must not seem lost.
    await chmod(closed, 0o711);
    const second = await start(options);
    expect(second.location).toBe(first.location);
    expect(await query(second.url, 'SELECT * FROM kept')).toEqual([]);
    await second.stop();

    // Removing the data folder is a fresh start with new keys: old sealed data must not return.
    await rm(options.dataDir, { recursive: true });
    await chmod(closed, 0o700);
    const third = await start(options);
    expect(third.location).not.toBe(first.location);
    await expect(query(third.url, 'SELECT * FROM kept')).rejects.toMatchObject({ code: '42P01' });
  });
});
