import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks, failureFields } from '../../src/observe/failures.ts';
import { processLag } from '../../src/observe/process-lag.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import type { PageFacts } from '../../src/store/catalog/poll-state.ts';
import type { WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { LeaseLostError } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable, type Tx } from '../../src/store/db/tx.ts';
import { isOfHost, VenueError } from '../../src/venues/errors.ts';
import type { Batch, CallContext, Page } from '../../src/venues/port.ts';
import { catalogMemoryOf } from '../ingest/catalog-memory.ts';
import type { OutcomesBatch } from '../ingest/price-store.ts';
import { type PageStore, recordsOf, storePage, type Written } from '../ingest/store-page.ts';
import type { JobContext, JobReport } from '../process/define.ts';
import type { HeldPoll, PollEnd } from './poll-leases.ts';

/** The poll of one venue, under the lease of this kind. */
interface Poll<A> {
  venue: string;
  lease: string;
  adapters: ReadonlyMap<string, A>;
}

/** Failed polls of a process in a row. The stored count includes other processes and earlier runs. */
const streaksOf = oncePerOwner((_db: object) => new FailureStreaks());

/**
 * Runs one poll of a venue under its lease. Each page with news is one transaction, so a poll that dies anywhere resumes after the last
 * committed page, or before pages without news. Without the lease it does nothing: a slow poll does not pile up.
 */
export async function runPoll<A extends object>(
  context: JobContext,
  { venue, lease: kind, adapters }: Poll<A>,
  walk: (adapter: A, start: Required<WalkStart>) => Promise<Walked>,
): Promise<JobReport> {
  const adapter = adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const { pollLeases: leases, stopping, log } = context;
  const poll = await leases.take(venue, kind);
  if (!poll) return { skipped: 'already running' };
  const start: Required<WalkStart> = {
    venue,
    position: poll.lease.position,
    advance: (tx, position, facts) => leases.advance(tx, poll, position, facts),
    keep: (position, facts) => poll.keep(position, facts),
  };
  const streaks = streaksOf(context.db);
  const streak = `${venue} ${kind}`;
  const lag = processLag().begin();
  let error: Error;
  try {
    const walked = await walk(adapter, start);
    await leases.end(poll, walked);
    const failed = streaks.succeeded(streak);
    if (failed > 0) log.info({ venue, kind, failed }, 'poll works again');
    return walked.report;
  } catch (thrown) {
    error = asError(thrown);
  }
  if (!stopping.aborted && lag.wasLate()) error = ownIfLate(venue, error, lag.lateMs());
  const failures = await failPoll(context, poll, error);
  const isExpected = error instanceof VenueError || error instanceof LeaseLostError || stopping.aborted;
  if (!isExpected) {
    // The error may be a partition that was dropped after this process had seen it.
    context.partitions.forget();
    throw error;
  }
  // An outage of a venue is a state that venue health shows, so the job does not fail and only its first failure is logged.
  if (!stopping.aborted) {
    const level = streaks.failed(streak).inARow === 1 ? 'warn' : 'debug';
    log[level]({ venue, kind, failures, ...failureFields(error) }, 'poll failed');
  }
  return { failed: error.message };
}

/** Ends the lease of a failed poll; returns the number of failures in a row. @throws the error itself, when the database is unavailable */
async function failPoll(context: JobContext, poll: HeldPoll, error: Error): Promise<number> {
  const { pollLeases: leases, stopping, metrics } = context;
  if (!(error instanceof VenueError) && isDatabaseUnavailable(error)) {
    leases.pause(poll);
    // A standby that takes over may lack the last outcomes, and give their keys to others.
    catalogMemoryOf(metrics, poll.lease.venue).forget();
    throw error;
  }
  if (!stopping.aborted && !isOwnFault(error)) return leases.fail(poll, error);
  // An own fault that repeats keeps the poll from its work, so the state shows its reason.
  await leases.abandon(poll, stopping.aborted ? null : error.message);
  return 0;
}

/** The codes of failures that say nothing about the venue: the poll was taken over, this process was late, or its ledger did not answer. */
const OWN_FAULTS: ReadonlySet<unknown> = new Set(['process_late', 'lease_lost', 'budget_unavailable']);

function isOwnFault({ code }: Error & { code?: unknown }): boolean {
  return OWN_FAULTS.has(code);
}

/** The failure of a poll of a late process: the deadline of the job or of the ledger may have passed because of it. */
function ownIfLate(venue: string, error: Error & { code?: unknown }, lateMs: number): Error {
  if (error.code !== 'aborted' && error.code !== 'budget_unavailable') return error;
  const late = `this process was late by ${Math.round(lateMs)} ms: ${error.message}`;
  return new VenueError(venue, 'process_late', late, { retryable: true, cause: error });
}

