import { afterEach, expect, it } from 'vitest';
import { pollLane } from '../../../../src/queues/jobs.ts';
import { createPresence } from '../../../../src/store/db/presence.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { signalLanes } from '../../../../src/store/marks/lane-signals.ts';
import { PollLeases } from '../../../../workers/polling/poll-leases.ts';
import { PollRequests } from '../../../../workers/polling/poll-requests.ts';
import { type VenuePoll, VenuePolls } from '../../../../workers/polling/venue-polls.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { isLaneHeld } from '../../../support/postgres/postgres-lock.ts';
import { capturedLog, until } from '../worker-harness.ts';

const END_SESSIONS = sql(
  'test_end_presences',
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'oddswire-presence' AND datname = current_database()`,
);

const test = useTestDatabase();
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A poller with a poll of trades a minute, whose job runs until `leave`. */
async function aPoller(venue: string) {
  const { log } = capturedLog();
  const presence = createPresence({ databaseUrl: test.url, log });
  closers.push(() => presence.close());
  const leases = new PollLeases({ db: test.db, log, presence });
  closers.push(() => leases.close());
  await presence.register({}, async () => undefined, [leases.requests.listen]);
  const polls = new VenuePolls(leases, { stayMs: 60_000 });
  const runs: string[] = [];
  const over = new AbortController();
  const jobs: Promise<unknown>[] = [];
  const leave = async () => {
    over.abort();
    await Promise.all(jobs);
  };
  // A session that ends during a statement keeps its lanes until the server notices.
  closers.push(leave);
  const poll: VenuePoll = {
    job: 'poll-trades',
    kind: 'trades',
    everyMs: 60_000,
    async run() {
      runs.push('trades');
      return false;
    },
  };
  const begin = () => void jobs.push(polls.stay(venue, [poll], over.signal));
  begin();
  await until(async () => runs.length, Boolean);
  return { runs, begin, leave };
}

/** Waits until a process keeps the polls of the venue, so that a request needs no job. */
async function untilKept(venue: string): Promise<void> {
  await until(() => isLaneHeld(test.db, pollLane('poll-trades', venue)), Boolean);
}

async function untilRuns(runs: readonly string[], least: number): Promise<void> {
  await until(
    async () => runs.length,
    (count) => count >= least,
  );
}

/** The jobs that requests of a poll need. */
async function request(venue: string) {
  return (await signalLanes(test.db, [pollLane('poll-trades', venue)], false)).map(({ job }) => job);
}

it('a requested poll runs at once, without a job, when a process keeps the polls of the venue', async () => {
  const one = await aPoller('one');
  const other = await aPoller('other');
  await untilKept('one');
  expect(await request('one')).toEqual([]);
  await untilRuns(one.runs, 2);
  expect(other.runs).toHaveLength(1);
});

it('a requested poll is a job when no process keeps the polls of the venue', async () => {
  expect(await request('one')).toEqual(['poll-trades.one']);
  const { leave } = await aPoller('one');
  await untilKept('one');
  await leave();
  expect(await request('one')).toEqual(['poll-trades.one']);
});

it('a requested poll is a job after the loss of the session, until the next job of the venue', async () => {
  const { runs, begin } = await aPoller('one');
  await untilKept('one');
  await test.db.query(END_SESSIONS);
  await until(
    () => request('one'),
    (jobs) => jobs.length === 1,
  );
  await until(
    async () => {
      begin();
      return request('one');
    },
    (jobs) => jobs.length === 0,
  );
  const before = runs.length;
  await request('one');
  await until(
    async () => runs.length,
    (count) => count > before,
  );
});

it('another process takes the requests over when the first one leaves', async () => {
  const first = await aPoller('one');
  await first.leave();
  const second = await aPoller('one');
  await untilKept('one');
  expect(await request('one')).toEqual([]);
  await untilRuns(second.runs, 2);
  expect(first.runs).toHaveLength(1);
});

it('the lanes of a venue are free after one leave when two jobs took them at once', async () => {
  const { log } = capturedLog();
  const presences = [0, 1].map(() => createPresence({ databaseUrl: test.url, log }));
  closers.push(...presences.map((presence) => () => presence.close()));
  for (const presence of presences) await presence.register({}, async () => undefined);
  const [ours, theirs] = presences.map((presence) => new PollRequests({ log, presence }));
  await Promise.all([ours?.take('one'), ours?.take('one')]);
  expect(await request('one')).toEqual([]);
  await ours?.free('one');
  expect(await request('one')).toEqual(['poll-trades.one']);
  await theirs?.take('one');
  expect(await request('one')).toEqual([]);
});

it('a request reaches the process that polls, although the session of another one still holds the lane', async () => {
  const { log } = capturedLog();
  const late = createPresence({ databaseUrl: test.url, log });
  closers.push(() => late.close());
  await late.register({}, async () => undefined);
  await new PollRequests({ log, presence: late }).take('one');
  const { runs } = await aPoller('one');
  expect(await request('one')).toEqual([]);
  await untilRuns(runs, 2);
});
