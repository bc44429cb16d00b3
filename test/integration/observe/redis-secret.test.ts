import { expect, inject, it, vi } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import { closedPort } from '../../support/tls.ts';

const PASSWORD = 'redis-pw-1f2e3d';

/** The log lines of a Redis that rejects the login, or does not answer. */
async function seen(address: string): Promise<string> {
  const lines: string[] = [];
  const log = createLogger({
    process: 'test',
    level: 'trace',
    destination: { write: (line) => void lines.push(line) },
  });
  const said = vi.spyOn(console, 'warn').mockImplementation((...words: unknown[]) => void lines.push(words.join(' ')));
  const redisUrl = `redis://:${PASSWORD}@${address}`;
  const backend = createQueueBackend({ databaseUrl: 'postgres://none', redisUrl, prefix: 'test', workers: 0, log });
  try {
    await backend.migrate();
    await backend.ping();
  } catch (error) {
    log.error({ err: error }, 'not connected');
    lines.push(String(error), JSON.stringify(error));
  } finally {
    await backend.close();
    said.mockRestore();
  }
  return lines.join('\n');
}

it('the log hides the password of a Redis that does not answer', async () => {
  const text = await seen(`127.0.0.1:${await closedPort()}`);
  expect(text).toContain('ECONNREFUSED');
  expect(text).not.toContain(PASSWORD);
});

it.skipIf(inject('redisUrl') === null)('the log hides the password that a Redis rejects', async () => {
  const { host } = new URL(inject('redisUrl') ?? '');
  expect(await seen(host)).not.toContain(PASSWORD);
});
