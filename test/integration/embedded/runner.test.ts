import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config.ts';
import { untilGone } from '../../../src/embedded/postmaster.ts';
import { type RunnerOptions, runProcesses } from '../../../src/embedded/runner.ts';
import { PortTakenError } from '../../../src/runtime/errors.ts';
import { steadyPort } from '../../support/processes/steady-port.ts';
import { createRecorder } from './recorder.ts';
import { writeStubs } from './stubs.ts';

const PROCFILE = 'db: node db.mjs\napi: node good.mjs\npoller: node good.mjs\n';

let root: string;
let dataDir: string;
let recorder: ReturnType<typeof createRecorder>;

beforeAll(async () => {
  root = await writeStubs();
});
afterAll(() => rm(root, { recursive: true, force: true }));
beforeEach(async () => {
  recorder = createRecorder();
  dataDir = await mkdtemp(join(root, 'data-'));
});

/** An environment without the caller's variables. */
const environment = { PATH: process.env['PATH'], PORT: '0', METRICS_PORT: '0' };

/** A database of another place, whose keys are given. */
const ELSEWHERE = {
  DATABASE_URL: 'postgres://elsewhere/x',
  SECRETS_KEYS: `a:${Buffer.alloc(32).toString('base64')}`,
};

function options(signal: AbortSignal, more: Partial<RunnerOptions> = {}): RunnerOptions {
  const { log, onLine } = recorder;
  return { root, procfileText: PROCFILE, environment, dataDir, log, onLine, signal, ...more };
}

async function environmentOf(name: string): Promise<Record<string, string>> {
  const [line] = await recorder.until(1, ({ from, text }) => from === name && text.startsWith('env '));
  return JSON.parse(line?.text.slice(4) ?? '{}');
}

