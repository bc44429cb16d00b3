import type { Job, Queue, Worker } from 'bullmq';
import { expect, it } from 'vitest';
import { gate } from '../../support/gate.ts';
import type { TcpProxy } from '../../support/processes/tcp-proxy.ts';

/** A worker whose connections to the server can be cut, and its queue on connections of its own. */
export interface CutWorker {
  readonly proxy: TcpProxy;
  readonly worker: Worker;
  readonly queue: Queue;
  /** The jobs that returned by the end of their locks. */
  readonly stalled: readonly string[];
  /** Runs the worker; returns the function that ends it, its queue and its proxy. */
  start(): () => Promise<void>;
}

/** `close` ends what the worker was made with, after the worker and its queue. */
export function aCutWorker({
  close,
  ...made
}: Omit<CutWorker, 'stalled' | 'start'> & { close(): Promise<void> }): CutWorker {
  const { proxy, worker, queue } = made;
  const stalled: string[] = [];
  worker.on('error', () => undefined);
  worker.on('stalled', (id) => stalled.push(id));
  return {
    ...{ ...made, stalled },
    start() {
      const ended = worker.run();
      return async () => {
        proxy.resume();
        await worker.close();
        await queue.close();
        await ended;
        await close();
      };
    },
  };
}

/** Resolves when the job has this state. */
export const reached = (worker: Worker, event: 'completed' | 'failed', wanted: () => string) =>
  new Promise<void>((resolve) => {
    const look = (job?: Job) => void (job?.id === wanted() && resolve());
    if (event === 'completed') worker.on(event, look);
    else worker.on(event, look);
  });

const LOST = { lane: 3, note: 'the-lost-one' };

/** The tests of a worker that gets a lost job again before its lock ends. */
export function processesLostJobs(cutWorker: (processor: (job: Job) => Promise<unknown>) => Promise<CutWorker>): void {
  it.each(['starts', 'waits for a job'] as const)('by a fetch of a worker that %s', async (when) => {
    const { proxy, worker, queue, stalled, start } = await cutWorker(async () => 'done');
    let id = '';
    const add = async () => {
      id = (await queue.add('evaluate-alerts', LOST)).id ?? '';
    };
    const processed = reached(worker, 'completed', () => id);
    const drained = new Promise<void>((resolve) => worker.once('drained', resolve));
    const cut = proxy.cutAt(LOST.note);
    if (when === 'starts') await add();
    const stop = start();
    try {
      if (when === 'waits for a job') await drained.then(add);
      await cut;
      expect(await queue.getJobState(id)).toBe('active');
      proxy.resume();
      await processed;
      expect(stalled).toEqual([]);
    } finally {
      await stop();
    }
  });

  it('by the end of the job before', async () => {
    const [begun, added, cut] = [gate(), gate(), gate()];
    let [first, second] = ['', ''];
    const { proxy, worker, queue, stalled, start } = await cutWorker(async ({ data }) => {
      if ((data as { note?: string }).note !== undefined) return;
      begun.open();
      await added.opened;
      void proxy.cutAt(LOST.note).then(cut.open);
    });
    const processed = reached(worker, 'completed', () => second);
    const stop = start();
    try {
      first = (await queue.add('evaluate-alerts', { lane: 4 })).id ?? '';
      await begun.opened;
      second = (await queue.add('evaluate-alerts', LOST)).id ?? '';
      added.open();
      await cut.opened;
      expect(await queue.getJobState(second)).toBe('active');
      proxy.resume();
      await processed;
      expect(await queue.getJobState(first)).toBe('completed');
      expect(stalled).toEqual([]);
    } finally {
      await stop();
    }
  });
}
