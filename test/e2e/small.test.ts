import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DATABASE_POOL_SIZE, poolSizeOf } from '../../src/config/pools.ts';
import { ROLES, STREAMER } from '../../src/queues/jobs.ts';
import { sql } from '../../src/store/db/tx.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { endWithThisProcess } from '../support/processes/orphan-guard.ts';
import { runnerPorts } from '../support/processes/ports.ts';
import { type Surroundings, startSurroundings } from '../support/processes/system.ts';

const PRESENCES = sql('count_presences', 'SELECT count(*) FROM presence');
const TRADES = sql('count_trades', 'SELECT count(*) FROM trade');
const SESSIONS = sql(
  'find_sessions',
  `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'oddswire-%'
     AND application_name <> 'oddswire-test'`,
);
const ACTIVE_JOBS = sql('find_active_jobs', "SELECT id FROM bullmq.job WHERE state = 'active'");
const PARTS = ['api', ...ROLES, STREAMER];

interface Line {
  process: string;
  pid: number;
  msg: string;
  level: string;
}

let database: TestDatabase;
let surroundings: Surroundings;
let dataDir: string;
let runner: ChildProcess;
const lines: Line[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  surroundings = await startSurroundings({ databaseUrl: database.url, exchange: { markets: 4 } });
  dataDir = await mkdtemp(join(tmpdir(), 'oddswire-small-'));
  runner = spawn(process.execPath, [resolve('dist/bin/oddswire.js'), 'start', '--small'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      ...surroundings.environment,
      ...(await runnerPorts()),
      DATA_DIR: dataDir,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThisProcess(runner);
  if (runner.stdout === null) throw new Error('no stdout');
  createInterface(runner.stdout).on('line', (text) => {
    if (text.startsWith('{')) lines.push(JSON.parse(text) as Line);
  });
});

afterAll(async () => {
  runner?.kill('SIGKILL');
  await surroundings?.close();
  await database?.drop();
  await rm(dataDir, { recursive: true, force: true });
});

/** The id of the process in which every part has started. */
async function startedIn(isOther: (pid: number) => boolean): Promise<number> {
  const startedBy = (part: string) =>
    lines.findLast(({ process: name, msg, pid }) => name === part && msg === 'started' && isOther(pid))?.pid;
  const pids = await eventually(
    async () => PARTS.map(startedBy),
    (found) => {
      if (runner.exitCode !== null) throw new Error(`the runner ended with ${runner.exitCode}`);
      return found.every((pid) => pid !== undefined);
    },
  );
  expect(new Set(pids).size).toBe(1);
  return pids[0] ?? 0;
}

/** The metrics port of each part, from the command of the process. */
function portsOf(pid: number): Map<string, number> {
  const command = execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  return new Map([...command.matchAll(/(\w+)=(\d+)/g)].map(([, part = '', port]) => [part, Number(port)]));
}

async function presences(): Promise<number> {
  const [row] = await database.db.query<{ count: bigint }>(PRESENCES);
  return Number(row?.count);
}

it('runs every part with its own health, metrics and presence, and starts all of them again after a kill', async () => {
  const pid = await startedIn(() => true);
  const ports = portsOf(pid);
  expect([...ports.keys()].sort()).toEqual([...PARTS].sort());
  for (const [part, port] of ports) {
    const base = `http://127.0.0.1:${port}`;
    expect((await fetch(`${base}/health/live`)).status, part).toBe(200);
    const metrics = await (await fetch(`${base}/metrics`)).text();
    expect(new Set([...metrics.matchAll(/process="(\w+)"/g)].map(([, name]) => name)), part).toEqual(new Set([part]));
    expect(Number(/^db_pool_limit\{.*pool="main".*\} (\d+)$/m.exec(metrics)?.[1]), part).toBe(
      poolSizeOf(part as keyof typeof DATABASE_POOL_SIZE, 'quarter'),
    );
  }
  await eventually(presences, (count) => count === ROLES.length);

  process.kill(pid, 'SIGKILL');
  await startedIn((other) => other !== pid);
  await eventually(presences, (count) => count === ROLES.length);
});

it('stops every part after SIGTERM, and leaves no job and no session', async () => {
  await eventually(
    async () => Number((await database.db.query<{ count: bigint }>(TRADES))[0]?.count),
    (count) => count > 0,
  );
  const from = lines.length;
  // Not at its exit: it may have lines that are not read yet.
  const exited = once(runner, 'close');
  runner.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  const stopped = lines.slice(from);
  for (const part of PARTS) {
    expect(
      stopped.filter(({ process: name, msg }) => name === part && msg === 'stopped'),
      part,
    ).toHaveLength(1);
  }
  expect(stopped.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  await eventually(
    () => database.db.query(SESSIONS),
    (sessions) => sessions.length === 0,
  );
  const active = await database.db.query(ACTIVE_JOBS);
  expect(active).toEqual([]);
});
