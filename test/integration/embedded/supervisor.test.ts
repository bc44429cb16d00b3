import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { untilGone } from '../../../src/embedded/postmaster.ts';
import { createSupervisor, type SupervisorLimits } from '../../../src/embedded/supervisor.ts';
import { createRecorder } from './recorder.ts';
import { writeStubs } from './stubs.ts';

type ProcessSpec = Parameters<ReturnType<typeof createSupervisor>['start']>[0];

let folder: string;
let recorder: ReturnType<typeof createRecorder>;

beforeAll(async () => {
  folder = await writeStubs();
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  recorder = createRecorder();
});
afterEach(() => {
  vi.useRealTimers();
});

function supervisor(limits: Partial<SupervisorLimits>) {
  return createSupervisor({ cwd: folder, log: recorder.log, onLine: recorder.onLine, limits });
}

function stub(name: string, kind: string, more: Partial<ProcessSpec> = {}): ProcessSpec {
  return { name, command: ['node', `${kind}.mjs`], environment: process.env, ...more };
}

/** The pid that the process printed once it was ready. */
async function pidOf(name: string): Promise<number> {
  const [line] = await recorder.until(1, ({ from, text }) => from === name && text.startsWith('up '));
  return Number(line?.text.slice(3));
}

function placeOf(from: string, text: string): number {
  return recorder.all.findIndex((recorded) => recorded.from === from && recorded.text === text);
}

const ENDED = 'process ended by itself; restarting it';

describe('supervisor', () => {
  it('restarts a process with growing delays, with one log line for each exit', async () => {
    const running = supervisor({ backoffMinMs: 10, backoffMaxMs: 40 });
    running.start(stub('poller', 'crashing'));
    const exits = await recorder.until(4, ({ text }) => text === ENDED);
    await running.stop();
    expect(exits.map(({ fields }) => fields['restartInMs'])).toEqual([10, 20, 40, 40]);
    for (const { fields } of exits) {
      expect(fields).toMatchObject({ name: 'poller', code: 3, signal: null, exitedPid: expect.any(Number) });
    }
    expect(await running.finished).toEqual({});
  });

  it('resets the delay of a process with a long uptime', async () => {
    const running = supervisor({ backoffMinMs: 10, backoffMaxMs: 40, stableAfterMs: 0 });
    running.start(stub('poller', 'crashing'));
    const exits = await recorder.until(3, ({ text }) => text === ENDED);
    await running.stop();
    expect(exits.map(({ fields }) => fields['restartInMs'])).toEqual([10, 10, 10]);
  });

  it('restarts a killed process', async () => {
    const running = supervisor({ backoffMinMs: 10 });
    running.start(stub('api', 'good'));
    process.kill(await pidOf('api'), 'SIGKILL');
    const ups = await recorder.until(2, ({ text }) => text.startsWith('up '));
    await running.stop();
    expect(new Set(ups.map(({ text }) => text)).size).toBe(2);
    expect(recorder.all.find(({ text }) => text === ENDED)?.fields).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  it('keeps retrying a missing program', async () => {
    const running = supervisor({ backoffMinMs: 10 });
    running.start({ name: 'odd', command: ['no-such-program-here'], environment: process.env });
    const [first] = await recorder.until(2, ({ text }) => text === ENDED);
    await running.stop();
    expect(first?.fields['code']).toBe(127);
  });

  it('stops wave by wave', async () => {
    const running = supervisor({});
    running.start(stub('db', 'good', { stopWave: 2 }));
    running.start(stub('sim', 'good', { stopWave: 1 }));
    running.start(stub('api', 'slow'));
    running.start(stub('poller', 'good'));
    const pids = await Promise.all(['db', 'sim', 'api', 'poller'].map(pidOf));
    await Promise.all([running.stop(), running.stop()]);
    expect(placeOf('poller', 'ending: SIGTERM')).toBeGreaterThan(0);
    expect(placeOf('poller', 'ending: SIGTERM')).toBeLessThan(placeOf('api', 'done'));
    expect(placeOf('api', 'done')).toBeLessThan(placeOf('sim', 'ending: SIGTERM'));
    expect(placeOf('sim', 'ending: SIGTERM')).toBeLessThan(placeOf('db', 'ending: SIGTERM'));
    for (const pid of pids) expect(await untilGone(pid, 0)).toBe(true);
  });

  it('kills a process that does not stop in time, and logs it', async () => {
    const running = supervisor({ stopMs: 150 });
    running.start(stub('api', 'stubborn'));
    const pid = await pidOf('api');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const stopped = running.stop();
    await recorder.until(1, ({ text }) => text === 'ignored');
    expect(recorder.all.some(({ text }) => text.includes('did not stop in time'))).toBe(false);
    vi.advanceTimersByTime(150);
    await stopped;
    expect(await untilGone(pid, 0)).toBe(true);
    const kill = recorder.all.find(({ text }) => text.includes('did not stop in time'));
    expect(kill?.fields).toMatchObject({ name: 'api', killedPid: pid, level: 'warn' });
  });

  it('stops everything when a process reports a permanent fault', async () => {
    const running = supervisor({});
    running.start(stub('poller', 'good'));
    const pid = await pidOf('poller');
    running.start(stub('api', 'refusing'));
    expect(await running.finished).toEqual({ fatal: { name: 'api' } });
    expect(await untilGone(pid, 0)).toBe(true);
    expect(placeOf('api', 'oddswire stub: PORT is taken')).toBeGreaterThan(0);
    expect(recorder.all.some(({ text }) => text === ENDED)).toBe(false);
  });

  it('starts no process while it is stopping', async () => {
    const running = supervisor({});
    await running.stop();
    running.start(stub('api', 'good'));
    expect(recorder.all).toEqual([]);
  });
});
