import { asError } from '../../src/domain/values/errors.ts';
import { forwardAbort } from '../../src/domain/values/signals.ts';
import { failureFields } from '../../src/observe/failure-fields.ts';
import { FailureStreaks } from '../../src/observe/failure-streaks.ts';
import { processLag } from '../../src/observe/process-lag.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import { acquirePollLease, advancePoll, POLL_LEASES, restPoll } from '../../src/store/catalog/poll-state.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { type Lease, LeaseLostError, type Leases, newLeaseToken } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { CallContext, Page } from '../../src/venues/port.ts';
import type { JobContext, JobReport } from '../process/define.ts';
import { type Advance, type PageStore, storePage, type WalkState, type Written } from './page-store.ts';

/** Pages that are read one after the other, and how they are stored. */
export interface PageSource<R, W, P extends Page<R> = Page<R>> extends PageStore<R, W, P> {
  /** Other work under the lease, before each page. */
  beforePage?(position: unknown, call: CallContext): Promise<void>;
  /** The next page after `position`, read outside any transaction; undefined ends the walk. */
  fetch(position: unknown, call: CallContext): Promise<P | undefined>;
}

/**
 * Pages that are read at the same time, and how they are stored: one after the other, in the order of their arrival. `Q` is a request for
 * one page. A position contains only stored pages, so a process that dies repeats the pages in flight.
 */
export interface OverlappingSource<Q, R, W, P extends Page<R> = Page<R>> extends PageStore<R, W, P> {
  /** Requests in flight at once. */
  atOnce: number;
  /**
   * The position from which the walk continues: at the start the stored one, later the one at which nothing is left to request. Undefined
   * ends the walk.
   */
  open(position: unknown): { position: unknown } | undefined;
  /** The next request beside those in flight; undefined while none can begin. */
  take(position: unknown, inFlight: ReadonlySet<Q>, call: CallContext): Promise<Q | undefined>;
  /** Reads a page. It gets its place when it is stored: `position` then contains every page stored before. */
  fetch(request: Q, call: CallContext): Promise<((position: unknown) => P) | undefined>;
}

type AnySource<R, W, P extends Page<R>> = PageSource<R, W, P> | OverlappingSource<unknown, R, W, P>;

/** The poll of one venue, under the lease of this kind. */
interface Poll<A> {
  venue: string;
  lease: string;
  adapters: ReadonlyMap<string, A>;
}

/** A walk ends for this tick after this many pages or this long. Half the deadline of the job leaves the last page enough time. */
const MAX_PAGES = 500;
const WALK_MS = JOBS['poll-markets'].deadlineMs / 2;

/** Failed polls of a process in a row. The stored count includes other processes and earlier runs. */
const streaksOf = oncePerOwner((_db: object) => new FailureStreaks());

/**
 * Runs one poll of a venue under its lease. Each page is one transaction, so a poll that dies anywhere resumes after the last
 * committed page. Without the lease it does nothing: a slow poll does not pile up.
 */
