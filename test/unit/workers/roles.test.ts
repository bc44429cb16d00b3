import { describe, expect, it } from 'vitest';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
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
import { POLL_JOBS, pollsOf, schedulesOf } from '../../../src/queues/schedules.ts';
import { defineJob } from '../../../workers/process/define.ts';

const VENUES = ['polymarket', 'manifold'] as const;
const pollMs = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000, wallets: 10_000 };
const schedules = ROLES.flatMap((role) =>
  schedulesOf(role, { venues: VENUES, maintainStorageMs: 3_600_000 }).map((one) => ({ role, ...one })),
);
const queueOf = (name: keyof typeof JOBS, data: object) => (JOBS[name].queue as (data: object) => string)(data);

describe('defineJob', () => {
  it('rejects invalid data before the job runs', async () => {
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
  it('each belong to one role', () => {
    const worked = ROLES.flatMap((role) => queuesOfRole(role, VENUES));
    expect([...worked].sort()).toEqual(queueNames(VENUES).sort());
    expect(new Set(worked).size).toBe(worked.length);
  });

  it('of a role take every job of the role', () => {
    const data = { venue: 'polymarket', lane: 0, subscriptionPk: '1' };
    for (const name of JOB_NAMES) {
      expect(queuesOfRole(JOBS[name].role, VENUES)).toContain(queueOf(name, data));
      expect(concurrencyOf(queueOf(name, data))).toBeGreaterThan(0);
    }
  });

  it('have places for all polls of a venue at once, and for all lanes of a stage', () => {
    expect(concurrencyOf('polls')).toBeGreaterThanOrEqual(2 * VENUE_NAMES.length);
    for (const venue of VENUE_NAMES) {
      expect(concurrencyOf(`venue-${venue}`)).toBeGreaterThanOrEqual(pollsOf(venue, { pollMs }).length);
    }
    expect(concurrencyOf('alerts')).toBeGreaterThanOrEqual(LANES);
    expect(concurrencyOf('candles')).toBeGreaterThanOrEqual(LANES);
  });

  it('have a lane for every shard', () => {
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
    expect(new Set(shards.map(laneOf))).toEqual(new Set(Array.from({ length: LANES }, (_, lane) => lane)));
  });
});

describe('schedules', () => {
  it('maintain storage as often as configured', () => {
    const aggregator = schedulesOf('aggregator', { venues: VENUES, maintainStorageMs: 5_000 });
    expect(aggregator.find(({ job }) => job === 'maintain-storage')?.everyMs).toBe(5_000);
  });

  it('each have a unique id, valid data and a role that runs their job', () => {
    expect(new Set(schedules.map(({ id }) => id)).size).toBe(schedules.length);
    for (const { role, job, data, everyMs } of schedules) {
      expect(JOBS[job].role).toBe(role);
      expect(() => JOBS[job].data.parse(data)).not.toThrow();
      expect(everyMs).toBeGreaterThan(0);
    }
  });

  it('poll each venue with one job, which every kind of record of the venue shares', () => {
    const polls = schedules.filter(({ role }) => role === 'poller').map(({ id }) => id);
    expect(polls.sort()).toEqual(['poll-venue.manifold', 'poll-venue.polymarket']);
    const of = (venue: (typeof VENUE_NAMES)[number]) =>
      Object.fromEntries(pollsOf(venue, { pollMs }).map(({ job, everyMs }) => [job, everyMs]));
    expect(of('manifold')).toEqual({
      ...{ 'poll-markets': 60_000, 'poll-prices': 5_000, 'poll-trades': 2_000 },
      'witness-trades': 10_000,
    });
    expect(of('polymarket')).toEqual({ ...of('manifold'), 'poll-books': 5_000, 'poll-wallets': 10_000 });
    expect(of('solana')).toEqual({ 'poll-tokens': 5_000, 'poll-wallets': 10_000 });
  });

  it('have the ids of polls of the former release among those that are removed', () => {
    const kinds = ['markets', 'prices', 'books', 'trades', 'wallets', 'tokens'];
    expect([...POLL_JOBS].sort()).toEqual([...kinds.map((kind) => `poll-${kind}`), 'witness-trades'].sort());
  });
});
