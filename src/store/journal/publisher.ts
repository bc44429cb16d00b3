import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { asError } from '../../domain/values/errors.ts';
import { WakeUp } from '../../domain/values/signals.ts';
import type { Logger } from '../../observe/logger.ts';
import { keepSession } from '../db/kept-session.ts';
import { type Queryable, sessionQueryable, sqlState } from '../db/tx.ts';
import { PUBLISH_CHANNEL } from '../marks/lane-signals.ts';
import { CLAIM, type Claimed, FOUND, IS_FOUNDED, LOOK, type Look } from './claim.ts';
import { SETTINGS } from './read-journal.ts';
import { keepPartitions, pruneJournal } from './retention.ts';

/** Marks per claim: some milliseconds to a tenth of a second of work. */
const MARKS_PER_CLAIM = 2_000;
/** Pauses between claims under load: as long as the claim itself, so that the publisher takes at most half of a core. */
const SHORTEST_PAUSE_MS = 6;
const LONGEST_BUSY_PAUSE_MS = 40;
/** A look finds marks without a signal too. */
const LOOK_EVERY_MS = 180;
/** The age of a head that a look renews for readers that know no other evidence: it is never older than 250 ms then. */
const RENEW_AFTER_MS = 100;
/** The age of a head that is renewed at rest, which shows a second publisher that this one lives. */
const RENEW_AT_REST_MS = 2_000;
/** A second publisher looks this often. */
const STANDBY_MS = 250;
/** It takes over when work waits for this long and nothing was published. */
const OVERDUE_MS = 500;
/** It takes over at rest when the head is this old. */
const OVERDUE_AT_REST_MS = 4_000;
const MAINTAIN_EVERY_MS = 30_000;

const UNIQUE_VIOLATION = '23505';
const NO_PARTITION = '23514';

interface PublisherOptions {
  /** Past any pooler: the publisher has one connection of its own. */
  databaseUrl: string;
  log: Logger;
  retentionMinutes: number;
  maxBytes: number;
  /** Called after each claim with its duration, seconds. */
  onClaimed?(claimed: Claimed, seconds: number): void;
  /** Called after each look for marks, and after each claim without one. */
  onLook?(): void;
  marksPerClaim?: number;
}

interface Publisher {
  /** Wakes it after a commit with marks; false while it does not publish: then another one needs a notification. */
  wake(): boolean;
  /** Ends after the claim in flight. */
  stop(): Promise<void>;
}

/** The result of a look for marks, with the claim that may follow. */
type Result = 'full' | 'done' | 'failed' | 'overtaken';

/**
 * Publishes marks until it is stopped. Two publishers may run: claims exclude each other, and one that finds the other at work only
 * watches it. Reports errors to the log and continues with another session.
 */
export function startPublisher(options: PublisherOptions): Publisher {
  const { databaseUrl, log } = options;
  const closing = new AbortController();
  let wake = () => false;
  const running = keepSession({
    databaseUrl,
    applicationName: 'oddswire-publisher',
    closing: closing.signal,
    log,
    lostMessage: 'publisher of the journal interrupted; will retry',
    firstRetryMs: 50,
    longestRetryMs: 2_000,
    async use(client, signal, onReady) {
      const session = new Session(client, options);
      await session.found();
      onReady();
      const signalled = new WakeUp();
      client.on('notification', () => signalled.wake());
      await client.query(`LISTEN ${PUBLISH_CHANNEL}`);
      wake = () => {
        if (session.isPublishing) signalled.wake();
        return session.isPublishing;
      };
      try {
        await session.publish(signal, signalled);
      } finally {
        wake = () => false;
      }
    },
  });
  return {
    wake: () => wake(),
    async stop() {
      closing.abort();
      await running;
    },
  };
}

class Session {
  readonly #db: Queryable;
  readonly #options: PublisherOptions;
  /** The last head that this session wrote, or saw. */
  #turn: bigint | undefined;
  /** Whether the last claim was of this session. */
  #isActive = false;
  /** Whether the last claim continued the head that this session saw last. */
  #isAlone = false;
  #maintainAtMs = 0;
  /** Since when work waits without a new head, while another publisher is at work. */
  #leftSinceMs: number | undefined;

  constructor(client: pg.Client, options: PublisherOptions) {
    this.#db = sessionQueryable(client);
    this.#options = options;
  }

  /** Whether this session publishes, and no other one does. */
  get isPublishing(): boolean {
    return this.#isActive && this.#isAlone;
  }

