import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { copyCluster, openFolder } from '../../support/postgres/made-cluster.ts';
import { runnerPorts } from '../../support/processes/ports.ts';
import { ODDSWIRE, oddswire } from './run-command.ts';

/** A port that refuses connections. */
const NOWHERE = 'http://127.0.0.1:1';
const FAILURES = sql(
  'test_start_failures',
  `SELECT venue, min(consecutive_failures)::int AS failures FROM poll_state WHERE kind = 'markets' GROUP BY 1`,
);

interface Run {
  readonly child: ChildProcess;
  readonly lines: string[];
  /** Resolves with the first line that matches. */
  line(pattern: RegExp): Promise<string>;
  /** Ctrl-C; resolves with the exit code. */
  stop(): Promise<unknown>;
}

let running: Run | undefined;
const cleanups: (() => Promise<unknown>)[] = [];
async function cleanUp(): Promise<void> {
  await running?.stop();
  running = undefined;
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

async function run(name: string, environment: Record<string, string>, cwd?: string): Promise<Run> {
  const child = spawn(process.execPath, [ODDSWIRE, name], {
    env: { PATH: process.env['PATH'], ...(await runnerPorts()), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  running = {
    child,
    lines,
    async line(pattern) {
      await eventually(async () => lines.some((line) => pattern.test(line)) || child.exitCode !== null, Boolean);
      const found = lines.find((line) => pattern.test(line));
      if (found === undefined) throw new Error(`no line ${pattern}:\n${lines.join('\n')}`);
      return found;
    },
    async stop() {
      child.kill('SIGINT');
      const [code] = await exited;
      const warning = lines.find((line) => /\(node:\d+\) .*Warning: /.test(line));
      if (warning !== undefined) throw new Error(`a process warned: ${warning}`);
      return code;
    },
  };
  return running;
}

describe('oddswire start', () => {
  afterEach(cleanUp);

  async function startWithoutVenues(
    environment: Record<string, string> = {},
    cwd?: string,
  ): Promise<{ started: Run; database: TestDatabase }> {
    const database = await createTestDatabase();
    cleanups.push(() => database.drop());
    const settings = {
      DATABASE_URL: database.url,
      SECRETS_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
      VENUES: 'polymarket,kalshi',
      POLYMARKET_GAMMA_URL: NOWHERE,
      POLYMARKET_CLOB_URL: NOWHERE,
      POLYMARKET_DATA_URL: NOWHERE,
      KALSHI_API_URL: NOWHERE,
      POLL_MARKETS_MS: '1000',
      POLL_TRADES_MS: '1000',
      POLL_PRICES_MS: '1000',
      POLL_BOOKS_MS: '1000',
      ...environment,
    };
    return { started: await run('start', settings, cwd), database };
  }

  it('ends its start-up with the address and the command that creates a key, and logs one line per poll of an unreachable venue', async () => {
    const { started, database } = await startWithoutVenues({ POLYMARKET_FEED_URL: 'ws://127.0.0.1:1' });
    const ready = await started.line(/^oddswire is ready: /);
    const address = /API (\S+), documentation/.exec(ready)?.[1];
    expect((await fetch(`${address}/health/live`)).status).toBe(200);
    expect(started.lines).toContain('Create an API key: oddswire keys create --account me --name laptop');
    expect(started.lines).toContainEqual(expect.stringMatching(/^ {2}operator pages: no operator exists; /));
    expect(started.lines).toContain('  venues      polymarket, kalshi');
    expect(started.lines).toContain(`  feeds       polymarket; their states are in ${address}/v1/venues`);
    expect(started.lines).toContain(
      '  feed of kalshi: its API is not the public one, and its feed has no address; polls read it',
    );
    const feeds = JSON.parse(await started.line(/"msg":"feeds"/)) as { on: string[]; off: Record<string, string> };
    expect(feeds).toMatchObject({ on: ['polymarket'], off: { kalshi: 'no_address' } });

    await eventually(
      () => database.db.query<{ failures: number }>(FAILURES),
      (rows) => rows.length === 2 && rows.every(({ failures }) => failures >= 4),
    );
    expect(await started.stop()).toBe(0);
    expect(started.lines.filter((line) => /"stack"|^ +at /.test(line))).toEqual([]);
    const failed = started.lines.filter((line) => line.includes('"poll failed"')).map((line) => JSON.parse(line));
    const polls = failed.map(({ venue, kind }) => `${venue} ${kind}`);
    expect(polls).toEqual(expect.arrayContaining(['polymarket markets', 'kalshi markets']));
    expect(polls.length).toBe(new Set(polls).size);
  });

  it('finds files of its settings in the folder of the caller, and stops when the reader of its output ends', async () => {
    const folder = await openFolder('oddswire-start-');
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    await writeFile(join(folder, 'kalshi.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const environment = {
      KALSHI_API_KEY_ID: 'k',
      KALSHI_PRIVATE_KEY_FILE: 'kalshi.pem',
      KALSHI_FEED_URL: 'ws://127.0.0.1:1',
      // A broken pipe shows at the next line.
      LOG_LEVEL: 'debug',
    };
    const { started } = await startWithoutVenues(environment, folder);
    const feeds = JSON.parse(await started.line(/"msg":"feeds"/)) as { on: string[] };
    expect(feeds.on).toContain('kalshi');
    await started.line(/^ {2}feeds {7}kalshi; their states are in /);
    await started.line(/^oddswire is ready: /);
    const exited = once(started.child, 'exit');
    started.child.stdout?.destroy();
    started.child.stderr?.destroy();
    expect((await exited)[0]).toBe(0);
  });
});

describe('oddswire demo', () => {
  let folder: string;
  let demo: Run;
  let api: string;
  let key: string;
  beforeAll(async () => {
    folder = await openFolder('oddswire-demo-');
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, '.data'), { mode: 0o711 });
    await copyCluster(inject('madeCluster'), join(folder, '.data', 'demo'));
    demo = await run('demo', { MAINTAIN_STORAGE_MS: '1000' }, folder);
    await demo.line(/^ {2}OUTCOME=\d+$/);
    const shownValue = (name: string) => demo.lines.flatMap((line) => line.split(`  ${name}=`)[1] ?? [])[0] ?? '';
    [api, key] = [shownValue('API'), shownValue('KEY')];
  });
  afterAll(cleanUp);

  it('prints its settings, and other commands in the same folder find its database', async () => {
    expect(demo.lines[0]).toMatch(/^demo: starting/);
    expect(demo.lines.filter((line) => /^demo: waiting for /.test(line)).length).toBeGreaterThan(0);
    expect(demo.lines).toContainEqual(expect.stringMatching(/^demo: the database is ready \(\d+ s\)$/));
    expect(demo.lines).toContainEqual(expect.stringMatching(/^demo: starting api, poller, .*\(\d+ s\)$/));
    await demo.line(/^[\d:.]{12} {2}price_alert {5}\S.* above .* X-Webhook-Signature ok {2}webhook-signature ok$/);

    expect(demo.lines).toContain('  feeds       polymarket, kalshi, manifold, limitless');
    expect(demo.lines.some((line) => line.startsWith('first price served after '))).toBe(true);
    // Opening the link does not use it; its button does, once, and leads to the console.
    const [link = ''] = demo.lines.filter((line) => line.includes('/console/sign-in/')).map((line) => line.trim());
    expect(link.startsWith(`${api}/console/sign-in/`)).toBe(true);
    for (const page of [await fetch(link), await fetch(link)])
      expect(await page.text()).toContain('<strong>me</strong>');
    const press = async () => {
      const body = new URLSearchParams({ token: link.slice(link.lastIndexOf('/') + 1) });
      const headers = { Origin: api };
      const answer = await fetch(`${api}/console/sign-in`, { method: 'POST', body, headers, redirect: 'manual' });
      return [answer.status, answer.headers.get('location')];
    };
    expect([await press(), await press()]).toEqual([
      [303, '/start'],
      [404, null],
    ]);
    const states = async () => {
      const answer = await fetch(`${api}/v1/venues`, { headers: { Authorization: `Bearer ${key}` } });
      const { data } = (await answer.json()) as { data: { venue: string; feed?: { state: string } }[] };
      return data.flatMap(({ venue, feed }) => (feed?.state === 'live' ? [venue] : []));
    };
    await eventually(states, (live) => live.includes('kalshi') && live.includes('polymarket'));
    const keyFile = join(folder, '.data', 'demo', 'kalshi-private-key.pem');
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    const [, secret = ''] = (await readFile(keyFile, 'utf8')).split('\n');
    expect(demo.lines.filter((line) => line.includes(secret) || line.includes('PRIVATE KEY'))).toEqual([]);

    const [keys, rejected, audit] = await Promise.all([
      oddswire(['keys', 'list'], {}, folder),
      oddswire(['rejected'], {}, folder),
      oddswire(['audit', 'candles', '--venue', 'kalshi', '--market', 'none'], {}, folder),
    ]);
    const found = expect.stringContaining(`uses the database of the demo in ${join(folder, '.data', 'demo')}`);
    expect(keys).toMatchObject({ code: 0, stdout: expect.stringMatching(/ bootstrap .* active/), stderr: found });
    expect(keys.stdout).not.toContain(key);
    expect(rejected).toMatchObject({ code: 0, stderr: found });
    expect(audit).toMatchObject({ code: 1, stderr: expect.stringContaining('kalshi has no market none') });
  });

  it('archives the days before its first start, which other commands check and DuckDB reads as docs/start.md says', async () => {
    const archive = join(folder, '.data', 'demo', 'archive');
    await demo.line(new RegExp(`^ {2}archive {5}${archive}$`));
    const archivedDates = async () => {
      const query = 'kind=trades&venue=polymarket';
      const answer = await fetch(`${api}/v1/archive?${query}`, { headers: { Authorization: `Bearer ${key}` } });
      const { data } = (await answer.json()) as { data: { date: string; file: string | null }[] };
      return data.some(({ file }) => file) ? data.map(({ date }) => date).sort() : [];
    };
    const daysOf = ([first = '', ...others]: readonly string[]) =>
      (Date.parse(others.at(-1) ?? first) - Date.parse(first)) / 86_400_000 + 1;
    // The aggregator may still archive other days: the check gets a range that is complete.
    const dates = await eventually(archivedDates, (found) => found.length > 0 && daysOf(found) === found.length);
    const docs = await readFile('docs/start.md', 'utf8');
    const [, statement = ''] = /^duckdb -c "(.*)"$/m.exec(docs) ?? [];
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const here = statement.replace('.data/demo/archive', archive);
    expect((await connection.runAndReadAll(here)).getRowObjectsJson().length).toBeGreaterThan(0);
    const range = ['--venue', 'polymarket', '--from', dates[0] ?? '', '--to', dates.at(-1) ?? ''];
    const check = await oddswire(['archive', 'check', '--kind', 'trades', ...range], {}, folder);
    expect([check.code, check.stdout]).toEqual([0, '']);
  });

  it('stops every process at Ctrl-C, and says that the next start continues', async () => {
    expect(await demo.stop()).toBe(0);
    const stopping = 'stopping every process and the embedded database; the next start continues with the same data';
    expect(demo.lines.filter((text) => text.startsWith('stopping'))).toEqual([stopping]);
  });
});
