import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LANES, laneOf, shardsOfLane } from '../../../src/queues/jobs.ts';
import { createPresence, type Presence } from '../../../src/store/db/presence.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { LANE_CHANNEL, signalLanes, takeLane } from '../../../src/store/marks/lane-signals.ts';
import { insertMarks, type Mark, waitingShards } from '../../../src/store/marks/marks.ts';
import { runStage } from '../../../workers/process/staging.ts';
import { WaitingLanes } from '../../../workers/process/waiting-lanes.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { isLaneHeld } from '../../support/postgres/postgres-lock.ts';
import { ALL_LANES, capturedLog, jobContext, testConfig, until, wakeRecorder } from './worker-harness.ts';

const JOB = 'fold-candles';
const CLEAR = sql('test_clear_lanes', 'TRUNCATE presence, mark CASCADE');
const END_SESSIONS = sql(
  'test_end_presences',
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = 'oddswire-presence'`,
);
const lane = (number: number) => ({ job: JOB, lane: number }) as const;

/** A key whose marks are in this lane. */
const keyOf = (number: number) => BigInt(shardsOfLane(number)[0] ?? 0);

let test: TestDatabase;
const closers: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(() => test.db.query(CLEAR));
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => test.drop());

interface ProcessOptions {
  idleMs?: number;
  /** Replaces the look for marks without a signal. */
  pendingShards?: () => Promise<readonly number[]>;
  /** The longest time until the session sends a statement. */
  latencyMs?: number;
  /** Fails some claims of marks. */
  failureRate?: number;
}

/** A process that works the marks of a stage. `claims` has the keys of each claim. */
async function aProcess({
  idleMs = 60_000,
  pendingShards = async () => [],
  latencyMs = 0,
  failureRate = 0,
}: ProcessOptions = {}) {
  const producer = wakeRecorder();
  const { log } = capturedLog();
  const claims: bigint[][] = [];
  const stopping = new AbortController();
  const presence: Presence = createPresence({
    databaseUrl: test.url,
    log,
  });
  const session: Pick<Presence, 'query'> = {
    query: async (...statement) => {
      if (latencyMs > 0) await delay(Math.random() * latencyMs);
      return presence.query(...statement);
    },
  };
  const lanes = new WaitingLanes({ job: JOB, session, pendingShards, producer, log, idleMs });
  const listen = {
    channel: LANE_CHANNEL,
    onMessage: (text: string) => lanes.receive(text),
    onLost: () => lanes.lost(),
  };
  await presence.register({}, async () => undefined, [listen]);
  const context = jobContext({
    db: test.db,
    config: testConfig(test.url),
    producer,
    lanes,
    stopping: stopping.signal,
  });
  const jobs = new Set<Promise<unknown>>();
  const run = (number: number) => {
    const job = runStage(context, {
      stage: JOB,
      lane: number,
      claim: { limit: 1_000, order: 'oldest' },
      async work(_tx, marks: readonly Mark[]) {
        if (Math.random() < failureRate) throw Object.assign(new Error('no connection'), { code: '08006' });
        claims.push(marks.map(({ key }) => key));
      },
    }).finally(() => jobs.delete(job));
    jobs.add(job);
    return job;
  };
  const close = async () => {
    stopping.abort();
    // A session that ends during a statement keeps its lanes until the server notices.
    await Promise.allSettled(jobs);
    lanes.close();
    await presence.close();
  };
  closers.push(close);
  return { run, claims, producer, stopping, lanes, close };
}

/** Commits marks of these lanes, and signals them as a producer does. Returns the lanes that need a job. */
async function mark(...numbers: number[]): Promise<readonly number[]> {
  await insertMarks(
    test.db,
    JOB,
    numbers.map((number) => ({ key: keyOf(number), detail: 60n })),
  );
  return (await signalLanes(test.db, numbers.map(lane), false)).map((asleep) => asleep.lane);
}

const pending = () => waitingShards(test.db, JOB);
/** Whether a job waits for signals of the lane. */
const isHeld = (number: number) => isLaneHeld(test.db, lane(number));

describe('a job of a lane', () => {
  it('takes later marks without another job when they are signalled', async () => {
    const { run, claims, producer } = await aProcess();
    void run(0);
    await until(() => isHeld(0), Boolean);
    expect(await mark(0)).toEqual([]);
    await until(
      async () => claims,
      ({ length }) => length === 1,
    );
    expect(await mark(0)).toEqual([]);
    await until(
      async () => claims,
      ({ length }) => length === 2,
    );
    expect(producer.woken).toEqual([]);
    // A claim is noted before its commit.
    await until(pending, ({ length }) => length === 0);
  });

  it('takes the marks of other lanes whose jobs wait in the same claim', async () => {
    const { run, claims } = await aProcess();
    for (const number of ALL_LANES) void run(number);
    for (const number of ALL_LANES) await until(() => isHeld(number), Boolean);
    // A job that has just taken its lane claims it once on its own.
    const claimed = async () => {
      await mark(...ALL_LANES);
      return claims;
    };
    await until(claimed, (all) => all.some((keys) => new Set(keys).size === LANES));
  });

  it('ends and frees its lane when no signal comes', async () => {
    const { run, claims } = await aProcess({ idleMs: 1 });
    await Promise.all(ALL_LANES.map(run));
    expect(claims).toEqual([]);
    expect(await mark(1)).toEqual([1]);
  });

  it('takes marks without a signal when it looks, because a process of the former release sends none', async () => {
    const { run, claims } = await aProcess({ pendingShards: pending });
    void run(2);
    await until(() => isHeld(2), Boolean);
    await insertMarks(test.db, JOB, [{ key: keyOf(2), detail: 60n }]);
    await until(
      async () => claims,
      ({ length }) => length === 1,
    );
  });

  it('ends when another job of its lane waits in the process, which takes later marks and ends with the process', async () => {
    const { run, claims, stopping } = await aProcess();
    const first = run(0);
    await until(() => isHeld(0), Boolean);
    // A queue that lost the lock of the first job gives the lane to a second one.
    await run(0);
    expect(await mark(0)).toEqual([]);
    await until(
      async () => claims,
      ({ length }) => length === 1,
    );
    await Promise.all([run(0), run(0)]);
    expect(await mark(0)).toEqual([]);
    stopping.abort();
    await first;
    expect(await mark(0)).toEqual([0]);
  });

  it('gives its lane another job when the process stops', async () => {
    const { run, producer, stopping } = await aProcess();
    const running = run(3);
    await until(() => isHeld(3), Boolean);
    stopping.abort();
    await running;
    expect(producer.woken).toEqual([JOB]);
    expect(await mark(3)).toEqual([3]);
  });

  it('frees its lane and gives it another job when its work fails', async () => {
    const { lanes, producer } = await aProcess();
    const failing = runStage(jobContext({ db: test.db, config: testConfig(test.url), producer, lanes }), {
      stage: JOB,
      lane: 0,
      claim: { limit: 10, order: 'oldest' },
      work: () => Promise.reject(Object.assign(new Error('no table'), { code: '42P01' })),
    });
    const failed = expect(failing).rejects.toThrow('no table');
    await until(() => isHeld(0), Boolean);
    await mark(0);
    await failed;
    expect(producer.woken).toEqual([JOB]);
    expect(await isHeld(0)).toBe(false);
  });

  it('ends when the session of its locks is lost', async () => {
    const { run, claims } = await aProcess();
    const running = Promise.all([run(0), run(1)]);
    for (const number of [0, 1]) await until(() => isHeld(number), Boolean);
    await test.db.query(END_SESSIONS);
    await running;
    expect(claims).toEqual([]);
    // A session that is ended tells its client before it frees its locks.
    for (const number of [0, 1]) {
      await until(
        () => isHeld(number),
        (held) => !held,
      );
    }
    expect(await mark(0, 1)).toEqual([0, 1]);
  });
});

it('signalled marks of a process that ends are returned as lanes that need a job', async () => {
  const { run, close } = await aProcess();
  void run(0);
  await until(() => isHeld(0), Boolean);
  await close();
  await until(
    () => isHeld(0),
    (held) => !held,
  );
  expect(await mark(0)).toEqual([0]);
});

it('waiting lanes wake the lane of another process when that takes no marks', async () => {
  // The session of a suspended process keeps its locks.
  const holder: Presence = createPresence({ databaseUrl: test.url, log: capturedLog().log });
  closers.push(() => holder.close());
  await holder.register({}, async () => undefined);
  await until(() => takeLane(holder, lane(2)), Boolean);
  const other = await aProcess({ pendingShards: pending });
  expect(await mark(2)).toEqual([]);
  await until(
    async () => other.producer.woken,
    ({ length }) => length > 0,
  );
  expect(other.producer.woken).toEqual([JOB]);
});

it.each([
  ['jobs become idle and end at any moment', 0, 0],
  ['the session that holds the lanes is slow', 40, 0],
  ['the session is slow and claims fail', 15, 0.05],
] as const)('each mark is taken when %s', async (_when, latencyMs, failureRate) => {
  const processes = await Promise.all([2, 5].map((idleMs) => aProcess({ idleMs, latencyMs, failureRate })));
  const running = new Set<Promise<unknown>>();
  const active = new Set<number>();
  const kept = new Set<number>();
  /** One job per lane runs, and one waits for its end, as the queue does it. A failed one is tried again. */
  function start(number: number): void {
    if (active.has(number)) return void kept.add(number);
    active.add(number);
    const chosen = processes[Math.floor(Math.random() * processes.length)];
    const job = Promise.resolve(chosen?.run(number))
      .catch((error: unknown) => {
        if (!(error instanceof Error && error.message === 'no connection')) throw error;
        kept.add(number);
      })
      .finally(() => {
        running.delete(job);
        active.delete(number);
        if (kept.delete(number)) start(number);
      });
    running.add(job);
  }
  for (let round = 0; round < 300; round += 1) {
    const numbers = ALL_LANES.filter(() => Math.random() < 0.4);
    for (const number of await mark(...numbers)) start(number);
    if (Math.random() < 0.5) await delay(Math.random() * 8);
  }
  while (running.size > 0) await Promise.all(running);
  const shards = await pending();
  expect(shards.map(laneOf)).toEqual([]);
  // No lane is given another job, and each one is free, because an ended job that keeps its lane delays later marks.
  if (failureRate === 0) expect(processes.flatMap(({ producer }) => producer.woken)).toEqual([]);
  for (const number of ALL_LANES) await until(async () => (await mark(number)).length, Boolean);
});
