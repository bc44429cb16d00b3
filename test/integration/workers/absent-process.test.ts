import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { Job, Worker } from 'bullmq';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createProducer, type Producer } from '../../../src/queues/producer.ts';
import { acquirePollLease, advancePoll, POLL_LEASES } from '../../../src/store/catalog/poll-state.ts';
import { LeaseLostError, newLeaseToken } from '../../../src/store/db/leases.ts';
import { createPresence, type Presence } from '../../../src/store/db/presence.ts';
import { ping, sql } from '../../../src/store/db/tx.ts';
import { claimDueOfMany, claimTogether } from '../../../src/store/deliveries/claims.ts';
import { finishAttempt } from '../../../src/store/deliveries/outcomes.ts';
import { signalLanes, takeLane } from '../../../src/store/marks/lane-signals.ts';
import { insertMarks } from '../../../src/store/marks/marks.ts';
import { claimWallets } from '../../../src/store/wallets/wallets.ts';
import { releaseAbsent } from '../../../workers/process/absent-process.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { aDelivery, storedDelivery } from '../../factories/deliveries.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { startTcpProxy, type TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { BACKENDS, createTestBackend, isAvailable, type TestBackend } from '../../support/redis/queue-backends.ts';
import { capturedLog, until, wakeRecorder } from './worker-harness.ts';

/** A process that ended without a word leaves its row, and no session holds its lock. */
const ENDED = sql('test_ended', 'INSERT INTO presence (workers) VALUES ($1) RETURNING id');
const KEYS = sql('test_presences', 'SELECT id FROM presence ORDER BY id');
const FORGET = sql('test_forget', 'DELETE FROM presence WHERE id = $1');
/** The lock space of presences, 0x6f6470. */
const SPACE = 7_300_208;
const LOCK = `SELECT pg_advisory_lock(${SPACE}, $1)`;
const UNLOCK = `SELECT pg_advisory_unlock(${SPACE}, $1)`;
const WAITERS = sql(
  'test_waiters',
  `SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = ${SPACE} AND NOT granted
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);
const CLEAR = sql('test_clear', 'TRUNCATE presence, poll_state, mark, delivery, watched_wallet CASCADE');
const END_SESSIONS = sql(
  'test_end_sessions',
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = 'oddswire-presence'`,
);
const SESSIONS = sql(
  'test_sessions',
  `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'oddswire-presence'`,
);
const WATCH = sql(
  'test_watch',
  `WITH watched AS (INSERT INTO watched_wallet (venue, address) VALUES ('v', $2) RETURNING pk)
   INSERT INTO wallet (id, account_id, watched_pk) SELECT $2, $1, pk FROM watched`,
);

const test = useTestDatabase();
let accountId: bigint;
const closers: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  accountId = await anAccount(test.db);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
beforeEach(() => test.db.query(CLEAR));

async function endedProcess(workers: Record<string, string> = {}): Promise<number> {
  const [row] = await test.db.query<{ id: number }>(ENDED, [workers]);
  return row?.id ?? 0;
}

const keys = async () => (await test.db.query<{ id: number }>(KEYS)).map(({ id }) => id);

/** The presence of a running process, and the keys that it has reported as absent. */
async function runningProcess(
  onAbsent: (key: number) => Promise<void> = async () => undefined,
  databaseUrl = test.url,
  workers: Record<string, string> = {},
): Promise<Presence & { readonly absent: number[] }> {
  const absent: number[] = [];
  const presence = createPresence({ databaseUrl, log: capturedLog().log });
  closers.push(() => presence.close());
  await presence.register(workers, async (key) => {
    absent.push(key);
    await onAbsent(key);
  });
  return Object.assign(Object.create(presence) as Presence, { absent });
}

const NO_LOCKS = { locks: async () => new Map<string, string>() };
const release = (key: number, producer: Producer = wakeRecorder()) =>
  releaseAbsent(key, { db: test.db, producer, log: capturedLog().log, backend: NO_LOCKS });

describe('the presence of a process', () => {
  it('has a key that no other process has', async () => {
    const [one, two] = [await runningProcess(), await runningProcess()];
    expect(await keys()).toEqual([one.key, two.key]);
  });

  it('reports a process without a session, and never one that runs', async () => {
    const ended = await endedProcess();
    const [one, two] = [await runningProcess(), await runningProcess()];
    await until(
      async () => [one, two],
      (all) => all.every(({ absent }) => absent.length >= 3),
    );
    expect(new Set([...one.absent, ...two.absent])).toEqual(new Set([ended]));
  });

  it('ends when the process closes it, so that another one releases its claims', async () => {
    const other = await runningProcess();
    const one = await runningProcess();
    const { key } = one;
    await one.close();
    await until(
      async () => other.absent,
      (absent) => absent.includes(key ?? 0),
    );
  });

  it('returns under its key when only its session ended', async () => {
    const one = await runningProcess();
    const { key } = one;
    const before = await test.db.query<{ pid: number }>(SESSIONS);
    await test.db.query(END_SESSIONS);
    await until(
      async () => ({ sessions: await test.db.query<{ pid: number }>(SESSIONS), now: one.key }),
      ({ sessions, now }) => now !== null && sessions.length === 1 && sessions[0]?.pid !== before[0]?.pid,
    );
    expect(one.key).toBe(key);
    expect(await keys()).toEqual([key]);
  });

  it.each([
    ['its key when another session frees its lock in time', true],
    ['another key when its lock is not freed in time', false],
  ])('returns under %s', async (_, isFreed) => {
    const one = await runningProcess();
    const { key } = one;
    const holder = new pg.Client(test.url);
    await holder.connect();
    closers.push(() => holder.end());
    // It gets the lock when the session of the presence ends, before the next session asks for it.
    const held = holder.query(LOCK, [key]);
    await until(
      () => test.db.query(WAITERS),
      ({ length }) => length === 1,
    );
    await test.db.query(END_SESSIONS);
    await held;
    await until(
      () => test.db.query(WAITERS),
      ({ length }) => length === 1,
    );
    if (isFreed) await holder.query(UNLOCK, [key]);
    const next = await until(
      async () => one.key,
      (now) => now !== null,
    );
    expect(next === key).toBe(isFreed);
    expect(await keys()).toEqual([next]);
  });

  it('returns under another key when its claims were released meanwhile', async () => {
    const one = await runningProcess();
    const { key } = one;
    await test.db.query(FORGET, [key]);
    await test.db.query(END_SESSIONS);
    const next = await until(
      async () => one.key,
      (now) => now !== null && now !== key,
    );
    expect(await keys()).toEqual([next]);
  });

  it('has no key while its network is silent, and closes in time', async () => {
    const proxy: TcpProxy = await startTcpProxy(test.url);
    closers.push(() => proxy.close());
    const one = await runningProcess(undefined, proxy.url);
    expect(one.key).not.toBeNull();
    proxy.hold();
    await until(
      async () => one.key,
      (key) => key === null,
    );
    await one.close();
  });

  it('frees a lane whose take has no answer in time because the process was stopped', async () => {
    const presence = await runningProcess();
    const lane = { job: 'fold-candles', lane: 1 };
    // The first look for ended processes is over.
    await ping(presence);
    const taken = takeLane(presence, lane).catch(() => 'no answer');
    await setImmediate();
    // Longer than the process waits for an answer.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_500);
    expect(await taken).toBe('no answer');
    expect(
      await until(
        () => signalLanes(test.db, [lane], false),
        ({ length }) => length > 0,
      ),
    ).toEqual([lane]);
    await until(async () => presence.key, Boolean);
  });
});

describe('releaseAbsent', () => {
  it('ends the leases of an ended process and no others', async () => {
    const ended = await endedProcess();
    const running = await runningProcess();
    const acquire = (kind: string, presence: number | null) =>
      acquirePollLease(test.db, 'v', kind, newLeaseToken(presence));
    await acquire('markets', ended);
    await acquire('prices', running.key);
    await acquire('trades', null);
    for (const address of ['a', 'b']) await test.db.query(WATCH, [accountId, address]);
    const claim = (presence: number | null) =>
      claimWallets(test.db, { venue: 'v', token: newLeaseToken(presence), limit: 1, everyMs: 0 });
    const [wallet] = await claim(ended);
    await claim(running.key);

    await release(ended);

    expect(await acquire('markets', running.key)).not.toBeNull();
    expect(await acquire('prices', running.key)).toBeNull();
    expect(await acquire('trades', running.key)).toBeNull();
    expect(await claim(running.key)).toMatchObject([{ pk: wallet?.pk }]);
    expect(await claim(running.key)).toEqual([]);
    expect(await keys()).toEqual([running.key]);
  });

  it('does not end the lease of a process whose key begins with the key of the ended one', async () => {
    const ended = await endedProcess();
    await acquirePollLease(test.db, 'v', 'markets', newLeaseToken(Number(`${ended}0`)));
    await release(ended);
    expect(await acquirePollLease(test.db, 'v', 'markets', newLeaseToken(null))).toBeNull();
  });

  it('makes the claimed deliveries of an ended process due, wakes their webhook, and leaves the claims of others', async () => {
    const ended = await endedProcess();
    const running = await runningProcess();
    const owners = [await aSubscription(test.db, { accountId }), await aSubscription(test.db, { accountId })] as const;
    for (const subscriptionPk of owners) await aDelivery(test.db, { accountId, subscriptionPk });
    await claimTogether(test.db, { subscriptionPk: owners[0], limit: 8, presence: ended });
    await claimDueOfMany(test.db, [{ subscriptionPk: owners[1], limit: 8, presence: running.key }]);
    const producer = wakeRecorder();

    await release(ended, producer);

    expect(producer.woken).toEqual([`deliver-webhook ${owners[0]}`]);
    const again = await claimDueOfMany(
      test.db,
      owners.map((subscriptionPk) => ({ subscriptionPk, limit: 8 })),
    );
    expect(owners.map((pk) => again.get(pk)?.deliveries.length)).toEqual([1, 0]);
  });

  it('wakes the stages with pending marks, whose wake-ups the process may have lost', async () => {
    const ended = await endedProcess();
    const mark = [{ key: 1n, detail: 60n }];
    await test.db.transaction(async (tx) => {
      await insertMarks(tx, 'fold-candles', mark);
      await insertMarks(tx, 'evaluate-alerts', mark);
    });
    const producer = wakeRecorder();
    await release(ended, producer);
    expect(producer.woken.sort()).toEqual(['evaluate-alerts', 'fold-candles']);
  });

  it('releases nothing of a process that has returned', async () => {
    const running = await runningProcess();
    await acquirePollLease(test.db, 'v', 'markets', newLeaseToken(running.key));
    await release(running.key ?? 0);
    expect(await acquirePollLease(test.db, 'v', 'markets', newLeaseToken(null))).toBeNull();
    expect(await keys()).toEqual([running.key]);
  });

  it('keeps the process for another attempt when the queue store does not answer', async () => {
    const ended = await endedProcess({ alerts: 'w' });
    const away = { locks: () => Promise.reject(new Error('away')) };
    const producer = { ...wakeRecorder(), queue: () => ({}) as ReturnType<Producer['queue']> };
    await expect(
      releaseAbsent(ended, { db: test.db, producer, log: capturedLog().log, backend: away }),
    ).rejects.toThrow('away');
    expect(await keys()).toEqual([ended]);
  });

  it('fences a process that is cut from the database while it holds a lease and a claim', async () => {
    const proxy = await startTcpProxy(test.url);
    closers.push(() => proxy.close());
    const cut = await runningProcess(undefined, proxy.url);
    const { key } = cut;
    await runningProcess((absent) => release(absent));
    const lease = await acquirePollLease(test.db, 'v', 'markets', newLeaseToken(key));
    const subscriptionPk = await aSubscription(test.db, { accountId });
    const { pk } = await aDelivery(test.db, { accountId, subscriptionPk });
    const claim = await claimTogether(test.db, { subscriptionPk, limit: 8, presence: key });
    const [delivery] = claim?.deliveries ?? [];
    if (!lease || !delivery) throw new Error('nothing held');

    proxy.forsake();
    proxy.hold();
    proxy.bury();
    await until(keys, (left) => !left.includes(key ?? 0));

    await expect(test.db.transaction((tx) => advancePoll(tx, lease, 'late'))).rejects.toThrow(LeaseLostError);
    expect(await POLL_LEASES.release(test.db, lease, 'late')).toBe(0);
    const attempt = { startedAt: new Date(), durationMs: 1, outcome: 'delivered', statusCode: 200 } as const;
    const finished = await finishAttempt(test.db, { subscriptionPk, delivery, attempt }, { state: 'delivered' });
    expect(finished.isRecorded).toBe(false);
    expect(await storedDelivery(test.db, pk)).toMatchObject({ status: 'pending', attemptCount: 0, isLocked: false });

    proxy.resume();
    const next = await until(
      async () => cut.key,
      (now) => now !== null && now !== key,
    );
    expect(await keys()).toContain(next);
  });
});

describe.each(BACKENDS)('the jobs of an ended process on %s', (kind) => {
  describe.skipIf(!isAvailable(kind))('with real workers', () => {
    let queues: TestBackend;
    let producer: Producer;

    beforeEach(async () => {
      queues = await createTestBackend(kind, 3);
      producer = createProducer({ backend: queues.backend, log: capturedLog().log });
      closers.push(
        () => queues.close(),
        () => producer.close(),
      );
    });

    /** A worker whose jobs end when the returned function is called. */
    function hangingWorker(concurrency: number): { worker: Worker; finish: () => void } {
      let finish: () => void = () => undefined;
      const finished = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const worker = queues.backend.worker('candles', () => finished, concurrency);
      worker.on('error', () => undefined);
      closers.push(async () => {
        finish();
        await worker.close();
      });
      worker.run().catch(() => undefined);
      return { worker, finish };
    }

    const releaseWith = (key: number) =>
      releaseAbsent(key, { db: test.db, producer, log: capturedLog().log, backend: queues.backend });

    it('run again at once, and no longer absorb wake-ups', async () => {
      const { worker } = hangingWorker(1);
      const active = once(worker, 'active');
      await producer.enqueue('fold-candles', { lane: 0 });
      await active;
      // It takes no other job, like an ended process.
      await worker.pause(true);
      await releaseWith(await endedProcess({ candles: worker.id }));
      await producer.enqueue('fold-candles', { lane: 0 });

      const seen: unknown[] = [];
      const next = queues.backend.worker('candles', async (job: Job) => void seen.push(job.data), 1);
      next.on('error', () => undefined);
      closers.push(() => next.close());
      const done = once(next, 'completed');
      next.run().catch(() => undefined);
      await done;
      expect(seen).toEqual([{ lane: 0 }]);
    });

    it('leave the jobs of other workers active', async () => {
      const { worker } = hangingWorker(2);
      const active = once(worker, 'active');
      await producer.enqueue('fold-candles', { lane: 0 });
      const [job] = (await active) as [Job];
      await releaseWith(await endedProcess({ candles: 'another worker' }));
      expect(await job.getState()).toBe('active');
      expect((await queues.backend.locks(producer.queue('candles'))).get(job.id ?? '')).toContain(worker.id);
    });

    it('are skipped when they end meanwhile', async () => {
      const { worker, finish } = hangingWorker(1);
      const active = once(worker, 'active');
      await producer.enqueue('fold-candles', { lane: 0 });
      const [job] = (await active) as [Job];
      const locks = await queues.backend.locks(producer.queue('candles'));
      const completed = once(worker, 'completed');
      finish();
      await completed;
      const ended = await endedProcess({ candles: worker.id });
      const asBefore = { locks: async () => locks };
      await releaseAbsent(ended, { db: test.db, producer, log: capturedLog().log, backend: asBefore });
      expect(await keys()).toEqual([]);
      expect(await job.getState()).toBe('completed');
    });
  });
});
