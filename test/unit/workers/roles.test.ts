import { describe, expect, it } from 'vitest';
import { SHARDS } from '../../../src/domain/values/shard.ts';
import {
  concurrencyOf,
  JOB_NAMES,
  JOBS,
  LANES,
  laneOf,
  queueNames,
  queuesOfRole,
  ROLES,
} from '../../../src/queues/jobs.ts';
import { schedulesOf } from '../../../src/queues/schedules.ts';
import { defineJob } from '../../../workers/process/define.ts';
import { processorsOf } from '../../../workers/roles.ts';

const VENUES = ['polymarket', 'manifold'] as const;
const pollMs = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000, wallets: 10_000 };
const schedules = ROLES.flatMap((role) =>
  schedulesOf(role, { venues: VENUES, pollMs, maintainStorageMs: 3_600_000 }).map((one) => ({ role, ...one })),
);
const queueOf = (name: keyof typeof JOBS, data: object) => (JOBS[name].queue as (data: object) => string)(data);

describe('processors', () => {
  it('each job has exactly one, in exactly one role', () => {
    const names = ROLES.flatMap((role) => processorsOf(role).map((job) => job.name));
    expect(names.sort()).toEqual([...JOB_NAMES].sort());
  });

  it.each(ROLES)('%s has some, and they are its own', (role) => {
    const jobs = processorsOf(role);
    expect(jobs.length).toBeGreaterThan(0);
    for (const job of jobs) expect(JOBS[job.name].role).toBe(role);
  });

  it('a missing or doubled one stops the start, and is named', () => {
    const all = ROLES.flatMap((role) => processorsOf(role));
    const without = all.filter((job) => job.name !== 'poll-trades');
    expect(() => processorsOf('deliverer', without)).toThrow('poll-trades has 0');
    const doubled = [...all, defineJob('fold-candles', async () => ({}))];
    expect(() => processorsOf('poller', doubled)).toThrow('fold-candles has 2');
  });

  it('refuse data that is not in the contract before they run', async () => {
    let runs = 0;
    const job = defineJob('evaluate-alerts', async () => {
      runs += 1;
      return {};
    });
    for (const data of [{}, { lane: -1 }, { lane: LANES }, { lane: 0, price: '0.5' }, null, 'lane']) {
      expect(() => job.run(data, {} as Parameters<typeof job.run>[1])).toThrow();
    }
    expect(runs).toBe(0);
  });
});

describe('queues', () => {
  it('each is worked by one role', () => {
    const worked = ROLES.flatMap((role) => queuesOfRole(role, VENUES));
    expect([...worked].sort()).toEqual(queueNames(VENUES).sort());
    expect(new Set(worked).size).toBe(worked.length);
  });

  it('every job lands in a queue of its role', () => {
    const data = { venue: 'polymarket', lane: 0, subscriptionPk: '1' };
    for (const name of JOB_NAMES) {
      expect(queuesOfRole(JOBS[name].role, VENUES)).toContain(queueOf(name, data));
      expect(concurrencyOf(queueOf(name, data))).toBeGreaterThan(0);
    }
  });

  it('a venue has room for all its polls at once, and a stage for all its lanes', () => {
    const polls = schedules.filter(({ job, data }) => queueOf(job, data) === 'venue-polymarket');
    expect(concurrencyOf('venue-polymarket')).toBeGreaterThanOrEqual(polls.length);
    expect(concurrencyOf('alerts')).toBeGreaterThanOrEqual(LANES);
    expect(concurrencyOf('candles')).toBeGreaterThanOrEqual(LANES);
  });

  it('every shard has a lane', () => {
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
    expect(new Set(shards.map(laneOf))).toEqual(new Set(Array.from({ length: LANES }, (_, lane) => lane)));
  });
});

describe('schedules', () => {
  it('storage is maintained as often as configured', () => {
    const aggregator = schedulesOf('aggregator', { venues: VENUES, pollMs, maintainStorageMs: 5_000 });
    expect(aggregator.find(({ job }) => job === 'maintain-storage')?.everyMs).toBe(5_000);
  });

  it('have an id of their own each, valid data, and the role that keeps them runs them', () => {
    expect(new Set(schedules.map(({ id }) => id)).size).toBe(schedules.length);
    for (const { role, job, data, everyMs } of schedules) {
      expect(JOBS[job].role).toBe(role);
      expect(() => JOBS[job].data.parse(data)).not.toThrow();
      expect(everyMs).toBeGreaterThan(0);
    }
  });

  it('poll every kind that a venue offers', () => {
    const polls = schedules.filter(({ role }) => role === 'poller').map(({ id }) => id);
    expect(polls.sort()).toEqual([
      'poll-books.polymarket',
      'poll-markets.manifold',
      'poll-markets.polymarket',
      'poll-prices.manifold',
      'poll-prices.polymarket',
      'poll-trades.manifold',
      'poll-trades.polymarket',
      'poll-wallets.polymarket',
    ]);
  });
});
