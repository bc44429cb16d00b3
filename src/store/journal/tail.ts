import { setTimeout as delay } from 'node:timers/promises';
import type { Change } from '../../domain/live/change.ts';
import { WakeUp, within } from '../../domain/values/signals.ts';
import { FailureStreaks } from '../../observe/failures.ts';
import type { Logger } from '../../observe/logger.ts';
import { keepSession } from '../db/kept-session.ts';
import { type Queryable, sessionQueryable } from '../db/tx.ts';
import {
  JOURNAL_CHANNEL,
  type JournalHead,
  readChanges,
  readJournal,
  readJournalHead,
  SETTINGS,
} from './read-journal.ts';

/** Changes of the journal with the head that includes them. Every read of the head makes one, also without changes. */
export interface JournalBatch {
  /** In the order of `seq`, without a hole between this batch and the last one. */
  changes: readonly Change[];
  /** The head of the read. Its `seq` can be ahead of the last change: the rest follows in the next batches. */
  head: JournalHead;
  /** Everything up to this number was delivered. */
  upTo: number;
  /**
   * Changes `[from, to]` before this batch that the listener does not have: they were dropped before this process could read them, after a
   * long loss of the database, or the listener failed at one of them.
   */
  missed?: { from: number; to: number };
}

type Listener = (batch: JournalBatch) => void;

/** Follows the journal. One per process, for all its clients. */
export interface JournalTail {
  /** The head of the last read; undefined before the first. */
  readonly head: JournalHead | undefined;
  /** Everything up to this number was delivered to the listeners. */
  readonly position: number;
  /**
   * The distance of `checkedAt` of the head from the present in milliseconds, by the database clock at the last read, plus the time since then.
   * Infinite before the first read. It grows when the publisher stops, and when this process loses the database.
   */
  staleMs(): number;
  /** Adds a listener for later batches; returns its removal. An epoch other than the last one begins anew at its `seq`. */
  on(listener: Listener): () => void;
  close(): Promise<void>;
}

interface JournalTailOptions {
  /** Past any pooler, because LISTEN needs a session. */
  databaseUrl: string;
  /** Serves the first read, and reads while the session is lost. */
  pool: Queryable;
  log: Logger;
  /** The interval of reads without a notification. Default 250 ms. */
  pollMs?: number;
  /** The maximum number of changes per batch. Default 1,000. */
  batch?: number;
}

const POLL_MS = 250;
const BATCH = 1_000;
/** A heartbeat without an answer detects a silent connection. */
const HEARTBEAT_MS = 15_000;

/** A silent session does not make the journal stale. */
const SESSION_ANSWER_MS = 400;

/** The result of a read of the session; undefined when it fails or lasts too long. */
async function answered<T>(reading: Promise<T>): Promise<T | undefined> {
  return within(SESSION_ANSWER_MS, reading, () => undefined).catch(() => undefined);
}

/** What an earlier read has proven stays true while marks wait, unless the clock of the database was set back since. */
function withEarlierProof(next: JournalHead, last: JournalHead | undefined): JournalHead {
  const isProven = last?.epoch === next.epoch && last.checkedAt > next.checkedAt && last.checkedAt <= next.readAt;
  return isProven ? { ...next, checkedAt: last.checkedAt } : next;
}

