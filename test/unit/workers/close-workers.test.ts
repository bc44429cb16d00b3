import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { closeWorkers } from '../../../workers/process/close-workers.ts';

/** Longer than what `closeWorkers` lets pass between two looks. */
const A_WHILE_MS = 600;

/** A queue store that answers, or does not; `asked` resolves at the second question. */
function store(isThere: boolean) {
  let questions = 0;
  let onAsked: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  return {
    asked,
    async ping() {
      questions += 1;
      if (questions === 2) onAsked();
      if (!isThere) throw new Error('away');
    },
  };
}

/** A Worker whose `close` settles when told. */
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

describe('closing workers', () => {
  it('waits for every one of them while the queue store answers', async () => {
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

  it('waits for no answer of a queue store that is away', async () => {
    const { worker, fail } = slowWorker();
    await closeWorkers([worker], store(false), () => false);
    // What comes of it later is nobody's any more.
    fail(new Error('Connection is closed.'));
  });

  it('waits for the jobs under way, whatever is away', async () => {
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

  it('tells what went wrong', async () => {
    const { worker, fail } = slowWorker();
    const closing = closeWorkers([worker], store(true), () => false);
    fail(new Error('not closed'));
    await expect(closing).rejects.toThrow('not closed');
  });
});
