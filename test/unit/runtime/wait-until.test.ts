import { expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { waitUntilAnswers } from '../../../src/runtime/wait-until.ts';

const log = createLogger({ process: 'test', level: 'silent' });

it('waitUntilAnswers retries until the store answers', async () => {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    if (asked < 3) throw new Error('not yet');
  };
  await waitUntilAnswers('the store', ask, log, new AbortController().signal);
  expect(asked).toBe(3);
});

it('waitUntilAnswers ends when the signal fires', async () => {
  const stopping = new AbortController();
  const ask = async () => {
    stopping.abort();
    throw new Error('away');
  };
  await expect(waitUntilAnswers('the store', ask, log, stopping.signal)).rejects.toThrow(
    'stopped while waiting for the store',
  );
});
