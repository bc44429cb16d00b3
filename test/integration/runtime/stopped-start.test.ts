import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { RING } from '../workers/worker-harness.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

it('a process that is stopped while it waits for its database logs the reason without a stack, and ends with 0', async () => {
  // It accepts connections and ends them, as a server that starts does.
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  closers.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const child = spawn(process.execPath, [resolve('dist/workers/main.js'), 'alerter'], {
    env: { PATH: process.env['PATH'], DATABASE_URL: `postgres://127.0.0.1:${port}/none`, SECRETS_KEYS: RING },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  closers.push(() => child.kill('SIGKILL'));
  const lines: { msg: string; reason?: string; err?: unknown }[] = [];
  let rest = '';
  let waiting: () => void = () => undefined;
  const waits = new Promise<void>((done) => {
    waiting = done;
  });
  child.stdout.on('data', (chunk: Buffer) => {
    const texts = (rest + chunk.toString()).split('\n');
    rest = texts.pop() ?? '';
    for (const text of texts) lines.push(JSON.parse(text));
    if (lines.some(({ msg }) => msg === 'waiting for the database')) waiting();
  });
  await waits;
  const ended = once(child, 'close');
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
  const stopped = lines.find(({ msg }) => msg === 'stopped while starting');
  expect(stopped?.reason).toBe('stopped while waiting for the database');
  expect(stopped?.err).toBeUndefined();
});
