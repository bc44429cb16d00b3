import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { createRedisClient } from '../../../src/queues/redis-connection.ts';
import { eventually } from '../../support/eventually.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { steadyPort } from '../../support/processes/steady-port.ts';

const PASSWORD = 'a5e1b2c3d4';
const run = promisify(execFile);

it('deploy/redis/start.sh starts Redis with a password that no argument of the process shows', async ({ skip }) => {
  if (!hasProgram('redis-server', 'the Redis of Compose')) return skip();
  const folder = await mkdtemp(join(tmpdir(), 'oddswire-redis-'));
  const port = await steadyPort();
  const options = ['--port', String(port), '--dir', folder, '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'];
  const child = spawn('sh', [resolve('deploy/redis/start.sh'), ...options], {
    env: { PATH: process.env['PATH'], TMPDIR: folder, REDISCLI_AUTH: PASSWORD },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const clients = [`redis://:${PASSWORD}@127.0.0.1:${port}`, `redis://127.0.0.1:${port}`].map((url) =>
    createRedisClient(url, { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: true }),
  );
  const [withPassword, without] = clients as [(typeof clients)[0], (typeof clients)[0]];
  for (const client of clients) client.on('error', () => undefined);
  try {
    expect(
      await eventually(
        () => withPassword.ping(),
        (answer) => answer === 'PONG',
      ),
    ).toBe('PONG');
    await expect(without.ping()).rejects.toThrow('NOAUTH');
    // The shell has become the server, so that it gets the signal to stop.
    const { stdout } = await run('ps', ['-o', 'args=', '-p', String(child.pid)]);
    expect(stdout).toContain('redis-server');
    expect(stdout).not.toContain(PASSWORD);
    expect(await readFile(join(folder, 'redis.conf'), 'utf8')).toBe(`requirepass ${PASSWORD}\n`);
    expect((await stat(join(folder, 'redis.conf'))).mode & 0o777).toBe(0o600);
  } finally {
    for (const client of clients) client.disconnect();
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    await rm(folder, { recursive: true, force: true });
  }
});
