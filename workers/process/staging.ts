import { setTimeout as delay } from 'node:timers/promises';
import { ALL_SHARDS } from '../../src/domain/values/shard.ts';
import { shardsOfLane } from '../../src/queues/jobs.ts';
import type { Stage } from '../../src/store/marks/detail.ts';
import type { ClaimOptions } from '../../src/store/marks/marks.ts';
import { type StageWork, workShards } from '../../src/store/marks/stage.ts';
import type { JobContext, JobReport } from './define.ts';

interface StageJob<T> {
  stage: Stage;
  /** Absent: every shard. */
  lane?: number;
  claim: ClaimOptions;
  work: StageWork<T>;
  /** The pause after a claim that is not full, so that the next claim gathers more marks. Absent: no pause. */
  gatherMs?: number;
  /** Called after each commit. */
  onDone?(result: T): void;
}

/** Processes the marks of a stage until a claim is empty or the signal fires. */
export async function runStage<T>(context: JobContext, job: StageJob<T>): Promise<JobReport> {
  const { metrics } = context;
  // `parked` is a log field, so it keeps its name.
  const report = { claimed: 0, parked: 0 };
  const shards = job.lane === undefined ? ALL_SHARDS : shardsOfLane(job.lane);
  for (;;) {
    if (context.signal.aborted) return report;
    const startedMs = performance.now();
    const done = await workShards(context.db, job.stage, shards, job.claim, job.work);
    if (done.claimed === 0 && done.deadLettered.length === 0) return report;
    const { stage } = job;
    if (done.claimed > 0) metrics.stageBatch.observe({ stage }, (performance.now() - startedMs) / 1000);
    metrics.marksClaimed.inc({ stage }, done.claimed);
    report.claimed += done.claimed;
    for (const result of done.results) job.onDone?.(result);
    for (const { marks, error } of done.deadLettered) {
      report.parked += marks.length;
      context.log.error({ stage, key: String(marks[0]?.key), marks: marks.length, err: error }, 'marks dead-lettered');
    }
    if (job.gatherMs !== undefined && !done.isFull) await pause(job.gatherMs, context.signal);
  }
}

/** Resolves after `ms`, or when the signal fires. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
