import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../observe/logger.ts';
import { keepSession } from '../db/kept-session.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A Postgres channel of its own, because BullMQ's events do not report stored data. */
const CHANNEL = 'oddswire_arrival';

const ANNOUNCE = sql('announce_arrival', `SELECT pg_notify('${CHANNEL}', $1)`);

/** The awaited data: the requested books of a market, or its older trades. */
type ArrivalKey = `book:${string}` | `history:${string}`;

/** An announcement of older trades of any market. */
const ANY_HISTORY = 'history:*';
type AwaitedKey = ArrivalKey | typeof ANY_HISTORY;

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
  waitFor(key: AwaitedKey, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Resolves when it listens for the first time, or when it is closed before. */
  ready(): Promise<void>;
  /** Ends every wait with false, and closes the connection. */
  close(): Promise<void>;
}

/** A heartbeat without an answer detects a silent connection. */
const HEARTBEAT_MS = 15_000;

/** Listens on a connection of its own, which it reopens with backoff whenever it is lost. Never throws. */
export function createArrivals(databaseUrl: string, log: Logger): Arrivals {
  const waiting = new Map<string, Set<(arrived: boolean) => void>>();
  const closing = new AbortController();
  let nowReady: () => void = () => undefined;
  const readiness = new Promise<void>((resolve) => {
    nowReady = resolve;
  });

  function announced(key = ''): void {
    for (const settle of waiting.get(key) ?? []) settle(true);
    if (key.startsWith('history:')) for (const settle of waiting.get(ANY_HISTORY) ?? []) settle(true);
  }

  const running = keepSession({
    databaseUrl,
    applicationName: 'oddswire-arrivals',
    closing: closing.signal,
    log,
    lostMessage: 'connection for arrivals lost; will retry',
    firstRetryMs: 100,
    longestRetryMs: 5_000,
    async use(client, signal, onReady) {
      client.on('notification', ({ payload }) => announced(payload));
      await client.query(`LISTEN ${CHANNEL}`);
      onReady();
      nowReady();
      while (!signal.aborted) {
        await delay(HEARTBEAT_MS, undefined, { signal, ref: false }).catch(() => undefined);
        if (!signal.aborted) await client.query('SELECT 1');
      }
    },
  });

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