export function runPoll<A extends object, R, W extends Written, P extends Page<R>>(
  context: JobContext,
  poll: Poll<A>,
  open: (adapter: A, advance: Advance) => PageSource<R, W, P>,
): Promise<JobReport>;
export function runPoll<A extends object, R, W extends Written, P extends Page<R>>(
  context: JobContext,
  poll: Poll<A>,
  open: (adapter: A, advance: Advance) => OverlappingSource<unknown, R, W, P>,
): Promise<JobReport>;
export async function runPoll<A extends object, R, W extends Written, P extends Page<R>>(
  context: JobContext,
  { venue, lease: kind, adapters }: Poll<A>,
  open: (adapter: A, advance: Advance) => AnySource<R, W, P>,
): Promise<JobReport> {
  const adapter = adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const lease = await acquirePollLease(context.db, venue, kind, newLeaseToken(context.presence.key));
  if (!lease) return { skipped: 'already running' };
  const advance: Advance = (tx, position, isIdle) => advancePoll(tx, lease, position, isIdle);
  const lag = processLag().begin();
  const walk = async () => {
    try {
      return await walkPages(context, open(adapter, advance), { venue, position: lease.position, advance });
    } catch (thrown) {
      throw !context.stopping.aborted && lag.wasLate() ? ownIfLate(venue, asError(thrown), lag.lateMs()) : thrown;
    }
  };
  const endLease = async ({ requests }: Walked) => {
    if (requests === 'sent') await POLL_LEASES.release(context.db, lease, null);
    else await restPoll(context.db, lease, requests === 'nothing to request');
  };
  // An own fault that repeats keeps the poll from its work, so the state shows its reason.
  const uncharged = { isCharged: (error: Error) => !isOwnFault(error), reasonOf: ({ message }: Error) => message };
  const end = await underLease(context, POLL_LEASES, lease, walk, { endLease, ...uncharged });
  const streaks = streaksOf(context.db);
  const streak = `${venue} ${kind}`;
  if ('result' in end) {
    const failed = streaks.succeeded(streak);
    if (failed > 0) context.log.info({ venue, kind, failed }, 'poll works again');
    return end.result.report;
  }
  const { error, failures } = end;
  const isExpected = error instanceof VenueError || error instanceof LeaseLostError || context.stopping.aborted;
  if (!isExpected) {
    // The error may be a partition that was dropped after this process had seen it.
    context.partitions.forget();
    throw error;
  }
  // An outage of a venue is a state that venue health shows, so the job does not fail and only its first failure is logged.
  if (!context.stopping.aborted) {
    const level = streaks.failed(streak).inARow === 1 ? 'warn' : 'debug';
    context.log[level]({ venue, kind, failures, ...failureFields(error) }, 'poll failed');
  }
  return { failed: error.message };
}

/** Whether a failed poll says nothing about its venue: another process took it over, or this process was too late. */
function isOwnFault({ code }: Error & { code?: unknown }): boolean {
  return code === 'process_late' || code === 'lease_lost';
}

/** The failure of a poll of a late process: the deadline of the job or of the ledger may have passed because of it. */
function ownIfLate(venue: string, error: Error & { code?: unknown }, lateMs: number): Error {
  if (error.code !== 'aborted' && error.code !== 'budget_unavailable') return error;
  const late = `this process was late by ${Math.round(lateMs)} ms: ${error.message}`;
  return new VenueError(venue, 'process_late', late, { retryable: true, cause: error });
}

interface LeasedWork<T> {
  /** Whether an error counts as a failure in a row. Default: every error. */
  isCharged?(error: Error): boolean;
  /** The stored reason of an error that does not count. Default: none. */
  reasonOf?(error: Error): string | null;
  /** Ends the lease after the work. Default: with a success. */
  endLease?(result: T): Promise<unknown>;
}

/** Runs `work` under a lease that a heartbeat renews. When the database is unavailable this rejects, and the lease ends by itself. */
export async function underLease<L extends Lease, T>(
  { db, log, stopping }: JobContext,
  leases: Leases<L>,
  lease: L,
  work: () => Promise<T>,
  {
    isCharged = () => true,
    reasonOf = () => null,
    endLease = () => leases.release(db, lease, null),
  }: LeasedWork<T> = {},
): Promise<{ result: T } | { error: Error; failures: number }> {
  const renew = () => leases.renew(db, lease).catch((error: unknown) => log.warn({ err: error }, 'lease not renewed'));
  const heartbeat = setInterval(renew, (leases.seconds * 1000) / 3);
  try {
    const result = await work();
    await endLease(result);
    return { result };
  } catch (thrown) {
    const error = asError(thrown);
    if (!(error instanceof VenueError) && isDatabaseUnavailable(error)) throw error;
    if (!stopping.aborted && isCharged(error))
      return { error, failures: await leases.release(db, lease, error.message) };
    await leases.abandon(db, lease, stopping.aborted ? null : reasonOf(error));
    return { error, failures: 0 };
  } finally {
    clearInterval(heartbeat);
  }
}

