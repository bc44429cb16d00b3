import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { closeWorkers } from '../../../workers/process/close-workers.ts';

/** Longer than the interval between two pings of `closeWorkers`. */
const A_WHILE_MS = 600;

/** A queue store that answers or fails. `asked` resolves at the second ping. */
function store(isThere: boolean) {
  let pings = 0;
  let onAsked: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  return {
    asked,
    async ping() {
      pings += 1;
      if (pings === 2) onAsked();
      if (!isThere) throw new Error('down');
    },
  };
}

/** A Worker whose `close` settles on command. */
function slowWorker() {
  let close: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const closed = new Promise<void>((resolve, reject) => {
    close = resolve;
    fail = reject;
  });
  return {
    worker: { close: () => closed } as unknown as Worker,
    close: () => close(),
    fail: (error: Error) => fail(error),
  };
}

describe('closeWorkers', () => {
  it('waits for every worker while the queue store answers', async () => {
    const [first, second] = [slowWorker(), slowWorker()];
    const backend = store(true);
    let isOver = false;
    const closing = closeWorkers([first.worker, second.worker], backend, () => false).then(() => {
      isOver = true;
    });
    first.close();
    await backend.asked;
    expect(isOver).toBe(false);
    second.close();
    await closing;
  });

  it('does not wait for a worker when the queue store is down', async () => {
    const { worker, fail } = slowWorker();
    await closeWorkers([worker], store(false), () => false);
    // A later failure is not reported any more.
    fail(new Error('Connection is closed.'));
  });

  it('waits for running jobs when the queue store is down', async () => {
    let isAtWork = true;
    let isOver = false;
    const closing = closeWorkers([slowWorker().worker], store(false), () => isAtWork).then(() => {
      isOver = true;
    });
    await delay(A_WHILE_MS);
    expect(isOver).toBe(false);
    isAtWork = false;
    await closing;
  });

  it('rejects when a worker does not close', async () => {
    const { worker, fail } = slowWorker();
    const closing = closeWorkers([worker], store(true), () => false);
    fail(new Error('not closed'));
    await expect(closing).rejects.toThrow('not closed');
  });
});
