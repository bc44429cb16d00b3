import { setTimeout as delay } from 'node:timers/promises';
import {
  assertSchemaCompatibility,
  type BackendFactory,
  ConnectionClosedError,
  LATEST_SCHEMA_VERSION,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  type Queue,
  runMigrations,
  SchemaMigrationRequiredError,
  type Worker,
  withBackend,
} from 'bullmq';
import pg from 'pg';
import { KEEP_ALIVE_DELAY_MS } from '../config/pools.ts';
import { VENUE_NAMES } from '../domain/markets/venue.ts';
import { asError, OddswireError } from '../domain/values/errors.ts';
import { logLimited } from '../observe/limited-lines.ts';
import type { Logger } from '../observe/logger.ts';
import { closeUnresponsive } from '../observe/silent-connections.ts';
import { requeueLocked } from './active-jobs.ts';
import { queueNames } from './jobs.ts';
import { JOB_RETENTION, type QueueBackend, type QueueBackendOptions, SILENCE_MS, WORKER_SETTINGS } from './port.ts';

/** BullMQ's fixed schema for a pool that we own. */
const QUEUE_SCHEMA = 'bullmq';

/** Slots for queries beside the LISTEN connections: without a free slot, every Worker would wait without end. */
const SPARE_CONNECTIONS = 6;
const FEWER_SPARE_CONNECTIONS = 3;

const ALL_QUEUES = queueNames(VENUE_NAMES);
/** BullMQ creates the sequence of a queue's job ids with the first job, for which the role of a process may lack the right. */
const WITHOUT_IDS = `SELECT name FROM unnest($1::text[]) AS name
  WHERE to_regclass('${QUEUE_SCHEMA}.' || ${QUEUE_SCHEMA}.job_id_seq_name(name)) IS NULL`;
const MAKE_IDS = `SELECT ${QUEUE_SCHEMA}.next_job_id(name) FROM (${WITHOUT_IDS}) AS without`;

/** SQLSTATEs of a missing schema, table or function: it was dropped between two statements of its migration. */
const MEANWHILE_DROPPED: ReadonlySet<string> = new Set(['3F000', '42P01', '42883']);
const MIGRATION_ATTEMPTS = 5;

/**
 * Queues in Postgres. In native ESM BullMQ cannot load `pg` itself, so it gets our pool; its SQL is unqualified, hence the
 * search path.
 */
export function createPostgresQueues(options: QueueBackendOptions): QueueBackend {
  const { findBusy, stopping, log, mayMigrate = true, isUnavailable = () => false } = options;
  const watch = findBusy && closeUnresponsive({ limitMs: SILENCE_MS, log, findBusy, ...(stopping && { stopping }) });
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: options.workers + (options.hasFewConnections ? FEWER_SPARE_CONNECTIONS : SPARE_CONNECTIONS),
    options: `-c search_path=${QUEUE_SCHEMA},public`,
    application_name: 'oddswire-queues',
    connectionTimeoutMillis: 5_000,
    // BullMQ relies on this to detect a LISTEN connection that was lost silently.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    onConnect: (client) => {
      // A checked-out client has no error listener of the pool, so its loss would end the process. Its query reports the error.
      client.on('error', () => undefined);
      watch?.(client);
    },
  });
  pool.setMaxListeners(0);
  pool.on('error', (error) => options.log.warn({ err: error }, 'queue connection lost'));
  // pg types `connect` as an overload, which BullMQ's structural type does not include.
  const connection = pool as unknown as PostgresConnectionOptions;
  const bull = withBackend(factoryWith({ pool, log, isUnavailable, queuesWithLateLocks: lateLocksOf(pool) }));

  async function check(): Promise<void> {
    const client = await pool.connect();
    try {
      const isCurrent = (await assertSchemaCompatibility(client, QUEUE_SCHEMA)) >= LATEST_SCHEMA_VERSION;
      if (isCurrent && (await client.query(WITHOUT_IDS, [ALL_QUEUES])).rows.length === 0) return;
    } catch (error) {
      if (!(error instanceof SchemaMigrationRequiredError)) throw error;
    } finally {
      client.release();
    }
    throw new OddswireError(
      'other_schema',
      `the queues in the schema ${QUEUE_SCHEMA} are missing or older than this release`,
    );
  }

  async function migrate(): Promise<void> {
    if (!mayMigrate) return check();
    for (let attempt = 1; ; attempt++) {
      const client = await pool.connect();
      try {
        await runMigrations(client, QUEUE_SCHEMA);
        await client.query(MAKE_IDS, [ALL_QUEUES]);
        return;
      } catch (error) {
        const { code = '' } = error as { code?: string };
        if (attempt === MIGRATION_ATTEMPTS || !MEANWHILE_DROPPED.has(code)) throw error;
      } finally {
        client.release();
      }
    }
  }

  return {
    kind: 'postgres',
    migrate,
    async restore() {
      const { rows } = await pool.query<{ is_there: boolean }>(
        `SELECT to_regclass('${QUEUE_SCHEMA}.job') IS NOT NULL AS is_there`,
      );
      if (rows[0]?.is_there) return false;
      await migrate();
      return true;
    },
    async ping() {
      await pool.query('SELECT 1');
    },
    poolUse: () => ({
      open: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      limit: pool.options.max,
    }),
    queue(name) {
      const queue = new bull.Queue(name, {
        connection,
        defaultJobOptions: JOB_RETENTION,
        skipMetasUpdate: true,
      });
      queue.on('error', (error) => options.log.warn({ err: error, queue: name }, 'queue error'));
      return queue as unknown as Queue;
    },
    locks: ({ name }) => locksOf(pool, name),
    worker(name, processor, concurrency) {
      const worker = new bull.Worker(name, processor, {
        connection,
        concurrency,
        autorun: false,
        ...WORKER_SETTINGS,
        drainDelay: DRAIN_DELAY_SECONDS,
      });
      return worker as unknown as Worker;
    },
    async close() {
      await pool.end();
    },
  };
}

