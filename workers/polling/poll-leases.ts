import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import {
  acquirePollLease,
  acquirePollLeases,
  advancePoll,
  type PageFacts,
  POLL_LEASES,
  type PollLease,
  type PollNews,
  requestPoll,
  storePollNews,
} from '../../src/store/catalog/poll-state.ts';
import { LeaseLostError, newLeaseToken, positionText } from '../../src/store/db/leases.ts';
import type { Presence } from '../../src/store/db/presence.ts';
import type { Database, Tx } from '../../src/store/db/tx.ts';
import { failureText } from '../../src/venues/errors.ts';
import { PollRequests } from './poll-requests.ts';
import { tapeMemoryOf } from './tape-memory.ts';

/** What a poll without news writes, in one statement for all polls of the process: at a third of the time of a lease. */
const STORE_EVERY_MS = (POLL_LEASES.seconds * 1000) / 3;
/**
 * A position of this many characters, such as one with a line per market, is stored at most once a minute while its pages have no news: it
 * would be most of what polls write. A process that dies reads the pages of a minute again.
 */
const LARGE_POSITION = 8_192;
const STORE_LARGE_EVERY_MS = 60_000;

interface PollLeasesDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly presence: Pick<Presence, 'key' | 'query'>;
}

/** The end of a poll without a failure. */
export interface PollEnd {
  readonly position: unknown;
  /** `none`: no request was due, or the process stops. */
  readonly requests: 'sent' | 'none' | 'nothing to request';
}

/** Moments of `performance.now()`. */
interface Notes {
  position?: { readonly value: unknown };
  attemptedAtMs?: number;
  succeededAtMs?: number;
  idleAtMs?: number;
  hasEnded?: boolean;
  caughtUpMs?: number;
}

/** One kind of poll of a venue whose lease this process holds. */
export class HeldPoll {
  readonly presence: number | null;
  readonly #lease: PollLease;
  /** What is not stored yet. A process that dies loses it: it reads these pages again, and the times are older by as much. */
  #notes: Notes = {};
  /** The next time at which a position is stored that is as large as the last one. */
  #positionDueMs = Number.NEGATIVE_INFINITY;
  /** The lease has a stored end of a poll without a failure. */
  isProven = false;
  isBusy = false;
  isLost = false;

  constructor(lease: PollLease, presence: number | null) {
    this.#lease = lease;
    this.presence = presence;
  }

  get lease(): PollLease {
    return this.#lease;
  }

  get hasNotes(): boolean {
    return Object.keys(this.#notes).length > 0;
  }

  begin(): void {
    this.isBusy = true;
    this.#notes.attemptedAtMs = performance.now();
  }

  /** A transaction stores a later position. If it rolls back, the pages before it are read again. */
  forgetPosition(): void {
    delete this.#notes.position;
  }

  /** Moves the position behind a page that has nothing to write. @throws LeaseLostError */
  keep(position: unknown, { isIdle = false, caughtUpMs }: PageFacts): void {
    if (this.isLost) throw new LeaseLostError(`the ${this.#lease.kind} poll of ${this.#lease.venue}`);
    this.#notes.position = { value: position };
    if (!isIdle) this.#notes.succeededAtMs = performance.now();
    if (caughtUpMs !== undefined) this.#notes.caughtUpMs = caughtUpMs;
  }

  /** The poll ended without a failure. */
  end({ position, requests }: PollEnd): void {
    this.#lease.position = position;
    this.#notes.hasEnded = true;
    if (requests === 'sent') this.#notes.succeededAtMs = performance.now();
    if (requests === 'nothing to request') this.#notes.idleAtMs = performance.now();
  }

  /**
   * The notes for a statement, which `putBack` returns when it fails. While the poll goes on under its lease, a large position may wait for
   * a later statement; `isLast` gives it out.
   */
  take({ isReleased, isLast = isReleased }: { isReleased: boolean; isLast?: boolean }): {
    news: PollNews;
    putBack(): void;
  } {
    const nowMs = performance.now();
    const { position: moved, ...others } = this.#notes;
    const isWaiting = moved !== undefined && !isLast && nowMs < this.#positionDueMs;
    const notes: Notes = isWaiting ? others : this.#notes;
    this.#notes = isWaiting ? { position: moved } : {};
    if (notes.position !== undefined) {
      const isLarge = (positionText(notes.position.value)?.length ?? 0) >= LARGE_POSITION;
      this.#positionDueMs = isLarge ? nowMs + STORE_LARGE_EVERY_MS : Number.NEGATIVE_INFINITY;
    }
    const ago = (atMs: number | undefined) => (atMs === undefined ? undefined : nowMs - atMs);
    const { position, attemptedAtMs, succeededAtMs, idleAtMs, hasEnded = false, caughtUpMs } = notes;
    const times = {
      attemptedMsAgo: ago(attemptedAtMs),
      succeededMsAgo: ago(succeededAtMs),
      idleMsAgo: ago(idleAtMs),
      caughtUpMs,
      position,
    };
    return {
      news: { lease: this.#lease, hasEnded, isReleased, ...withoutUndefined(times) },
      putBack: () => {
        if (notes.position !== undefined) this.#positionDueMs = Number.NEGATIVE_INFINITY;
        this.#notes = { ...notes, ...this.#notes };
      },
    };
  }
}

type Defined<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> };

function withoutUndefined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/**
 * The leases of polls that this process holds, and what their polls have found since the last statement. The lease of a kind that `keep` names
 * stays with the process between its polls; every other one ends with its poll.
 */
export class PollLeases {
  readonly #deps: PollLeasesDeps;
  readonly #held = new Map<string, HeldPoll>();
  readonly #streaks = new FailureStreaks();
  readonly #kept = new Map<string, ReadonlySet<string>>();
  /** Other processes ask for polls whose leases this process keeps. */
  readonly requests: PollRequests;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: PollLeasesDeps) {
    this.#deps = deps;
    this.requests = new PollRequests(deps);
  }

