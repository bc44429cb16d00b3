import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { untilGone } from '../../../src/embedded/postmaster.ts';
import { copyCluster, openFolder } from '../../support/postgres/made-cluster.ts';

interface Ready {
  readonly type: 'ready';
  readonly url: string;
  readonly adopted: boolean;
  readonly serverPid: number;
}

let folder: string;
let dataDir: string;
let started: ChildProcess[];
let serverPid: number | undefined;

beforeEach(async () => {
  folder = await openFolder('oddswire-db-');
  dataDir = join(folder, 'data');
  await copyCluster(inject('madeCluster'), dataDir);
  started = [];
  serverPid = undefined;
});

afterEach(async () => {
  for (const child of started) child.kill('SIGKILL');
  if (serverPid !== undefined && !(await untilGone(serverPid, 0))) process.kill(serverPid, 'SIGQUIT');
  if (serverPid !== undefined) await untilGone(serverPid, 10_000);
  await rm(folder, { recursive: true, force: true });
});

async function startDb(): Promise<{ child: ChildProcess; ready: Ready }> {
  const child = fork(resolve('dist/bin/oddswire.js'), ['db'], {
    detached: true,
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir, LOG_LEVEL: 'warn' },
  });
  started.push(child);
  const [ready] = (await once(child, 'message')) as [Ready];
  serverPid = ready.serverPid;
  return { child, ready };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

describe('the database process', () => {
  it('ends the server on SIGTERM, also on repeated signals', async () => {
    const { child, ready } = await startDb();
    const gone = once(child, 'exit');
    child.kill('SIGINT');
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    expect(await gone).toEqual([0, null]);
    expect(await untilGone(ready.serverPid, 0)).toBe(true);
  });

  it('is replaced after kill -9 by a process that takes over the running server', async () => {
    const first = await startDb();
    const client = await connect(first.ready.url);
    const gone = once(first.child, 'exit');
    first.child.kill('SIGKILL');
    await gone;
    const second = await startDb();
    expect(second.ready).toEqual({ ...first.ready, adopted: true });
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await client.end();
    const ended = once(second.child, 'exit');
    second.child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(await untilGone(first.ready.serverPid, 0)).toBe(true);
  });

  it('lets clients finish after the end of its runner, then ends the server', async () => {
    const { child, ready } = await startDb();
    const client = await connect(ready.url);
    const gone = once(child, 'exit');
    child.disconnect();
    expect((await client.query('SELECT pg_sleep(0.3), 1 AS one')).rows).toMatchObject([{ one: 1 }]);
    await client.end();
    expect(await gone).toEqual([0, null]);
    expect(await untilGone(ready.serverPid, 0)).toBe(true);
  });

  it('passes the server to the next runner while clients of the last one finish', async () => {
    const first = await startDb();
    const client = await connect(first.ready.url);
    first.child.disconnect();
    const gone = once(first.child, 'exit');
    const second = await startDb();
    expect(await gone).toEqual([0, null]);
    expect(second.ready).toEqual({ ...first.ready, adopted: true });
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await client.end();
  });

  it('ends, to be restarted, when the server dies', async () => {
    const { child, ready } = await startDb();
    const gone = once(child, 'exit');
    process.kill(ready.serverPid, 'SIGKILL');
    expect(await gone).toEqual([1, null]);
  });
});