/** Pages that are read one after the other, and how they are stored. */
export interface PageSource<R, W, P extends Page<R> = Page<R>> extends PageStore<R, W, P> {
  /** Other work under the lease, before each page. */
  beforePage?(position: unknown, call: CallContext): Promise<void>;
  /** The next page after `position`, read outside any transaction; undefined ends the walk. */
  fetch(position: unknown, call: CallContext): Promise<P | undefined>;
}

/** Where a walk begins. */
export interface WalkStart {
  venue: string;
  position: unknown;
  /** Moves the position in the transaction of a page. Absent: the walk has no position. @throws LeaseLostError */
  advance?(tx: Tx, position: unknown, facts?: PageFacts): Promise<void>;
  /** Moves the position behind a page without news, which has no transaction. @throws LeaseLostError */
  keep?(position: unknown, facts: PageFacts): void;
}

export interface Walked {
  report: { pages: number; records: number; written: number; rejected: number };
  position: PollEnd['position'];
  requests: PollEnd['requests'];
}

/** A walk ends for this tick after this many pages or this long. Half the deadline of the job leaves the last page enough time. */
const MAX_PAGES = 500;
const WALK_MS = JOBS['poll-markets'].deadlineMs / 2;

/** Reads and stores pages, until the venue has no more, the tick is over or the signal fires. */
export async function walkPages<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  source: PageSource<R, W, P>,
  start: WalkStart,
  maxPages = MAX_PAGES,
): Promise<Walked> {
  const { walked, isOver, store } = beginWalk(context, source, start, maxPages);
  const call = { signal: context.signal, now: context.now };
  try {
    for (let hasMore = true; hasMore && !isOver(); ) {
      await source.beforePage?.(walked.position, call);
      const page = await source.fetch(walked.position, call);
      if (!page) break;
      await store(page);
      // The page is stored, so the next walk begins behind it.
      if (page.fault) throw page.fault;
      hasMore = page.more;
    }
  } finally {
    await source.end?.();
  }
  return walked;
}

/** The state of a walk, its limits, and the function that stores its next page. */
export function beginWalk<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  pages: PageStore<R, W, P>,
  { venue, position, advance, keep }: WalkStart,
  maxPages = MAX_PAGES,
) {
  const report = { pages: 0, records: 0, written: 0, rejected: 0 };
  const walked: Walked = { report, position, requests: 'none' };
  const endsAtMs = performance.now() + WALK_MS;
  return {
    walked,
    /** True when no request may begin beside those in flight. */
    isOver: (inFlight = 0) =>
      report.pages + inFlight >= maxPages || performance.now() >= endsAtMs || context.signal.aborted,
    async store(page: P): Promise<void> {
      const { position: before } = walked;
      const { written, rejected } = await storePage(context, pages, page, {
        venue,
        advance: async (tx, isLast) => (isLast ? advance?.(tx, page.position, page) : advance?.(tx, before)),
        ...(keep && { keep: () => keep(page.position, page) }),
      });
      walked.position = page.position;
      if (!page.isIdle) walked.requests = 'sent';
      else if (walked.requests === 'none') walked.requests = 'nothing to request';
      report.pages += 1;
      report.records += recordsOf(page);
      report.written += written;
      report.rejected += rejected;
    },
  };
}

/** The answer to a request for certain outcomes. */
export interface RequestedPage<R> extends OutcomesBatch<R>, Page<R> {}

/** Requests prices or books of outcomes. No outcomes need no request. */
export async function fetchRequested<R>(
  outcomes: readonly WatchedOutcome[],
  fetch: (outcomeIds: readonly string[]) => Promise<Batch<R>>,
): Promise<Omit<RequestedPage<R>, 'position' | 'more'>> {
  const tokenIdOf = new Map(outcomes.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
  if (tokenIdOf.size === 0) return { records: [], rejected: [], tokenIdOf, isIdle: true };
  return { ...(await fetch([...tokenIdOf.keys()]).catch(failedBatch)), tokenIdOf };
}

/** A batch without an answer, which the walk leaves behind: the next tick begins with others. Rethrows other errors. */
export function failedBatch(error: unknown): Batch<never> & Pick<Page<never>, 'isIdle' | 'fault'> {
  if (!(error instanceof VenueError) || isOfHost(error)) throw error;
  return { records: [], rejected: [], isIdle: true, fault: error };
}
