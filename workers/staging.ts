import { laneOf } from '../src/queues/jobs.ts';
import { type ClaimOptions, type Stage, waitingShards } from '../src/store/marks.ts';
import { type StageWork, workShard } from '../src/store/stage.ts';
import type { JobContext, JobReport } from './define.ts';

interface StageJob<T> {
  stage: Stage;
  /** Absent: every shard. */
  lane?: number;
  claim: ClaimOptions;
  work: StageWork<T>;
  /** Told after each commit. */
  onDone?(result: T): void;
}

/** Works off the marks of a stage until claims come back empty or the signal fires (DESIGN section 2, point 3). */
export async function runStage<T>(context: JobContext, job: StageJob<T>): Promise<JobReport> {
  const { metrics } = context;
  const report = { claimed: 0, parked: 0 };
  for (;;) {
    const waiting = await waitingShards(context.db, job.stage, job.claim.detailBelow);
    const shards = waiting.filter((shard) => job.lane === undefined || laneOf(shard) === job.lane);
    if (shards.length === 0) return report;
    for (const shard of shards) {
      if (context.signal.aborted) return report;
      const startedMs = performance.now();
      const done = await workShard(context.db, job.stage, shard, job.claim, job.work);
      const { stage } = job;
      if (done.claimed > 0) metrics.stageBatch.observe({ stage }, (performance.now() - startedMs) / 1000);
      metrics.marksClaimed.inc({ stage }, done.claimed);
      report.claimed += done.claimed;
      for (const result of done.results) job.onDone?.(result);
      for (const { marks, error } of done.parked) {
        report.parked += marks.length;
        context.log.error(
          { stage, key: String(marks[0]?.key), marks: marks.length, err: error },
          'poison marks parked',
        );
      }
    }
  }
}
