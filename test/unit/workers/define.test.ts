import type { Job } from 'bullmq';
import { afterEach, expect, it, vi } from 'vitest';
import { LivenessTracker } from '../../../src/observe/liveness.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { JOBS } from '../../../src/queues/jobs.ts';
import { createProcessor, defineJob } from '../../../workers/process/define.ts';
import type { WorkerDeps } from '../../../workers/process/deps.ts';

afterEach(() => vi.useRealTimers());

it('createProcessor skips a job without a name when Redis was emptied after its hand-out', async () => {
  const processor = createProcessor([], {} as Parameters<typeof createProcessor>[1]);
  expect(await processor({ id: '7' } as Job)).toEqual({ skipped: 'deleted from the queue store' });
});

it('createProcessor aborts the signal of a job at its deadline, not before', async () => {
  vi.useFakeTimers();
  const log = createLogger({ process: 'test', level: 'silent' });
  const metrics = createMetrics('test', { ofNode: false });
  const tracker = new LivenessTracker();
  const deps = { log, metrics, tracker, stopping: new AbortController().signal, now: Date.now } as Partial<WorkerDeps>;
  const states: boolean[] = [];
  const job = defineJob('maintain-storage', async (_data, { signal }) => {
    await vi.advanceTimersByTimeAsync(JOBS['maintain-storage'].deadlineMs - 1);
    states.push(signal.aborted);
    await vi.advanceTimersByTimeAsync(1);
    states.push(signal.aborted);
    return {};
  });
  await createProcessor(
    [job],
    deps as WorkerDeps,
  )({ id: '7', name: 'maintain-storage', queueName: 'storage', data: {} } as Job);
  expect(states).toEqual([false, true]);
  expect(vi.getTimerCount()).toBe(0);
});
