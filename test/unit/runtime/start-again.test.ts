import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { StartupError } from '../../../src/runtime/lifecycle.ts';
import { startAgain } from '../../../src/runtime/start-again.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const { signal } = new AbortController();
const lost = () => Object.assign(new Error('terminating connection'), { code: '57P01' });

/** A start with these failures, one after the other. */
function failing(...failures: Error[]) {
  const starts = { count: 0 };
  const start = async () => {
    const failure = failures[starts.count++];
    if (failure) throw failure;
    return 'started';
  };
  return { starts, start };
}

describe('startAgain', () => {
  it('repeats a start that lost its database', async () => {
    const { starts, start } = failing(lost(), Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
    expect(await startAgain(start, log, signal)).toBe('started');
    expect(starts.count).toBe(3);
  });

  it.each([new StartupError('the port is taken', lost()), new TypeError('a fault of the program')])(
    'does not repeat a start that fails with %s',
    async (failure) => {
      const { starts, start } = failing(failure);
      await expect(startAgain(start, log, signal)).rejects.toBe(failure);
      expect(starts.count).toBe(1);
    },
  );

  it('does not repeat a start of a process that stops', async () => {
    const { starts, start } = failing(lost());
    await expect(startAgain(start, log, AbortSignal.abort())).rejects.toThrow('terminating connection');
    expect(starts.count).toBe(1);
  });
});
