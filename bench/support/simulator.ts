import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { RequestRecord } from '../../sim/server/request-log.ts';
import { endWithThisProcess } from '../../test/support/processes/orphan-guard.ts';

/** The simulated venues in a process of their own. */
export interface Simulator {
  readonly pid: number;
  readonly url: string;
  /** Advances the simulated clock, which moves quotes, also of a paused one. */
  idle(seconds: number): Promise<void>;
  /** The latest 2,000 requests, oldest first. */
  requests(): Promise<RequestRecord[]>;
  stop(): Promise<void>;
}

/** Starts it with these arguments of its command line; equal arguments give equal markets. */
export async function startSimulator(args: readonly string[]): Promise<Simulator> {
  const child = spawn(process.execPath, ['dist/sim/main.js', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThisProcess(child);
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code, signal) =>
      reject(new Error(`the simulator ended (${signal ?? code}) before it started`)),
    );
    createInterface(child.stdout).on('line', (line) => {
      const [found] = /http:\S+/.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
  });
  const control = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${url}/_sim/${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`${method} /_sim/${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  return {
    pid: child.pid ?? 0,
    url,
    async idle(seconds) {
      await control('POST', 'idle', { seconds });
    },
    requests: async () => (await control('GET', 'requests')) as RequestRecord[],
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}
