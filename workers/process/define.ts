import { type Job, type Processor, UnrecoverableError } from 'bullmq';
import { asError } from '../../src/domain/values/errors.ts';
import { openDeadline } from '../../src/domain/values/signals.ts';
import { scrubText } from '../../src/domain/values/text.ts';
import { FailureStreaks } from '../../src/observe/failure-streaks.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { JOBS, type JobData, type JobName } from '../../src/queues/jobs.ts';
import type { WorkerDeps } from './deps.ts';

/** The context of a job, beside its data. */
export interface JobContext extends WorkerDeps {
  /** Fires at the deadline of the job, when the process stops, and when the job is cancelled. The job then takes no more work. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Fields for the job's one log line. */
export type JobReport = Record<string, string | number | boolean>;

export interface DefinedJob {
  readonly name: JobName;
  run(data: unknown, context: JobContext): Promise<JobReport>;
}

/** A job of the contract with its processor. Data is validated against the contract before `run` sees it. */
export function defineJob<Name extends JobName>(
  name: Name,
  run: (data: JobData<Name>, context: JobContext) => Promise<JobReport>,
): DefinedJob {
  return {
    name,
    run: (data, context) => run(JOBS[name].data.parse(data) as JobData<Name>, context),
  };
}

/**
 * The wrapper of every job: deadline, log line, metric, error mapping. BullMQ does not retry a failed job, because a job is only a
 * wake-up, and the reconcile timer enqueues another while work is pending.
 */
export function createProcessor(jobs: readonly DefinedJob[], deps: WorkerDeps): Processor {
  const streaks = new FailureStreaks();
  const byName = new Map(jobs.map((job) => [job.name as string, job]));
  return async (job: Job, _token?: string, cancelled?: AbortSignal): Promise<JobReport> => {
    // Redis was emptied between the hand-out of this job and its start: BullMQ makes its key again, without name and data.
    if ((job.name as string | undefined) === undefined) return { skipped: 'deleted from the queue store' };
    const defined = byName.get(job.name);
    if (!defined) throw new UnrecoverableError(`no processor for job ${scrubText(job.name)}`);
    const log = deps.log.child({ job: job.name, jobId: job.id });
    const { deadlineMs } = JOBS[defined.name];
    const deadline = openDeadline(cancelled ? [deps.stopping, cancelled] : [deps.stopping], deadlineMs);
    const startedMs = performance.now();
    const ended = deps.tracker.job(job.queueName, job.name, deadlineMs);
    try {
      const report = await defined.run(job.data, { ...deps, signal: deadline.signal, log });
      const durationMs = Math.round(performance.now() - startedMs);
      deps.metrics.jobs.observe({ job_name: job.name, outcome: 'done' }, durationMs / 1000);
      deps.metrics.jobLastSuccess.set({ job_name: job.name }, deps.now() / 1000);
      streaks.succeeded(job.name);
      log.debug({ durationMs, ...report }, 'job done');
      return report;
    } catch (thrown) {
      const error = asError(thrown);
      const durationMs = Math.round(performance.now() - startedMs);
      deps.metrics.jobs.observe({ job_name: job.name, outcome: 'failed' }, durationMs / 1000);
      const { inARow, shouldLog } = streaks.failed(job.name);
      log[shouldLog ? 'warn' : 'debug']({ durationMs, inARow, err: error }, 'job failed');
      // Postgres cannot store U+0000 or lone surrogates: such a message would make the job impossible to fail.
      throw new Error(scrubText(error.message).slice(0, 1_000));
    } finally {
      deadline.close();
      ended();
    }
  };
}