/**
 * A worker that waits for a job looks for one this often, in four statements. A notification or a delayed job wakes it earlier, and the
 * loss of the connection that listens too.
 */
const DRAIN_DELAY_SECONDS = 10;

/** Between two failed fetches of a worker, milliseconds. */
const FAILED_FETCH_PAUSE_MS = 250;

/**
 * Omits BullMQ's check of the schema, because BullMQ keeps a failed check: the worker then repeats it without a pause, and its process
 * stops answering. `migrate` checks the schema before the first queue exists; after that, each statement reports its own failure.
 */
class CheckedConnection extends PostgresConnection {
  override waitUntilReady(): Promise<void> {
    return Promise.resolve();
  }
}

/** The active jobs of a queue, with the tokens of their locks. */
async function locksOf(pool: pg.Pool, queue: string): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ id: string; lock_token: string }>(
    `SELECT id, lock_token FROM job WHERE queue = $1 AND state = 'active' AND lock_token IS NOT NULL`,
    [queue],
  );
  return new Map(rows.map((row) => [row.id, row.lock_token]));
}

/** The workers of a process share a look for so long: each of them checks at the same interval. */
const LATE_LOCKS_FOR_MS = 1_000;
/** A timer can fire late. */
const CHECK_DRIFT_MS = 1_000;

/**
 * The queues with a job whose lock ends until the next check for stalled jobs that can use this look, or has ended. A live worker renews a lock
 * earlier than that.
 */
function lateLocksOf(pool: pg.Pool): () => Promise<ReadonlySet<string>> {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let queues: Promise<ReadonlySet<string>> = Promise.resolve(new Set());
  return () => {
    if (performance.now() - lookedAtMs >= LATE_LOCKS_FOR_MS) {
      lookedAtMs = performance.now();
      queues = pool
        .query<{ queue: string }>(LATE_LOCKS, [
          Date.now() + WORKER_SETTINGS.stalledInterval + LATE_LOCKS_FOR_MS + CHECK_DRIFT_MS,
        ])
        .then(({ rows }) => new Set(rows.map(({ queue }) => queue)));
    }
    return queues;
  };
}

const LATE_LOCKS = `SELECT DISTINCT queue FROM job WHERE state = 'active' AND locked_until_ms < $1`;