describe('runProcesses', () => {
  it('starts the database first and gives the others its address, keys and ports', async () => {
    const stopping = new AbortController();
    const metricsPort = await steadyPort();
    let apiUrl = '';
    const running = runProcesses(
      options(stopping.signal, {
        environment: { ...environment, METRICS_PORT: String(metricsPort) },
        companions: [{ name: 'sim', command: ['node', 'good.mjs'] }],
        onStarted: (url) => {
          apiUrl = url;
        },
      }),
    );
    const [api, poller] = await Promise.all([environmentOf('api'), environmentOf('poller')]);
    await environmentOf('sim');
    stopping.abort();
    expect(await running).toEqual({});

    expect(api['DATABASE_URL']).toBe('postgres://stub/oddswire');
    expect(api['SECRETS_KEYS']).toBe((await readFile(join(dataDir, 'secrets.key'), 'utf8')).trim());
    expect(poller['SECRETS_KEYS']).toBeUndefined();
    expect(api['DATABASE_POOLS']).toBe(availableParallelism() <= 2 ? 'half' : undefined);
    expect(apiUrl).toBe(`http://127.0.0.1:${api['PORT']}`);
    expect(Number(api['METRICS_PORT'])).toBe(metricsPort);
    expect(Number(poller['METRICS_PORT'])).toBeGreaterThan(metricsPort);
    const place = (from: string, text: string) => recorder.all.findIndex((r) => r.from === from && r.text === text);
    expect(place('poller', 'ending: SIGTERM')).toBeLessThan(place('sim', 'ending: SIGTERM'));
    expect(place('sim', 'ending: SIGTERM')).toBeLessThan(place('db', 'ending'));
  });

  it('starts the other processes after the reports of the API and the poller, and after the given promise', async () => {
    const stopping = new AbortController();
    const procfileText = ['alerter: node good.mjs', 'api: node reporting.mjs', 'poller: node reporting.mjs'].join('\n');
    const companions = [{ name: 'receiver', command: ['node', 'good.mjs'], isOfOthers: true }] as const;
    const given = { ...environment, ...ELSEWHERE };
    let release: () => void = () => undefined;
    const othersAfter = new Promise<void>((resolve) => {
      release = resolve;
    });
    const running = runProcesses(
      options(stopping.signal, { procfileText, companions, environment: given, othersAfter }),
    );
    for (const name of ['api', 'poller']) {
      const [up] = await recorder.until(1, ({ from, text }) => from === name && text.startsWith('up '));
      process.kill(Number(up?.text.slice(3)), 'SIGUSR2');
    }
    await recorder.until(2, ({ text }) => text === 'reported');
    recorder.onLine('test', 'released');
    release();
    await Promise.all([environmentOf('alerter'), environmentOf('receiver')]);
    const reported = recorder.all.flatMap(({ text }, index) => (text === 'reported' ? [index] : []));
    expect(reported).toHaveLength(2);
    const firstOther = recorder.all.findIndex(({ from }) => from === 'alerter' || from === 'receiver');
    const released = recorder.all.findIndex(({ text }) => text === 'released');
    expect(Math.max(...reported)).toBeLessThan(released);
    expect(released).toBeLessThan(firstOther);
    stopping.abort();
    expect(await running).toEqual({});
  });

  it('starts the other processes without a report of the first ones when the wait is over', async () => {
    const stopping = new AbortController();
    const given = { ...environment, ...ELSEWHERE };
    const procfileText = 'alerter: node good.mjs\napi: node crashing.mjs\n';
    const running = runProcesses(options(stopping.signal, { procfileText, environment: given, othersWaitMs: 100 }));
    await environmentOf('alerter');
    stopping.abort();
    expect(await running).toEqual({});
  });

  it('starts no database with a DATABASE_URL', async () => {
    const stopping = new AbortController();
    const running = runProcesses(options(stopping.signal, { environment: { ...environment, ...ELSEWHERE } }));
    const api = await environmentOf('api');
    expect(api).toMatchObject(ELSEWHERE);
    expect(api['DATABASE_POOLS']).toBeUndefined();
    stopping.abort();
    await running;
    expect(recorder.all.some(({ from }) => from === 'db')).toBe(false);
  });

  it('reports a taken API port before it starts any process', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const taken = { ...environment, PORT: String(port) };
    await expect(runProcesses(options(AbortSignal.abort(), { environment: taken }))).rejects.toThrow(PortTakenError);
    other.close();
    expect(recorder.all).toEqual([]);
  });

  it('reports every problem of the configuration before it starts any process', async () => {
    const bad = { ...environment, DATABASE_URL: 'postgres://elsewhere/x', VENUES: 'nowhere' };
    const failed = runProcesses(options(AbortSignal.abort(), { environment: bad }));
    await expect(failed).rejects.toThrow(ConfigError);
    await expect(failed).rejects.toThrow(/VENUES.*SECRETS_KEYS|SECRETS_KEYS.*VENUES/);
    expect(recorder.all).toEqual([]);
  });

  it('stops while the database is still starting', async () => {
    const stopping = new AbortController();
    const running = runProcesses(options(stopping.signal, { procfileText: 'db: node good.mjs\napi: node good.mjs' }));
    await environmentOf('db');
    stopping.abort();
    expect(await running).toEqual({});
    expect(recorder.all.some(({ from }) => from === 'api')).toBe(false);
  });
});

describe('a killed runner', () => {
  let runner: ChildProcess | undefined;
  afterAll(() => runner?.kill('SIGKILL'));

  it('ends its processes', async () => {
    const script = join(root, 'runner.mjs');
    const module = pathToFileURL(resolve('dist/src/embedded/runner.js'));
    const logger = pathToFileURL(resolve('dist/src/observe/logger.js'));
    await writeFile(
      script,
      `import { runProcesses } from '${module}';
       import { createLogger } from '${logger}';
       await runProcesses({
         root: ${JSON.stringify(root)}, procfileText: ${JSON.stringify(PROCFILE)}, dataDir: ${JSON.stringify(dataDir)},
         environment: { ...process.env, PORT: '0', METRICS_PORT: '0' },
         log: createLogger({ process: 'runner', level: 'silent' }),
         onLine: (name, line) => console.log(name + ' ' + line),
         signal: new AbortController().signal,
       });`,
    );
    runner = spawn(process.execPath, [script], {
      cwd: tmpdir(),
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pids: number[] = [];
    if (runner.stdout === null) throw new Error('no stdout');
    for await (const line of createInterface({ input: runner.stdout })) {
      const pid = / up (\d+)$/.exec(line)?.[1];
      if (pid !== undefined) pids.push(Number(pid));
      if (pids.length === 3) break;
    }
    expect(pids).toHaveLength(3);
    const gone = once(runner, 'exit');
    runner.kill('SIGKILL');
    await gone;
    for (const pid of pids) expect(await untilGone(pid, 10_000)).toBe(true);
  });
});