/** Reads the journal at each notification, and at an interval because a notification can be lost. Never throws. */
export function followJournal(options: JournalTailOptions): JournalTail {
  const { databaseUrl, pool, log, pollMs = POLL_MS, batch = BATCH } = options;
  const closing = new AbortController();
  const listeners = new Set<Listener>();
  /** The first change that a listener does not have since it failed. */
  const failedAt = new Map<Listener, number>();
  const streaks = new FailureStreaks();
  /** The session that listens; undefined while it is lost. */
  let session: Queryable | undefined;
  let head: JournalHead | undefined;
  let askedAtMs = 0;
  let position = 0;
  let lastAt: Date | undefined;
  const notified = new WakeUp();

  function deliver(message: JournalBatch): void {
    const firstSeq = message.changes[0]?.seq ?? message.upTo + 1;
    for (const listener of [...listeners]) {
      const from = failedAt.get(listener);
      try {
        listener(from === undefined ? message : { ...message, missed: { from, to: firstSeq - 1 } });
        failedAt.delete(listener);
      } catch (error) {
        // It may have taken a part of the batch, so all of it counts as lost.
        const lostFrom = from ?? message.missed?.from ?? firstSeq;
        if (lostFrom <= message.upTo) failedAt.set(listener, lostFrom);
        log.error({ err: error, from: lostFrom, to: message.upTo }, 'a listener of the journal failed');
      }
    }
  }

  /** The head, and the changes behind the position that it includes: by one statement of the session, or without it by two of the pool. */
  async function read(): Promise<{ head: JournalHead; changes: readonly Change[] }> {
    const behind = { after: position, limit: batch, ...(lastAt !== undefined && { notBefore: lastAt }) };
    if (session && head) {
      const read = await answered(readJournal(session, behind));
      if (read) return read;
      // The pool says why a read fails. The next heartbeat of the session proves it or ends it.
      session = undefined;
    }
    const found = await readJournalHead(pool);
    const isBehind = head?.epoch === found.epoch && position < found.seq;
    return { head: found, changes: isBehind ? await readChanges(pool, { ...behind, upTo: found.seq }) : [] };
  }

  /** Whether more changes wait. */
  async function readOnce(): Promise<boolean> {
    const startedMs = performance.now();
    const found = await read();
    const next = withEarlierProof(found.head, head);
    const isContinued = head?.epoch === next.epoch;
    if (!isContinued) {
      position = next.seq;
      lastAt = undefined;
      failedAt.clear();
    }
    const changes = isContinued ? found.changes : [];
    // Numbers are dense, so retention dropped the changes of a hole before this read.
    const firstSeq = changes[0]?.seq ?? next.seq + 1;
    const missed = firstSeq > position + 1 ? { from: position + 1, to: firstSeq - 1 } : undefined;
    if (missed) position = missed.to;
    const last = changes.at(-1);
    position = last?.seq ?? position;
    lastAt = last?.at ?? lastAt;
    head = next;
    askedAtMs = startedMs;
    deliver({ changes, head: next, upTo: position, ...(missed !== undefined && { missed }) });
    return position < next.seq;
  }

  async function follow(): Promise<void> {
    while (!closing.signal.aborted) {
      notified.take();
      let hasMore = false;
      try {
        hasMore = await readOnce();
        streaks.succeeded('read');
      } catch (error) {
        if (closing.signal.aborted) return;
        const { inARow, shouldLog } = streaks.failed('read');
        log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'journal not read; will retry');
      }
      if (!hasMore) await notified.wait(pollMs, closing.signal);
    }
  }

  const listening = keepSession({
    databaseUrl,
    applicationName: 'oddswire-journal-tail',
    closing: closing.signal,
    log,
    lostMessage: 'connection for notifications of the journal lost; will retry',
    firstRetryMs: 100,
    longestRetryMs: 5_000,
    async use(client, signal, onReady) {
      client.on('notification', () => notified.wake());
      await client.query(`LISTEN ${JOURNAL_CHANNEL}`);
      const own = sessionQueryable(client);
      await own.query(SETTINGS);
      session = own;
      onReady();
      notified.wake();
      try {
        while (!signal.aborted) {
          await delay(HEARTBEAT_MS, undefined, { signal, ref: false }).catch(() => undefined);
          if (!signal.aborted) await client.query('SELECT 1');
          session = own;
        }
      } finally {
        session = undefined;
      }
    },
  });
  const following = follow();

  return {
    get head() {
      return head;
    },
    get position() {
      return position;
    },
    staleMs() {
      if (!head) return Number.POSITIVE_INFINITY;
      // A head of a later clock, which was set back since, confirms nothing about the present.
      return Math.abs(head.readAt.getTime() - head.checkedAt.getTime()) + (performance.now() - askedAtMs);
    },
    on(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        failedAt.delete(listener);
      };
    },
    async close() {
      closing.abort();
      await Promise.all([listening, following]);
    },
  };
}
