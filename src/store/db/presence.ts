import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { asError, OddswireError } from '../../domain/values/errors.ts';
import { FailureStreaks } from '../../observe/failures.ts';
import type { Logger } from '../../observe/logger.ts';
import { endSession, keepSession } from './kept-session.ts';
import { waitForTurn } from './look-turns.ts';
import { type Queryable, type Statement, sessionQueryable, sql, sqlState, type Tx } from './tx.ts';

/** Advisory lock space of presences: the first of the two lock keys; the second is the key of a process. */
const PRESENCE_LOCK_SPACE = 0x6f_64_70; // "odp"

/** The id of the BullMQ worker of each queue of a process. */
type WorkerIds = Readonly<Record<string, string>>;

/**
 * The proof that this process runs and reaches the database: a session of its own that holds an advisory lock. Postgres frees the lock
 * when the process ends, so other processes end its claims at once instead of after their time.
 */
export interface Presence {
  /** Names this process in its claims; null while no session holds the lock: such claims end by their time only. */
  readonly key: number | null;
  /** A statement of the session that holds the lock. @throws while there is no session */
  query: Queryable['query'];
  /**
   * Shows the workers and begins to look for ended processes. Resolves after the first attempt. `onAbsent` releases the claims of an
   * ended process; it is called again until the process is forgotten. The session listens to the channels of `listen`.
   */
  register(workers: WorkerIds, onAbsent: OnAbsent, listen?: readonly Listen[]): Promise<void>;
  /** Closes the session, and with it the presence. */
  close(): Promise<void>;
}

type OnAbsent = (key: number) => Promise<void>;

/** Notifications of a Postgres channel. `onLost`: the session ended, and with it its locks. */
export interface Listen {
  channel: string;
  /** Later notifications arrive. */
  onReady?(): void;
  onMessage(payload: string): void;
  onLost(): void;
}

interface PresenceOptions {
  /** Past any pooler, because the lock belongs to a session. */
  databaseUrl: string;
  log: Logger;
}

/** A second look confirms an absence: after a restart of the server every process needs a moment to return. */
const CONFIRM_AFTER_MS = 200;

/** The lock precedes the commit, so no look finds the row without it. */
const REGISTER = `WITH made AS (INSERT INTO presence (workers) VALUES ($2) RETURNING id)
  SELECT id, pg_advisory_lock($1, id) FROM made`;
/** An ended session frees its lock a moment after its connection ends, or after minutes when the server does not see the end. */
const LOCK_AGAIN = `WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', '1s', true))
  SELECT pg_advisory_lock($1, $2) FROM bounded`;
const LOCK_NOT_AVAILABLE = '55P03';
const IS_KNOWN = 'SELECT EXISTS (SELECT FROM presence WHERE id = $1) AS is_known';
const FORGET = 'DELETE FROM presence WHERE id = $1';
/** A shared lock, so that two looks at once do not take each other for the owner. */
const LOOK = `WITH seen AS MATERIALIZED (
    SELECT id, CASE WHEN id = $2 THEN false ELSE pg_try_advisory_xact_lock_shared($1, id) END AS is_absent FROM presence)
  SELECT coalesce(array_agg(id) FILTER (WHERE is_absent), '{}') AS absent, count(*) FILTER (WHERE NOT is_absent)::int AS present,
    count(*) FILTER (WHERE NOT is_absent AND id < $2)::int AS place, extract(epoch FROM clock_timestamp())::float8 * 1000 AS "atMs"
  FROM seen`;

/** The keys of processes without a lock, the number of the others, and the place of this one among them. */
interface Look {
  absent: number[];
  present: number;
  place: number;
  atMs: number;
}