interface Walked {
  report: { pages: number; records: number; written: number; rejected: number };
  position: unknown;
  /** `none`: no request was due, or the process stops. */
  requests: 'sent' | 'none' | 'nothing to request';
}

/** Reads and stores pages, until the venue has no more, the tick is over or the signal fires. */
export async function walkPages<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  source: AnySource<R, W, P>,
  start: WalkState,
  maxPages = MAX_PAGES,
): Promise<Walked> {
  return walkOverlapping(context, 'take' in source ? source : oneByOne(source), start, maxPages);
}

/** A source whose next request begins at the position of the page before. */
function oneByOne<R, W, P extends Page<R>>(source: PageSource<R, W, P>): OverlappingSource<{ from: unknown }, R, W, P> {
  let isOpen = false;
  let hasMore = true;
  return {
    ...source,
    atOnce: 1,
    open(position) {
      if (isOpen) return undefined;
      isOpen = true;
      return { position };
    },
    async take(from, _inFlight, call) {
      if (!hasMore) return undefined;
      await source.beforePage?.(from, call);
      return { from };
    },
    async fetch({ from }, call) {
      const page = await source.fetch(from, call);
      hasMore = page?.more === true;
      return page && (() => page);
    },
  };
}

/**
 * Hands out requests up to `atOnce`, and stores each page when no other page is being stored. After a failed request no further one
 * begins; the pages in flight are stored before the walk throws. A page with a fault is stored too: the next walk begins behind it. A page
 * that cannot be stored aborts the others.
 */
async function walkOverlapping<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  source: OverlappingSource<unknown, R, W, P>,
  start: WalkState,
  maxPages: number,
): Promise<Walked> {
  const report: Walked['report'] = { pages: 0, records: 0, written: 0, rejected: 0 };
  let requests: Walked['requests'] = 'none';
  const endsAtMs = performance.now() + WALK_MS;
  const unstorable = new AbortController();
  const unlink = forwardAbort(context.signal, unstorable);
  const call = { signal: unstorable.signal, now: context.now };
  const errors: Error[] = [];
  const inFlight = new Map<unknown, Promise<void>>();
  const isOver = () =>
    errors.length > 0 ||
    report.pages + inFlight.size >= maxPages ||
    performance.now() >= endsAtMs ||
    context.signal.aborted;
  let lastStore = Promise.resolve();

  async function store(place: (position: unknown) => P): Promise<void> {
    try {
      const page = place(state.position);
      const { written, rejected } = await storePage(context, source, page, state);
      state.position = page.position;
      if (!page.isIdle) requests = 'sent';
      else if (requests === 'none') requests = 'nothing to request';
      report.pages += 1;
      report.records += page.records.length;
      report.written += written;
      report.rejected += rejected;
      if (page.fault) errors.push(page.fault);
    } catch (error) {
      errors.push(asError(error));
      unstorable.abort();
    }
  }

  async function read(request: unknown): Promise<void> {
    try {
      const place = await source.fetch(request, call);
      if (!place) return;
      lastStore = lastStore.then(() => store(place));
      await lastStore;
    } catch (error) {
      errors.push(asError(error));
    } finally {
      inFlight.delete(request);
    }
  }

  async function take(): Promise<unknown> {
    try {
      return await source.take(state.position, new Set(inFlight.keys()), call);
    } catch (error) {
      errors.push(asError(error));
      return undefined;
    }
  }

  const state = { ...start, ...source.open(start.position) };
  try {
    for (;;) {
      while (inFlight.size < source.atOnce && !isOver()) {
        const request = await take();
        if (request === undefined) break;
        inFlight.set(request, read(request));
      }
      if (inFlight.size > 0) {
        await Promise.race(inFlight.values());
        continue;
      }
      const opened = isOver() ? undefined : source.open(state.position);
      if (!opened) break;
      Object.assign(state, opened);
    }
  } finally {
    unlink();
    await source.end?.();
  }
  const [error] = errors;
  if (error) throw error;
  return { report, position: state.position, requests };
}
