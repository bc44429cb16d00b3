import type { Config } from '../config/config.ts';
import { VENUES } from '../domain/markets/venue.ts';
import { volumeRuleOf } from '../domain/markets/volume-witness.ts';
import { JOBS, type JobData, type JobName, POLL_QUEUE, type Role } from './jobs.ts';
import type { Producer } from './producer.ts';

/** A repeated job. The id is `job.venue`, or the job's name for a job without a venue. */
interface Schedule {
  id: string;
  job: JobName;
  data: JobData<JobName>;
  everyMs: number;
  /** Cron with seconds, for jobs that need an exact moment and not only an interval. */
  pattern?: string;
}

const POLLED = ['markets', 'prices', 'books', 'trades', 'wallets', 'tokens'] as const;
/** A job runs the polls of its venue for this long. A job costs the queue some fifteen statements, and a renewed lock one for all venues. */
export const POLL_VENUE_EVERY_MS = 12_000;
const MINUTE_MS = 60_000;
/** Six totals a minute of the markets that trade most: a loss is reported within a minute. */
const WITNESS_EVERY_MS = 10_000;
const FRESHNESS_MS = 15_000;
/** Jobs that a client waits for come before ticks: BullMQ runs jobs without a priority first. */
const SCHEDULED_PRIORITY = 10;

/** The first job of a process begins now, and not at the end of the interval of a process that ended. */
export async function wakeVenuePolls(producer: Producer, venues: readonly string[], nowMs: number): Promise<void> {
  for (const venue of venues) {
    const schedule = await producer.queue(POLL_QUEUE).getJobScheduler(`poll-venue.${venue}`);
    if ((schedule?.next ?? 0) > nowMs) producer.wake('poll-venue', { venue });
  }
}

/** A poll of a venue that repeats. */
export interface Poll {
  readonly job: (typeof POLL_JOBS)[number];
  readonly everyMs: number;
}

/** The jobs of polls. Processes of the former release have a schedule for each, with the id `job.venue`. */
export const POLL_JOBS = [...POLLED.map((kind) => `poll-${kind}` as const), 'witness-trades'] as const;

/** The polls of a venue, which its job runs when they are due. */
export function pollsOf(venue: Config['venues'][number], { pollMs }: Pick<Config, 'pollMs'>): Poll[] {
  const polls = POLLED.filter((kind) => VENUES[venue].capabilities[kind]).map((kind): Poll => {
    // Token prices are prices too.
    return { job: `poll-${kind}`, everyMs: pollMs[kind === 'tokens' ? 'prices' : kind] };
  });
  if (volumeRuleOf(venue) === undefined) return polls;
  return [...polls, { job: 'witness-trades', everyMs: WITNESS_EVERY_MS }];
}

/** The schedules that the processes of a role keep alive. */
export function schedulesOf(role: Role, config: Pick<Config, 'venues' | 'maintainStorageMs'>): Schedule[] {
  if (role === 'aggregator') {
    return [
      // Just after the end of the minute, when its snapshots can be taken.
      { id: 'sample-snapshots', job: 'sample-snapshots', data: {}, everyMs: MINUTE_MS, pattern: '1 * * * * *' },
      { id: 'measure-freshness', job: 'measure-freshness', data: {}, everyMs: FRESHNESS_MS },
      { id: 'maintain-storage', job: 'maintain-storage', data: {}, everyMs: config.maintainStorageMs },
    ];
  }
  if (role !== 'poller') return [];
  return config.venues.map((venue) => {
    const job = 'poll-venue';
    return { id: `${job}.${venue}`, job, data: { venue }, everyMs: POLL_VENUE_EVERY_MS };
  });
}

/**
 * A chain whose next run is this many intervals (and at least 5 s) in the past has stopped. A chain whose next run is equally far
 * in the future was created by a clock that was wrong or has been set back since: it would not run until then.
 */
const STOPPED_AFTER_INTERVALS = 2;
const STOPPED_AFTER_MS = 5_000;

/**
 * Reconciles the queue store's schedulers with the table: it recreates missing, changed or stopped schedulers, and leaves
 * healthy ones alone. Returns the recreated ids. Called at boot and by the reconcile timer.
 */
export async function reconcileSchedules(
  producer: Producer,
  schedules: readonly Schedule[],
  nowMs: number,
): Promise<string[]> {
  const repaired: string[] = [];
  for (const schedule of schedules) {
    const queueOf = JOBS[schedule.job].queue as (data: Schedule['data']) => string;
    const queue = producer.queue(queueOf(schedule.data));
    const current = await queue.getJobScheduler(schedule.id);
    const awayMs = Math.abs(nowMs - (current?.next ?? 0));
    const limitMs = Math.max(STOPPED_AFTER_MS, STOPPED_AFTER_INTERVALS * schedule.everyMs);
    const isStopped = awayMs > limitMs;
    const { pattern, everyMs } = schedule;
    const isAsWanted = pattern === undefined ? current?.every === everyMs : current?.pattern === pattern;
    // An operator paused this queue: a pause is not a fault.
    if (current && isAsWanted && (!isStopped || (await queue.isPaused()))) continue;
    if (current && isStopped) await queue.removeJobScheduler(schedule.id);
    await queue.upsertJobScheduler(schedule.id, pattern === undefined ? { every: everyMs } : { pattern, tz: 'UTC' }, {
      name: schedule.job,
      data: schedule.data,
      opts: { priority: SCHEDULED_PRIORITY },
    });
    repaired.push(schedule.id);
  }
  return repaired;
}