/** A lost session is opened again, under the same key unless another process has released its claims meanwhile. */
export function createPresence({ databaseUrl, log }: PresenceOptions): Presence {
  const closing = new AbortController();
  const streaks = new FailureStreaks();
  let lastKey: number | undefined;
  let key: number | null = null;
  let session: (Queryable & { end(): void }) | undefined;
  let running: Promise<void> = Promise.resolve();
  let lastTurn: Promise<unknown> = Promise.resolve();

  /** A session runs one statement at a time. */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = lastTurn.then(run);
    lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Takes the lock of the last key, or of a new one. */
  async function acquireKey(client: pg.Client, workers: WorkerIds): Promise<number> {
    if (lastKey !== undefined) {
      const isLocked = await client.query(LOCK_AGAIN, [PRESENCE_LOCK_SPACE, lastKey]).then(
        () => true,
        (error: unknown) => {
          if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
          return false;
        },
      );
      const stored = await client.query<{ is_known: boolean }>(IS_KNOWN, [lastKey]);
      if (isLocked && stored.rows[0]?.is_known) return lastKey;
      // The jobs of this process continue under the next key.
      await client.query(FORGET, [lastKey]);
    }
    const { rows } = await client.query<{ id: number }>(REGISTER, [PRESENCE_LOCK_SPACE, workers]);
    const [row] = rows;
    if (!row) throw new TypeError('the insert of a presence returned no row');
    return row.id;
  }

  async function look(client: pg.Client, ownKey: number): Promise<Look> {
    const { rows } = await inTurn(() =>
      client.query<Look>({ name: 'look_for_absent', text: LOOK, values: [PRESENCE_LOCK_SPACE, ownKey] }),
    );
    const [row] = rows;
    if (!row) throw new TypeError('the look at the presences returned no row');
    return row;
  }

  async function release(absent: readonly number[], onAbsent: OnAbsent): Promise<void> {
    for (const absentKey of absent) {
      try {
        await onAbsent(absentKey);
        streaks.succeeded('release');
      } catch (error) {
        const { inARow, shouldLog } = streaks.failed('release');
        const line = { err: asError(error), inARow };
        log[shouldLog ? 'warn' : 'debug'](line, 'claims of an ended process not released; will retry');
      }
    }
  }

  /** Looks for ended processes until the signal fires, in turn with the other processes. */
  async function watch(client: pg.Client, ownKey: number, signal: AbortSignal, onAbsent: OnAbsent): Promise<void> {
    let suspects: ReadonlySet<number> = new Set();
    while (!signal.aborted) {
      const seen = await look(client, ownKey);
      const turnAtMs = performance.now() + waitForTurn(seen);
      const absent = new Set(seen.absent);
      const confirmed = [...absent].filter((suspect) => suspects.has(suspect));
      suspects = absent;
      await release(confirmed, onAbsent);
      const pauseMs = absent.size > confirmed.length ? CONFIRM_AFTER_MS : Math.max(0, turnAtMs - performance.now());
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  return {
    get key() {
      return key;
    },
    async query<Row>(statement: Statement, values?: readonly unknown[]) {
      if (!session) throw new OddswireError('no_presence', 'the session of the presence is lost');
      const { query, end } = session;
      return inTurn(() => query<Row>(statement, values)).catch((error: unknown) => {
        // Without an answer of the server, a lock may be taken that nobody would free before the session ends.
        if (sqlState(error) === undefined) end();
        throw error;
      });
    },
    register(workers, onAbsent, listen = []) {
      return new Promise((resolve) => {
        running = keepSession({
          databaseUrl,
          applicationName: 'oddswire-presence',
          closing: closing.signal,
          log,
          lostMessage: 'presence lost; will retry',
          firstRetryMs: 50,
          longestRetryMs: 2_000,
          onLost: resolve,
          async use(client, signal, onReady) {
            try {
              lastKey = await acquireKey(client, workers);
              client.on('notification', ({ channel, payload = '' }) => {
                for (const each of listen) if (each.channel === channel) each.onMessage(payload);
              });
              for (const each of listen) await client.query(`LISTEN ${each.channel}`);
              for (const each of listen) each.onReady?.();
              key = lastKey;
              session = { ...sessionQueryable(client), end: () => void endSession(client) };
              onReady();
              resolve();
              await watch(client, lastKey, signal, onAbsent);
            } finally {
              key = null;
              session = undefined;
              for (const each of listen) each.onLost();
            }
          },
        }).finally(resolve);
      });
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}

const TAKE_ABSENT = sql(
  'take_absent',
  `SELECT workers FROM presence WHERE id = $2 AND pg_try_advisory_xact_lock_shared($1, $2) FOR UPDATE SKIP LOCKED`,
);

/**
 * The workers of an ended process, which cannot return before the transaction ends. Null when it has returned, or another process
 * releases its claims.
 */
export async function takeAbsent(tx: Tx, key: number): Promise<WorkerIds | null> {
  const [row] = await tx.query<{ workers: WorkerIds }>(TAKE_ABSENT, [PRESENCE_LOCK_SPACE, key]);
  return row?.workers ?? null;
}

const FORGET_ABSENT = sql(
  'forget_absent',
  'DELETE FROM presence WHERE id = $2 AND pg_try_advisory_xact_lock_shared($1, $2)',
);

/** Forgets a process when everything of it is released. Has no effect on a process that has returned. */
export async function forgetAbsent(db: Queryable, key: number): Promise<void> {
  await db.query(FORGET_ABSENT, [PRESENCE_LOCK_SPACE, key]);
}

const HAS_PRESENCE = sql(
  'has_presence',
  `SELECT EXISTS (
     SELECT FROM presence WHERE workers ? $2 AND ($3::text IS NULL OR NOT workers ? $3) AND NOT pg_try_advisory_xact_lock_shared($1, id)
   ) AS is_present`,
);

/**
 * Whether a process that works on this queue runs and reaches the database; of another release, one that does not work on the queue
 * `without`. A suspended process keeps its presence.
 */
export async function hasPresence(db: Queryable, queue: string, without?: string): Promise<boolean> {
  const values = [PRESENCE_LOCK_SPACE, queue, without ?? null];
  const [row] = await db.query<{ isPresent: boolean }>(HAS_PRESENCE, values);
  return row?.isPresent ?? false;
}
