import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { ROLES, STREAMER } from '../../../src/queues/jobs.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { closedPort } from '../../support/tls.ts';
import { RING } from './worker-harness.ts';

const MAIN = fileURLToPath(new URL('../../../dist/workers/main.js', import.meta.url));

interface RunningProcess {
  child: ChildProcess;
  /** The lines of both outputs so far. */
  lines: string[];
  /** The first line with this text, past or future. Throws when the process ends without it. */
  said(text: string): Promise<string>;
  exited: Promise<{ code: number | null; signal: string | null }>;
}

const test = useTestDatabase({ poolSize: 2 });
const children: RunningProcess[] = [];
afterEach(async () => {
  for (const { child, exited } of children.splice(0)) {
    child.kill('SIGKILL');
    await exited;
  }
});

/** A worker process as the Procfile starts it, with this environment and no other. */
function startProcess(role: string | undefined, environment: Record<string, string>): RunningProcess {
  const child = spawn(process.execPath, [MAIN, ...(role === undefined ? [] : [role])], {
    env: { PATH: process.env['PATH'] ?? '', METRICS_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const outputs = [child.stdout, child.stderr].map((output) => {
    if (!output) throw new Error('no output');
    const reader = createInterface(output).on('line', (line) => {
      lines.push(line);
      for (const check of waiting) check();
    });
    return once(reader, 'close');
  });
  // The event 'close' of the child never comes after a disconnect.
  const exited = once(child, 'exit').then(async ([code, signal]) => {
    await Promise.all(outputs);
    return { code, signal };
  });
  const running: RunningProcess = {
    child,
    lines,
    exited,
    said: (text) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const line = lines.find((one) => one.includes(text));
          if (line === undefined) return;
          waiting.delete(check);
          resolve(line);
        };
        waiting.add(check);
        check();
        void exited.then(() => reject(new Error(`ended without "${text}":\n${lines.join('\n')}`)));
      }),
  };
  children.push(running);
  return running;
}

const needed = () => ({ DATABASE_URL: test.url, SECRETS_KEYS: RING });

describe('a worker process', () => {
  it('reports every problem of its configuration without values, and exits with the code of a useless restart', async () => {
    const { lines, exited } = startProcess('deliverer', {
      PORT: 'hunter2',
      OPS_PASSWORD: 'hunter2',
      LOG_LEVEL: 'loud',
    });
    expect(await exited).toEqual({ code: 78, signal: null });
    const text = lines.join('\n');
    for (const name of ['PORT', 'LOG_LEVEL', 'DATABASE_URL', 'SECRETS_KEYS']) {
      expect(lines.filter((line) => line.includes(name))).toHaveLength(1);
    }
    // A secret of the API, which no other process reads.
    expect(text).not.toContain('OPS_PASSWORD');
    expect(text).not.toContain('hunter2');
    expect(text).not.toContain('    at ');
  });

  it.each([undefined, 'api', 'deliverers'])('prints its usage when its role is %s', async (role) => {
    const { lines, exited } = startProcess(role, needed());
    expect(await exited).toEqual({ code: 78, signal: null });
    expect(
      lines.some((line) => line.includes('usage') && line.includes('poller|aggregator|alerter|deliverer|streamer')),
    ).toBe(true);
  });

  it('reports a taken metrics port in one line', async () => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    const address = squatter.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { lines, exited } = startProcess('alerter', { ...needed(), METRICS_PORT: port, LOG_LEVEL: 'warn' });
    expect(await exited).toEqual({ code: 78, signal: null });
    expect(lines).toEqual([`oddswire alerter: port ${port} on 127.0.0.1 is taken by another program`]);
    squatter.close();
    await once(squatter, 'close');
  });

  it('waits for a database that is down, and stops during the wait when it is told to', async () => {
    const port = await closedPort();
    const away = startProcess('alerter', { ...needed(), DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/x` });
    await away.said('waiting for the database');
    away.child.kill('SIGTERM');
    expect(await away.exited).toEqual({ code: 0, signal: null });
    expect(away.lines.join('\n')).not.toContain('"level":"error"');
  });

  it.each([...ROLES, STREAMER])('%s starts, and exits cleanly after several stop signals', async (role) => {
    // The venue has no server there, and the poller must run without it.
    const nowhere = `http://127.0.0.1:${await closedPort()}`;
    const urls = { POLYMARKET_GAMMA_URL: nowhere, POLYMARKET_CLOB_URL: nowhere, POLYMARKET_DATA_URL: nowhere };
    const running = startProcess(role, { ...needed(), ...urls });
    await running.said('"msg":"started"');
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) running.child.kill(signal);
    expect(await running.exited).toEqual({ code: 0, signal: null });
    // The order is not checked, because lines written during the exit may overtake earlier ones.
    for (const message of ['stopping', 'stopped']) {
      expect(
        running.lines.filter((line) => line.includes(`"process":"${role}"`) && line.includes(`"msg":"${message}"`)),
      ).toHaveLength(1);
    }
    expect(running.lines.join('\n')).not.toMatch(/"level":"(error|fatal)"/);
  });

  it('exits when its runner is gone', async () => {
    const running = startProcess('alerter', needed());
    await running.said('"msg":"started"');
    running.child.disconnect();
    expect(await running.exited).toEqual({ code: 0, signal: null });
    await expect(running.said('runner gone')).resolves.toContain('stopping');
  });
});
