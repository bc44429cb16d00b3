import { setTimeout as delay } from 'node:timers/promises';
import { ALL_SHARDS } from '../../src/domain/values/shard.ts';
import { shardsOfLane } from '../../src/queues/jobs.ts';
import type { Stage } from '../../src/store/marks/detail.ts';
import { type ClaimOptions, type StageWork, workShards } from '../../src/store/marks/stage.ts';
import type { JobContext, JobReport } from './define.ts';

interface StageJob<T> {
  stage: Stage;
  /** Absent: every shard. */
  lane?: number;
  claim: ClaimOptions;
  work: StageWork<T>;
  /** The pause after a claim with marks that is not full, so that the next claim gathers more. Absent: no pause. */
  gatherMs?: number;
  /** Called after each commit. */
  onDone?(result: T): void;
}

/**
 * Processes the marks of a stage. Without a lane, and in a process without `lanes`, it ends when a claim is empty. A job of a lane waits for
 * further marks, and may take those of other lanes of this process.
 */
export async function runStage<T>(context: JobContext, job: StageJob<T>): Promise<JobReport> {
  // `parked` is a log field, so it keeps its name.
  const report = { claimed: 0, parked: 0 };
  const { lane } = job;
  if (lane === undefined) return workUntilEmpty(context, job, ALL_SHARDS, report);
  const { lanes: waiting } = context;
  if (waiting === undefined) return workUntilEmpty(context, job, shardsOfLane(lane), report);
  waiting.begin(lane);
  try {
    let lanes: readonly number[] = [lane];
    let claimed = 0;
    while (lanes.length > 0) {
      const done = await workOnce(context, job, lanes.flatMap(shardsOfLane), report);
      claimed += done.claimed;
      // The job may wait for minutes.
      context.metrics.jobLastSuccess.set({ job_name: job.stage }, context.now() / 1000);
      if (done.isFull && !context.signal.aborted) {
        lanes = waiting.spread(lanes);
        continue;
      }
      if (done.claimed > 0) await gather(context, job);
      lanes = await waiting.next(lane, claimed, context.signal);
      claimed = 0;
    }
  } finally {
    await waiting.end(lane);
  }
  return report;
}

async function workUntilEmpty<T>(
  context: JobContext,
  job: StageJob<T>,
  shards: readonly number[],
  report: Report,
): Promise<JobReport> {
  while (!context.signal.aborted) {
    const done = await workOnce(context, job, shards, report);
    if (done.claimed === 0) break;
    if (!done.isFull) await gather(context, job);
  }
  return report;
}

type Report = { claimed: number; parked: number };

/** One claim. Returns the number of marks that it took, with the dead letters, and whether more are pending. */
async function workOnce<T>(
  context: JobContext,
  { stage, claim, work, onDone }: StageJob<T>,
  shards: readonly number[],
  report: Report,
): Promise<{ claimed: number; isFull: boolean }> {
  const { metrics } = context;
  const startedMs = performance.now();
  const done = await workShards(context.db, stage, shards, claim, work);
  if (done.claimed > 0) metrics.stageBatch.observe({ stage }, (performance.now() - startedMs) / 1000);
  metrics.marksClaimed.inc({ stage }, done.claimed);
  report.claimed += done.claimed;
  for (const result of done.results) onDone?.(result);
  let parked = 0;
  for (const { marks, error } of done.deadLettered) {
    parked += marks.length;
    context.log.error({ stage, key: String(marks[0]?.key), marks: marks.length, err: error }, 'marks dead-lettered');
  }
  report.parked += parked;
  return { claimed: done.claimed + parked, isFull: done.isFull };
}

async function gather<T>({ signal }: JobContext, { gatherMs }: StageJob<T>): Promise<void> {
  if (gatherMs !== undefined) await pause(gatherMs, signal);
}

/** Resolves after `ms`, or when the signal fires. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
