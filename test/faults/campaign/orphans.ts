import { expect } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createQueueBackend } from '../../../src/queues/backend.ts';
import { queueNames, ROLES } from '../../../src/queues/jobs.ts';
import { schedulesOf } from '../../../src/queues/schedules.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';

/** Rows that no process will ever finish, and rows without the row they refer to, one line each. */
const ORPHAN_ROWS = sql(
  'oracle_orphan_rows',
  `SELECT 'event ' || id || ' has no delivery' AS problem FROM event e
     WHERE NOT EXISTS (SELECT FROM delivery d WHERE d.event_pk = e.pk)
   UNION ALL SELECT 'event ' || id || ' is of no alert' FROM event e
     WHERE type = 'price_alert' AND NOT EXISTS (SELECT FROM alert a WHERE a.event_id = e.id AND e.dedupe_key = 'alert:' || a.id)
   UNION ALL SELECT 'alert ' || id || ' names event ' || event_id || ', which is not there' FROM alert a
     WHERE event_id IS NOT NULL AND NOT EXISTS (SELECT FROM event e WHERE e.id = a.event_id)
   UNION ALL SELECT 'delivery ' || id || ' is ' || status || ' and held' FROM delivery
     WHERE status <> 'pending' AND locked_until IS NOT NULL
   UNION ALL SELECT 'delivery ' || id || ' has ' || attempt_count || ' attempts and another number of records' FROM delivery d
     WHERE attempt_count <> (SELECT count(*) FROM delivery_attempt t WHERE t.delivery_pk = d.pk)
   UNION ALL SELECT 'delivery ' || id || ' is delivered without a successful attempt' FROM delivery d
     WHERE status = 'delivered' AND NOT EXISTS (
       SELECT FROM delivery_attempt t WHERE t.delivery_pk = d.pk AND t.outcome = 'delivered')
   UNION ALL SELECT 'idempotency key ' || key || ' has no answer' FROM idempotency_key WHERE sealed = ''
   UNION ALL SELECT DISTINCT 'candles of token ' || token_id || ', which never traded' FROM candle c
     WHERE NOT EXISTS (SELECT FROM trade t WHERE t.token_id = c.token_id)
   UNION ALL SELECT 'mark of ' || stage || ' for ' || key || ', overdue' FROM mark
     WHERE stage = 'sample-snapshots' AND detail < extract(epoch FROM now()) - 180`,
);

export async function orphanRows(db: Database): Promise<string[]> {
  return (await db.query<{ problem: string }>(ORPHAN_ROWS)).map(({ problem }) => problem);
}

/** Locks and leases that only a running process may hold. */
const HELD = sql(
  'oracle_held',
  `SELECT 'poll lease of ' || venue || ' ' || kind AS held FROM poll_state WHERE lease_until > clock_timestamp()
   UNION ALL SELECT 'delivery ' || id FROM delivery WHERE locked_until > clock_timestamp()
   UNION ALL SELECT 'connection of ' || application_name || ', ' || state FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'oddswire-%' AND application_name <> 'oddswire-test'`,
);

/** Expects no lease and no connection after the end of every process. */
export async function expectNothingHeld({ db }: TestDatabase): Promise<void> {
  await eventually(
    () => db.query<{ held: string }>(HELD),
    (rows) => rows.length === 0,
    { timeoutMs: 10_000 },
  );
}

/** The store of a campaign's queues, and the variables of its processes. */
export interface QueueStore {
  backend: 'postgres' | 'redis';
  databaseUrl: string;
  redisUrl: string | undefined;
  prefix: string;
  environment: Record<string, string>;
}

const UNFINISHED = ['active', 'waiting', 'prioritized', 'delayed', 'waiting-children'] as const;
const IDLE_LIMIT_MS = 90_000;

/**
 * Waits until the queues contain only the next run of each schedule, ends the processes, and checks again that no job
 * is active. Each schedule of the table occurs once. Returns the result of `end`.
 */
export async function expectIdleQueues<T>(
  store: QueueStore,
  end: () => Promise<T>,
  { mayFailJobs = false }: { mayFailJobs?: boolean } = {},
): Promise<T> {
  const { databaseUrl, redisUrl, prefix } = store;
  const config = loadConfig(store.environment);
  const log = createLogger({ process: 'test', level: 'silent' });
  const options = { databaseUrl, ...(redisUrl !== undefined && { redisUrl }), prefix, workers: 0, log };
  const backend = createQueueBackend(options);
  await backend.migrate();
  const queues = queueNames(config.venues).map((name) => backend.queue(name));

  async function unfinished(): Promise<string[]> {
    const jobs = await Promise.all(
      queues.flatMap((queue) =>
        UNFINISHED.map(async (state) => (await queue.getJobs([state])).map((job) => `${state} ${job.name} ${job.id}`)),
      ),
    );
    return jobs.flat();
  }
  const isOfSchedule = (job: string) => job.includes(' repeat:');
  /** A last poll may wake a stage that has ended, and a poller that ends wakes its venues for another one: these jobs wait for the next start. */
  const isWakeUp = (job: string) =>
    /^(waiting|prioritized) (fold-candles|evaluate-alerts|deliver-webhook|poll-venue) /.test(job);

  try {
    await eventually(unfinished, (jobs) => jobs.every(isOfSchedule), { timeoutMs: IDLE_LIMIT_MS, everyMs: 300 });
    const wanted = ROLES.flatMap((role) => schedulesOf(role, config)).map(({ id }) => id);
    const scheduled = async () =>
      (await Promise.all(queues.map((queue) => queue.getJobSchedulers()))).flat().map(({ key }) => key);
    // A process that started just now makes its schedules soon.
    const schedules = await eventually(scheduled, (keys) => keys.length >= wanted.length, { timeoutMs: IDLE_LIMIT_MS });
    expect(schedules.sort()).toEqual(wanted.sort());
    const failed = await Promise.all(queues.map((queue) => queue.getFailed()));
    if (!mayFailJobs) expect(failed.flat().map(({ name, failedReason }) => `${name}: ${failedReason}`)).toEqual([]);
    const ended = await end();
    const left = await unfinished();
    expect(left.filter((job) => job.startsWith('active ') || !(isOfSchedule(job) || isWakeUp(job)))).toEqual([]);
    const runs = left.filter(isOfSchedule).map((job) => job.replace(/^.* repeat:(.*):\d+$/, '$1'));
    expect(runs.sort(), 'one next run of each schedule').toEqual(wanted);
    return ended;
  } finally {
    await Promise.all(queues.map((queue) => queue.close()));
    await backend.close();
  }
}
