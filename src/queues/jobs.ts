import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../domain/archive/kinds.ts';
import { VENUE_NAMES } from '../domain/markets/venue.ts';
import { ALL_SHARDS, SHARDS } from '../domain/values/shard.ts';

/** The processes that run jobs. `api` and `streamer` only enqueue. */
export const ROLES = ['poller', 'aggregator', 'alerter', 'deliverer'] as const;
export type Role = (typeof ROLES)[number];

/** The process that reads the venues' feeds. */
export const STREAMER = 'streamer';

/**
 * Wake-ups of a stage go out per lane, a lane being every LANES-th shard: enough to keep two processes of a role busy,
 * few enough that a batch touching all shards costs four jobs, not sixteen.
 */
export const LANES = 4;

/** The lane of a shard. */
export function laneOf(shard: number): number {
  return shard % LANES;
}

/** Wakes one of several jobs of a name. */
export interface Lane {
  readonly job: string;
  readonly lane: number;
}

/** The lane of a poll that other processes request. */
export function pollLane(job: string, venue: string): Lane {
  return { job: `${job}.${venue}`, lane: 0 };
}

/** The poll of a lane. */
export function pollOf({ job }: Lane): { job: string; venue: string } {
  const [name = '', venue = ''] = job.split('.');
  return { job: name, venue };
}

/** In ascending order. */
export function shardsOfLane(lane: number): readonly number[] {
  return ALL_SHARDS.filter((shard) => laneOf(shard) === lane);
}

const venueData = z.strictObject({ venue: z.string() });
const marketData = z.strictObject({ venue: z.string(), marketPk: z.string().regex(/^\d{1,19}$/) });
const laneData = z.strictObject({
  lane: z
    .number()
    .int()
    .min(0)
    .max(Math.min(LANES, SHARDS) - 1),
});
const noData = z.strictObject({});
const backtestData = z.strictObject({ backtestPk: z.string().regex(/^\d{1,19}$/) });
const archiveData = z.strictObject({
  kind: z.enum(ARCHIVE_KIND_NAMES),
  venue: z.string(),
  date: z.string().regex(/^\d{4}-\d\d-\d\d$/),
});
const subscriptionData = z.strictObject({ subscriptionPk: z.string().regex(/^\d{1,19}$/) });

/** The contract of one kind of job: its queue, its data (ids only) and the role that runs it. */
interface JobContract<Schema extends z.ZodType> {
  readonly queue: (data: z.infer<Schema>) => string;
  readonly data: Schema;
  readonly role: Role;
  /** At most one active and one waiting per id; absent: never deduplicated. */
  readonly deduplicationId?: (data: z.infer<Schema>) => string;
  /** The job's own limit; the signal it gets is aborted then. */
  readonly deadlineMs: number;
}

function job<Schema extends z.ZodType>(contract: JobContract<Schema>): JobContract<Schema> {
  return contract;
}

/** The queue of one venue, so that a slow venue never delays another. */
export function venueQueue(venue: string): string {
  return `venue-${venue}`;
}

/** The queue of the ticks of all venues. */
export const POLL_QUEUE = 'polls';

const poll = job({
  queue: ({ venue }) => venueQueue(venue),
  data: venueData,
  role: 'poller',
  deadlineMs: 60_000,
});

