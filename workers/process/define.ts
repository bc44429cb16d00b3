import { type Job, type Processor, UnrecoverableError } from 'bullmq';
import { asError } from '../../src/domain/values/errors.ts';
import { openDeadline } from '../../src/domain/values/signals.ts';
import { scrubText } from '../../src/domain/values/text.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { JOBS, type JobData, type JobName } from '../../src/queues/jobs.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import type { WorkerDeps } from './deps.ts';

/** The context of a job, beside its data. */
export interface JobContext extends WorkerDeps {
  /** Fires at the deadline of the job, when the process stops, and when the job is cancelled. The job then takes no more work. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Runs another job in this process, with a deadline, a log and metrics of its own. It ends with the process, not with this job. */
  run<Name extends JobName>(name: Name, data: JobData<Name>): Promise<JobReport>;
}

/** Fields for the job's one log line. */
export type JobReport = Record<string, string | number | boolean>;

export interface DefinedJob<Name extends JobName = JobName> {
  readonly name: Name;
  run(data: unknown, context: JobContext): Promise<JobReport>;
}

/** A job of the contract with its processor. Data is validated against the contract before `run` sees it. */
export function defineJob<Name extends JobName>(
  name: Name,
  run: (data: JobData<Name>, context: JobContext) => Promise<JobReport>,
): DefinedJob<Name> {
  return {
    name,
    run: (data, context) => run(JOBS[name].data.parse(data) as JobData<Name>, context),
  };
}

/** Failed jobs of a process in a row, by name. */
const streaksOf = oncePerOwner((_metrics: object) => new FailureStreaks());

/** A job to run. */
interface Run {
  readonly defined: DefinedJob;
  readonly queue: string;
  readonly id: string | undefined;
  readonly data: unknown;
}

/**
 * The wrapper of every job: deadline, log line, metric, error mapping. It ends at its deadline, and when one of `signals` fires.
 * @throws the error of the job
 */
async function runJob(
  { defined, queue, id, data }: Run,
  deps: WorkerDeps,
  byName: ReadonlyMap<string, DefinedJob>,
  signals: readonly AbortSignal[],
): Promise<JobReport> {
  const { name } = defined;
  const log = deps.log.child({ job: name, jobId: id });
  const { deadlineMs } = JOBS[name];
  const deadline = openDeadline(signals, deadlineMs);
  const startedMs = performance.now();
  const ended = deps.tracker.job(queue, name, deadlineMs);
  const streaks = streaksOf(deps.metrics);
  const run: JobContext['run'] = (other, otherData) => {
    const queueOf = JOBS[other].queue as (data: unknown) => string;
    const job = { defined: find(byName, other), queue: queueOf(otherData), id, data: otherData };
    return runJob(job, deps, byName, [deps.stopping]);
  };
  try {
    const report = await defined.run(data, { ...deps, signal: deadline.signal, log, run });
    const durationMs = Math.round(performance.now() - startedMs);
    deps.metrics.jobs.observe({ job_name: name, outcome: 'done' }, durationMs / 1000);
    deps.metrics.jobLastSuccess.set({ job_name: name }, deps.now() / 1000);
    streaks.succeeded(name);
    log.debug({ durationMs, ...report }, 'job done');
    return report;
  } catch (thrown) {
    const error = asError(thrown);
    const durationMs = Math.round(performance.now() - startedMs);
    deps.metrics.jobs.observe({ job_name: name, outcome: 'failed' }, durationMs / 1000);
    const { inARow, shouldLog } = streaks.failed(name);
    log[shouldLog ? 'warn' : 'debug']({ durationMs, inARow, err: error }, 'job failed');
    throw error;
  } finally {
    deadline.close();
    ended();
  }
}

/** @throws UnrecoverableError when this process has no such processor */
function find(byName: ReadonlyMap<string, DefinedJob>, name: string): DefinedJob {
  const defined = byName.get(name);
  if (!defined) throw new UnrecoverableError(`no processor for job ${scrubText(name)}`);
  return defined;
}

/**
 * Runs jobs of the queues. BullMQ does not retry a failed job, because a job is only a wake-up, and the reconcile timer enqueues another
 * while work is pending.
 */
export function createProcessor(jobs: readonly DefinedJob[], deps: WorkerDeps): Processor {
  const byName = new Map(jobs.map((job) => [job.name as string, job]));
  return async (job: Job, _token?: string, cancelled?: AbortSignal): Promise<JobReport> => {
    // Redis was emptied between the hand-out of this job and its start: BullMQ makes its key again, without name and data.
    if ((job.name as string | undefined) === undefined) return { skipped: 'deleted from the queue store' };
    const defined = find(byName, job.name);
    const signals = cancelled ? [deps.stopping, cancelled] : [deps.stopping];
    const { queueName: queue, id, data } = job;
    return runJob({ defined, queue, id, data }, deps, byName, signals).catch((thrown: unknown) => {
      // Postgres cannot store U+0000 or lone surrogates: such a message would make the job impossible to fail.
      throw new Error(scrubText(asError(thrown).message).slice(0, 1_000));
    });
  };
}