  /**
   * Keeps the leases of these kinds from now on, and takes the free ones; while the database is away it takes none. Returns the held kinds,
   * with the milliseconds since the last poll of those that it took.
   */
  async keep(venue: string, kinds: readonly string[]): Promise<ReadonlyMap<string, number | null>> {
    this.#kept.set(venue, new Set(kinds));
    const wanted = kinds.filter((kind) => !this.#held.has(keyOf(venue, kind)));
    const found = new Map<string, number | null>(
      kinds.filter((kind) => !wanted.includes(kind)).map((kind) => [kind, null]),
    );
    if (wanted.length === 0) return found;
    const { key } = this.#deps.presence;
    const leases = await this.#acquire(venue, wanted);
    const polls = leases.map((lease) => new HeldPoll(lease, key));
    for (const poll of polls) this.#hold(poll);
    // The last job of the venue ended meanwhile.
    if (!this.#kept.has(venue)) await this.#releaseAll(polls);
    for (const { kind, attemptedMsAgo } of leases) found.set(kind, attemptedMsAgo);
    return found;
  }

  /** The free leases of these kinds; none while the database does not answer. */
  async #acquire(venue: string, kinds: readonly string[]): ReturnType<typeof acquirePollLeases> {
    const { db, log, presence } = this.#deps;
    try {
      const leases = await acquirePollLeases(db, venue, kinds, newLeaseToken(presence.key));
      this.#streaks.succeeded(venue);
      return leases;
    } catch (error) {
      const { inARow, shouldLog } = this.#streaks.failed(venue);
      log[shouldLog ? 'warn' : 'debug'](
        { venue, err: asError(error), inARow },
        'leases of polls not taken; will retry',
      );
      return [];
    }
  }

  /** Ends the leases of a venue: those of polls in progress at the end of the poll. */
  async release(venue: string): Promise<void> {
    this.#kept.delete(venue);
    const idle = [...this.#held.values()].filter(({ lease, isBusy }) => lease.venue === venue && !isBusy);
    await Promise.all([this.#releaseAll(idle), this.requests.free(venue)]);
  }

  /** Begins a poll; null while another one of this kind runs, here or in another process, which then is asked for one. */
  async take(venue: string, kind: string): Promise<HeldPoll | null> {
    const { db, presence } = this.#deps;
    const held = this.#held.get(keyOf(venue, kind));
    if (held?.isBusy) return null;
    if (held && !held.isLost) {
      held.begin();
      return held;
    }
    const { key } = presence;
    const lease = await acquirePollLease(db, venue, kind, newLeaseToken(key));
    if (!lease) {
      if (!this.#kept.get(venue)?.has(kind)) await requestPoll(db, venue, kind);
      return null;
    }
    const fresh = new HeldPoll(lease, key);
    this.#hold(fresh);
    fresh.begin();
    return fresh;
  }

  /** Moves the position in the transaction of a page. @throws LeaseLostError */
  async advance(tx: Tx, poll: HeldPoll, position: unknown, facts?: PageFacts): Promise<void> {
    poll.forgetPosition();
    const isLosing = await advancePoll(tx, poll.lease, position, facts);
    if (facts?.caughtUpMs !== undefined) tapeMemoryOf(this.#deps.db, poll.lease.venue).note(isLosing);
  }

  /** Ends a poll without a failure. The first one under a lease is stored at once: a repaired venue shows it. */
  async end(poll: HeldPoll, walked: PollEnd): Promise<void> {
    poll.end(walked);
    // No other poll begins meanwhile: a failure of the statement ends this one, and its lease.
    if (this.#keeps(poll) && !poll.isProven) await this.#store([poll], false);
    poll.isBusy = false;
    if (!this.#keeps(poll)) await this.#store([poll], true);
  }

  /** Ends a poll and its lease with a failure in a row, and returns their number. Other processes may try. */
  async fail(poll: HeldPoll, error: Error): Promise<number> {
    await this.#storeNotes(poll);
    return POLL_LEASES.release(this.#deps.db, poll.lease, failureText(error));
  }

  /** Ends a poll and its lease without a success or a failure. A `reason` becomes the last error. */
  async abandon(poll: HeldPoll, reason: string | null): Promise<void> {
    await this.#storeNotes(poll);
    await POLL_LEASES.abandon(this.#deps.db, poll.lease, reason);
  }

  /** The database is away. A lease that is kept goes on when it is back; another one ends by itself. */
  pause(poll: HeldPoll): void {
    poll.isBusy = false;
    if (!this.#keeps(poll)) this.#drop(poll);
  }

  /** Ends all leases. */
  async close(): Promise<void> {
    this.#kept.clear();
    await this.#releaseAll([...this.#held.values()]);
  }

  async #releaseAll(polls: readonly HeldPoll[]): Promise<void> {
    try {
      await this.#store(polls, true);
    } catch (error) {
      this.#deps.log.warn({ err: asError(error) }, 'leases not released: they end by themselves');
    }
  }

  #keeps({ lease }: HeldPoll): boolean {
    return this.#kept.get(lease.venue)?.has(lease.kind) ?? false;
  }

  #hold(poll: HeldPoll): void {
    this.#held.set(keyOf(poll.lease.venue, poll.lease.kind), poll);
    this.#timer ??= setInterval(() => void this.renew(), STORE_EVERY_MS).unref();
  }

  #drop(poll: HeldPoll): void {
    const key = keyOf(poll.lease.venue, poll.lease.kind);
    if (this.#held.get(key) === poll) this.#held.delete(key);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #storeNotes(poll: HeldPoll): Promise<void> {
    poll.isBusy = false;
    this.#drop(poll);
    if (poll.hasNotes) await storePollNews(this.#deps.db, [poll.take({ isReleased: false, isLast: true }).news]);
  }

  /** Renews the leases, and stores the news of their polls: the timer calls it. Never rejects. */
  async renew(): Promise<void> {
    const polls = [...this.#held.values()];
    const { key } = this.#deps.presence;
    // The end of a process ends only the leases of its present key. A lost session mostly returns under its key.
    const isOld = ({ isBusy, presence }: HeldPoll) => !isBusy && key !== null && presence !== key;
    try {
      await this.#store(polls.filter(isOld), true);
      await this.#store(
        polls.filter((poll) => !isOld(poll)),
        false,
      );
    } catch (error) {
      this.#deps.log.warn({ err: asError(error) }, 'lease not renewed');
    }
  }

  async #store(polls: readonly HeldPoll[], isReleased: boolean): Promise<void> {
    if (polls.length === 0) return;
    const taken = polls.map((poll) => ({ poll, ...poll.take({ isReleased }) }));
    if (isReleased) for (const poll of polls) this.#drop(poll);
    try {
      const stored = await storePollNews(
        this.#deps.db,
        taken.map(({ news }) => news),
      );
      const found = new Map(stored.map((row) => [keyOf(row.venue, row.kind), row]));
      for (const { poll, news } of taken) {
        const row = found.get(keyOf(poll.lease.venue, poll.lease.kind));
        if (!row) {
          poll.isLost = true;
          if (!poll.isBusy) this.#drop(poll);
          continue;
        }
        poll.isProven ||= news.hasEnded;
        if (row.isRequested && (news.hasEnded || !poll.isBusy))
          this.requests.onRequested(row.venue, `poll-${row.kind}`);
        if (news.caughtUpMs !== undefined) tapeMemoryOf(this.#deps.db, row.venue).note(row.isLosing);
      }
    } catch (error) {
      for (const { poll, putBack } of taken) {
        putBack();
        // Its lease may not have ended, and would keep this process from its polls.
        if (isReleased && this.#keeps(poll) && !this.#held.has(keyOf(poll.lease.venue, poll.lease.kind)))
          this.#hold(poll);
      }
      throw error;
    }
  }
}

function keyOf(venue: string, kind: string): string {
  return `${venue} ${kind}`;
}
