import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startExchange } from '../../../sim/exchange.ts';

/** From the build, like every tested process. */
const MAIN = resolve('dist/sim/main.js');
const SMALL = ['--markets', '9', '--history-hours', '0.1'];

describe('sim/main', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  function start(args: readonly string[], env: Record<string, string> = {}) {
    const child = fork(MAIN, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: { ...process.env, ...env } });
    children.push(child);
    const output = { out: '', err: '' };
    child.stdout?.on('data', (chunk: Buffer) => {
      output.out += chunk.toString();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      output.err += chunk.toString();
    });
    return { child, output, closed: once(child, 'close') };
  }

  async function ready({ child, output }: ReturnType<typeof start>): Promise<string> {
    while (!output.out.includes('\n')) {
      const [chunk] = await Promise.race([once(child.stdout ?? child, 'data'), once(child, 'exit')]);
      if (!Buffer.isBuffer(chunk)) throw new Error(`ended before it was ready: ${output.err}`);
    }
    return /http:\/\/\S+/.exec(output.out)?.[0] ?? '';
  }

  it.each(['SIGTERM', 'SIGINT'] as const)('prints one line with its address, and ends on %s', async (signal) => {
    const started = start(SMALL, { SIM_PORT: '0' });
    const url = await ready(started);
    expect(await (await fetch(`${url}/_sim/health`)).json()).toEqual({ status: 'ok' });
    started.child.kill(signal);
    expect(await started.closed).toEqual([0, null]);
    expect(started.output.out.split('\n')).toHaveLength(2);
    expect(started.output.err).toBe('');
  });

  it('ends at the end of its parent', async () => {
    const started = start(SMALL);
    await ready(started);
    // Not `close`, which never fires after this side has disconnected from the channel.
    const exited = once(started.child, 'exit');
    started.child.disconnect();
    expect(await exited).toEqual([0, null]);
  });

  it('reports a taken port in one line', async () => {
    const exchange = await startExchange({ historyHours: 0.01, markets: 4, paused: true });
    const started = start([...SMALL, '--port', String(exchange.port)]);
    expect(await started.closed).toEqual([1, null]);
    expect(started.output.err).toMatch(new RegExp(`^sim: port ${exchange.port} .* is taken.*\\n$`));
    await exchange.close();
  });

  it.each([[['--port', 'x']], [['--recorded', '/nowhere/at/all']]])('ends with one clear line on %j', async (args) => {
    const started = start(args);
    expect(await started.closed).toEqual([1, null]);
    expect(started.output.err).toMatch(/^sim: /);
    expect(started.output.err).not.toContain('    at ');
  });
});