/** All jobs. Producers and workers read this table; no other place contains a queue name. */
export const JOBS = {
  /**
   * Runs the due polls of a venue side by side until the next one of the venue begins. It has a queue of its own, because processes of the
   * former release take jobs from the queues of the venues, and would fail it.
   */
  'poll-venue': job({
    ...poll,
    queue: () => POLL_QUEUE,
    deduplicationId: ({ venue }) => `poll-venue-${venue}`,
    deadlineMs: 90_000,
  }),
  'poll-markets': job({ ...poll, deduplicationId: ({ venue }) => `poll-markets-${venue}` }),
  'poll-prices': poll,
  'poll-books': poll,
  /** Beside its schedule, a feed requests it: a print shows that the tape has a new trade. */
  'poll-trades': job({ ...poll, deduplicationId: ({ venue }) => `poll-trades-${venue}` }),
  /** Prices of the mints that have active alerts. */
  'poll-tokens': poll,
  /** The books of one market, on a client's request. */
  'fetch-book': job({
    ...poll,
    data: marketData,
    deduplicationId: ({ marketPk }) => `fetch-book-${marketPk}`,
    deadlineMs: 10_000,
  }),
  /** Trades older than the live feed, market after market. */
  'backfill-trades': job({ ...poll, deduplicationId: ({ venue }) => `backfill-trades-${venue}` }),
  /** The totals of a venue, compared with the stored trades. */
  'witness-trades': job({ ...poll, deduplicationId: ({ venue }) => `witness-trades-${venue}` }),
  /** The watched wallets of a venue that are due. */
  'poll-wallets': job({ ...poll, deduplicationId: ({ venue }) => `poll-wallets-${venue}` }),
  'fold-candles': job({
    queue: () => 'candles',
    data: laneData,
    role: 'aggregator',
    deduplicationId: ({ lane }) => `fold-candles-${lane}`,
    deadlineMs: 120_000,
  }),
  'sample-snapshots': job({
    queue: () => 'candles',
    data: noData,
    role: 'aggregator',
    deduplicationId: () => 'sample-snapshots',
    deadlineMs: 120_000,
  }),
  'maintain-storage': job({
    queue: () => 'candles',
    data: noData,
    role: 'aggregator',
    deduplicationId: () => 'maintain-storage',
    deadlineMs: 300_000,
  }),
  /** The age of the prices of every venue. */
  'measure-freshness': job({
    queue: () => 'candles',
    data: noData,
    role: 'aggregator',
    deduplicationId: () => 'measure-freshness',
    deadlineMs: 60_000,
  }),
  /** Stored candles that an older release folded in a different order of trades. */
  'refold-candles': job({
    queue: () => 'candles',
    data: noData,
    role: 'aggregator',
    deduplicationId: () => 'refold-candles',
    deadlineMs: 60_000,
  }),
  /** A queue of its own, because a backtest takes up to minutes. */
  'run-backtest': job({
    queue: () => 'backtests',
    data: backtestData,
    role: 'aggregator',
    deduplicationId: ({ backtestPk }) => `run-backtest-${backtestPk}`,
    deadlineMs: 600_000,
  }),
  /** The file of a day; a queue of its own, because a large day takes minutes. */
  'archive-day': job({
    queue: () => 'archive',
    data: archiveData,
    role: 'aggregator',
    deduplicationId: ({ kind, venue, date }) => `archive-day-${kind}-${venue}-${date}`,
    deadlineMs: 3_600_000,
  }),
  'evaluate-alerts': job({
    queue: () => 'alerts',
    data: laneData,
    role: 'alerter',
    deduplicationId: ({ lane }) => `evaluate-alerts-${lane}`,
    deadlineMs: 120_000,
  }),
  'deliver-webhook': job({
    queue: () => 'deliveries',
    data: subscriptionData,
    role: 'deliverer',
    deduplicationId: ({ subscriptionPk }) => `deliver-webhook-${subscriptionPk}`,
    deadlineMs: 3_600_000,
  }),
  /** The due deliveries of all subscriptions of a lane: one job, because a job per subscription would cost more than the sending. */
  'deliver-due': job({
    queue: () => 'deliveries',
    data: laneData,
    role: 'deliverer',
    deduplicationId: ({ lane }) => `deliver-due-${lane}`,
    deadlineMs: 3_600_000,
  }),
} as const;

export type JobName = keyof typeof JOBS;
export type JobData<Name extends JobName> = z.infer<(typeof JOBS)[Name]['data']>;
export const JOB_NAMES = Object.keys(JOBS) as JobName[];

/** The queues that exist for these venues. */
export function queueNames(venues: readonly string[]): string[] {
  return [POLL_QUEUE, ...venues.map(venueQueue), 'candles', 'backtests', 'archive', 'alerts', 'deliveries'];
}

/** The queues that a role takes jobs from. */
export function queuesOfRole(role: Role, venues: readonly string[]): string[] {
  switch (role) {
    case 'poller':
      return [POLL_QUEUE, ...venues.map(venueQueue)];
    case 'aggregator':
      return ['candles', 'backtests', 'archive'];
    case 'alerter':
      return ['alerts'];
    case 'deliverer':
      return ['deliveries'];
  }
}

/** The concurrency of one queue in one process. */
export function concurrencyOf(queue: string): number {
  if (queue === 'deliveries') return 64;
  if (queue === 'backtests') return 2;
  // A file is made within a limit of memory.
  if (queue === 'archive') return 1;
  if (queue === 'alerts') return LANES + 1;
  // Two per venue: the last walk of one job goes on while the next one polls.
  if (queue === POLL_QUEUE) return 2 * VENUE_NAMES.length;
  // The jobs of the lanes wait for marks, beside the four other jobs of this queue.
  return queue.startsWith('venue-') ? 7 : LANES + 4;
}
