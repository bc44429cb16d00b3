import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'vitest';
import { HEADERS } from './read-load.ts';

/** The physical limit of reads: bare-server.mjs, in a process of its own. */
export interface BareServer {
  pid: number;
  /** Copies the API's answers on these paths into the bare server; returns its address. */
  teach(address: string, paths: readonly string[]): Promise<string>;
  stop(): void;
}

export function startBareServer(): BareServer {
  const child = fork(join(import.meta.dirname, 'bare-server.mjs'));
  return {
    pid: child.pid ?? 0,
    async teach(address, paths) {
      const answers = [];
      for (const path of paths) {
        const response = await fetch(address + path, { headers: HEADERS });
        expect(response.status).toBe(200);
        const names = ['content-type', 'etag', 'cache-control', 'vary', 'x-request-id'];
        const headers = Object.fromEntries(names.map((name) => [name, response.headers.get(name) ?? '']));
        answers.push({ path, headers, body: await response.text() });
      }
      const listening = once(child, 'message') as Promise<[{ port: number }]>;
      child.send(answers);
      const [{ port }] = await listening;
      return `http://127.0.0.1:${port}`;
    },
    stop: () => child.disconnect(),
  };
}