/** BullMQ's `createPostgresBackend` for our pool, with changes for a server that goes away. Workers keep the name of their LISTEN connection. */
function factoryWith({
  pool,
  log,
  isUnavailable,
  queuesWithLateLocks,
}: {
  pool: pg.Pool;
  log: Logger;
  isUnavailable: (error: unknown) => boolean;
  queuesWithLateLocks: () => Promise<ReadonlySet<string>>;
}): BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> {
  class AdaptedBackend extends PostgresQueueBackend {
    /** The tokens of fetches without an answer, each with the job whose end fetched. A job that one has taken is active without a worker. */
    readonly #lost = new Map<string, string>();
    #requeued = Promise.resolve();

    /** Pauses after a failed fetch: BullMQ repeats it at once unless the connection failed. */
    override async moveToActive(...fetch: Parameters<PostgresQueueBackend['moveToActive']>) {
      const [token] = fetch;
      try {
        return await this.#answered(token, '', () => super.moveToActive(...fetch));
      } catch (error) {
        await delay(FAILED_FETCH_PAUSE_MS, undefined, { ref: false });
        throw error;
      }
    }

    override moveToCompleted(...end: Parameters<PostgresQueueBackend['moveToCompleted']>) {
      const [{ id = '' }, , , token] = end;
      return this.#answered(token, id, () => super.moveToCompleted(...end)).catch(toRepeated);
    }

    override moveToFailed(...end: Parameters<PostgresQueueBackend['moveToFailed']>) {
      const [{ id = '' }, , , token] = end;
      return this.#answered(token, id, () => super.moveToFailed(...end)).catch(toRepeated);
    }

    /**
     * BullMQ's check marks every active job, and gives back those that it marked before and whose lock has ended. A lock is late at one check
     * before it ends, so its job returns at the next check after its end, as without this look, and other checks write nothing.
     */
    override async moveStalledJobsToWait() {
      const isLate = (await queuesWithLateLocks()).has(this.queueName);
      return isLate ? super.moveStalledJobsToWait() : [];
    }

    /** BullMQ schedules the next job of a chain with the hand-out of this one, which stays active when that fails. */
    override updateJobSchedulerNextMillis(...next: Parameters<PostgresQueueBackend['updateJobSchedulerNextMillis']>) {
      return super.updateJobSchedulerNextMillis(...next).catch(toRepeated);
    }

    /**
     * A worker that found no job before its lost fetch waits for one before it fetches again. BullMQ asks for the longest wait of all when the
     * connection that listens was lost, because it knows no delayed job then.
     */
    override async waitForJob(seconds: number) {
      await this.#lostReturned();
      return super.waitForJob(seconds < this.maximumBlockTimeout ? seconds : DRAIN_DELAY_SECONDS);
    }

    #lostReturned(): Promise<void> {
      if (this.#lost.size > 0) this.#requeued = this.#requeued.catch(() => undefined).then(() => this.#requeueLost());
      return this.#requeued.catch(toRepeated);
    }

    async #answered<T>(token: string, ending: string, fetch: () => Promise<T>): Promise<T> {
      await this.#lostReturned();
      try {
        return await fetch();
      } catch (error) {
        if (isUnavailable(error)) this.#lost.set(token, ending);
        throw error;
      }
    }

    /**
     * Gives back the jobs of lost answers. Each later fetch waits for it, because its token may be one of these. A fetch that the server
     * commits later than this look, because only the connection was lost, waits for its lock.
     */
    async #requeueLost(): Promise<void> {
      const lost = new Map(this.#lost);
      await requeueLocked(locksOf(pool, this.queueName), {
        isLost: (id, token) => lost.has(token) && lost.get(token) !== id,
        move: (id, token) => super.moveJobFromActiveToWait(id, token),
      });
      for (const token of lost.keys()) this.#lost.delete(token);
    }
  }

  /**
   * BullMQ repeats a statement after an error of this class, or a refused connection, without a line, and knows no other error of a lost
   * server. It then gives up: the job stays active until its lock ends, and with it the lane of the job.
   */
  function toRepeated(error: unknown): never {
    if (!isUnavailable(error)) throw error;
    logLimited(log, { level: 'warn', fields: { err: error }, message: 'state of a job not recorded; will retry' });
    throw new ConnectionClosedError(asError(error).message, asError(error));
  }

  return (name, options, { withBlockingConnection = false } = {}) => {
    const listenName = withBlockingConnection ? name : undefined;
    return new AdaptedBackend(new CheckedConnection(options.connection), name, options, true, listenName);
  };
}
