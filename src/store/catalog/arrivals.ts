import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { asError } from '../../domain/values/errors.ts';
import { within } from '../../domain/values/within.ts';
import { FailureStreaks } from '../../observe/failure-streaks.ts';
import type { Logger } from '../../observe/logger.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A Postgres channel of its own, because BullMQ's events do not report stored data. */
const CHANNEL = 'oddswire_arrival';

const ANNOUNCE = sql('announce_arrival', `SELECT pg_notify('${CHANNEL}', $1)`);

/** The awaited data: the requested books of a market, or its older trades. */
type ArrivalKey = `book:${string}` | `history:${string}`;

/** Notifies all processes that wait for this key. Postgres sends it when the writing transaction commits, and only then. */
export async function announceArrival(tx: Queryable, key: ArrivalKey): Promise<void> {
  await tx.query(ANNOUNCE, [key]);
}

/** Receives announcements of other processes. */
export interface Arrivals {
  /**
   * True when the key is announced within the time. It listens from the call on, so call it before the work is enqueued and await it
   * afterwards. It also returns false for announcements during a lost connection, so read the data again then.
   */
  waitFor(key: ArrivalKey, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Resolves when it listens for the first time, or when it is closed before. */
  ready(): Promise<void>;
  /** Ends every wait with false, and closes the connection. */
  close(): Promise<void>;
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** A heartbeat without an answer detects a silent connection. */
const HEARTBEAT_MS = 15_000;
const ANSWER_MS = 5_000;
/** The maximum wait for the server at close. */
const FAREWELL_MS = 1_000;

/** Listens on a connection of its own, which it reopens with backoff whenever it is lost. Never throws. */
export function createArrivals(databaseUrl: string, log: Logger): Arrivals {
  const waiting = new Map<string, Set<(arrived: boolean) => void>>();
  const closing = new AbortController();
  const streaks = new FailureStreaks();
  let nowReady: () => void = () => undefined;
  const readiness = new Promise<void>((resolve) => {
    nowReady = resolve;
  });

  function announced(key: string | undefined): void {
    for (const settle of waiting.get(key ?? '') ?? []) settle(true);
  }

  /** Resolves when the connection is lost, rejects when it cannot be opened. */
  async function listenUntilLost(): Promise<void> {
    const client = new pg.Client({
      connectionString: databaseUrl,
      application_name: 'oddswire-arrivals',
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
    });
    const ended = new AbortController();
    const signal = AbortSignal.any([closing.signal, ended.signal]);
    client.on('error', (error) => {
      if (!closing.signal.aborted) log.warn({ err: error }, 'connection for arrivals lost');
      ended.abort();
    });
    client.on('end', () => ended.abort());
    client.on('notification', ({ payload }) => announced(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      streaks.succeeded('listen');
      nowReady();
      while (!signal.aborted) {
        await delay(HEARTBEAT_MS, undefined, { signal, ref: false }).catch(() => undefined);
        if (!signal.aborted) await client.query('SELECT 1');
      }
    } finally {
      await within(FAREWELL_MS, client.end(), () => undefined);
    }
  }

  async function run(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; failures++) {
      try {
        await listenUntilLost();
        failures = 0;
      } catch (error) {
        const { inARow, shouldLog } = streaks.failed('listen');
        log[shouldLog ? 'warn' : 'debug']({ err: asError(error), inARow }, 'cannot listen for arrivals; will retry');
      }
      const pauseMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 10));
      const jittered = pauseMs * (0.75 + Math.random() / 2);
      await delay(jittered, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
    }
  }

  const running = run();

  return {
    waitFor(key, timeoutMs, signal) {
      if (closing.signal.aborted || signal?.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const here = waiting.get(key) ?? new Set();
        waiting.set(key, here);
        const settle = (arrived: boolean) => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', giveUp);
          here.delete(settle);
          if (here.size === 0 && waiting.get(key) === here) waiting.delete(key);
          resolve(arrived);
        };
        const giveUp = () => settle(false);
        const timer = setTimeout(giveUp, timeoutMs);
        signal?.addEventListener('abort', giveUp, { once: true });
        here.add(settle);
      });
    },
    ready: () => readiness,
    async close() {
      closing.abort();
      for (const settles of [...waiting.values()]) for (const settle of [...settles]) settle(false);
      nowReady();
      await running;
    },
  };
}