  /** Prepares the session, and begins another epoch in a restored database. */
  async found(): Promise<void> {
    await this.#db.query(SETTINGS);
    const [state] = await this.#db.query<{ isFounded: boolean }>(IS_FOUNDED);
    if (state?.isFounded) return;
    try {
      const [head] = await this.#db.query<{ epoch: string; seq: number }>(FOUND);
      if (head) this.#options.log.info({ epoch: head.epoch, seq: head.seq }, 'epoch of the journal begun');
    } catch (error) {
      // Another publisher began it.
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    }
  }

  /** Publishes at each signal, and at least when the head is to be renewed. */
  async publish(closing: AbortSignal, signalled: WakeUp): Promise<void> {
    while (!closing.aborted) {
      await this.#maintain();
      const startedMs = performance.now();
      const result = await this.#work(signalled.take());
      this.#isActive = result !== 'overtaken';
      this.#options.onLook?.();
      if (result === 'full') continue;
      if (result === 'overtaken') await pause(STANDBY_MS, closing);
      else {
        const busyMs = Math.min(Math.max(performance.now() - startedMs, SHORTEST_PAUSE_MS), LONGEST_BUSY_PAUSE_MS);
        await pause(busyMs, closing);
        // Writers signal what follows; the look after this time finds marks without a signal.
        if (result === 'done') await signalled.wait(startedMs + LOOK_EVERY_MS - performance.now(), closing);
      }
    }
  }

  /** Claims after a signal, which follows a commit with marks. Without one, or beside another publisher, it looks first. */
  async #work(isSignalled: boolean): Promise<Result> {
    return isSignalled && this.isPublishing ? this.#claim() : this.#look();
  }

  async #look(): Promise<Result> {
    const [look] = await this.#db.query<Look>(LOOK);
    if (!look) throw new TypeError('the journal has no head');
    const before = this.#turn;
    this.#turn = look.turn;
    if (look.turn !== before) this.#isActive = false;
    if (!this.#isActive) return this.#isOverdue(look, before) ? this.#claim() : 'overtaken';
    const isOld = look.checkedMsAgo >= (look.isTrusted ? RENEW_AFTER_MS : RENEW_AT_REST_MS);
    return look.hasWork || isOld ? this.#claim() : 'done';
  }

  /** Whether no other publisher is at work. */
  #isOverdue({ turn, checkedMsAgo, hasWork, isTrusted }: Look, before: bigint | undefined): boolean {
    const nowMs = performance.now();
    if (turn !== before || !hasWork) this.#leftSinceMs = undefined;
    if (hasWork) this.#leftSinceMs ??= nowMs;
    // A session that begins does not know since when work waits.
    const isOften = isTrusted || (hasWork && before === undefined);
    if (checkedMsAgo >= (isOften ? OVERDUE_MS : OVERDUE_AT_REST_MS)) return true;
    return this.#leftSinceMs !== undefined && nowMs - this.#leftSinceMs >= OVERDUE_MS;
  }

  async #claim(): Promise<Result> {
    const startedMs = performance.now();
    try {
      const [claimed] = await this.#db.query<Claimed>(CLAIM, [this.#options.marksPerClaim ?? MARKS_PER_CLAIM]);
      if (!claimed) return 'overtaken';
      this.#isAlone = this.#turn !== undefined && claimed.turn === this.#turn + 1n;
      this.#turn = claimed.turn;
      this.#options.onClaimed?.(claimed, (performance.now() - startedMs) / 1000);
      return claimed.isFull ? 'full' : 'done';
    } catch (error) {
      if (sqlState(error) === UNIQUE_VIOLATION) return 'overtaken';
      if (sqlState(error) !== NO_PARTITION) throw error;
      await keepPartitions(this.#db);
      return 'failed';
    }
  }

  async #maintain(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.#maintainAtMs) return;
    this.#maintainAtMs = nowMs + MAINTAIN_EVERY_MS;
    await keepPartitions(this.#db);
    const { retentionMinutes, maxBytes, log } = this.#options;
    if (!this.#isActive) return;
    try {
      const { dropped, turn } = await pruneJournal(this.#db, { retentionMinutes, maxBytes });
      this.#turn = turn ?? this.#turn;
      if (dropped.length > 0) log.info({ table: 'journal', dropped }, 'retention');
    } catch (error) {
      // Publishing continues; a lost session fails the next statement.
      log.warn({ err: asError(error) }, 'retention of the journal failed; will retry');
    }
  }
}

/** Resolves after `ms`, or when the signal fires. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal, ref: false }).catch(() => undefined);
}
