import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks, failureFields } from '../../src/observe/failures.ts';
import { processLag } from '../../src/observe/process-lag.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { type Lease, LeaseLostError, type Leases } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { JobContext, JobReport } from '../process/define.ts';
import type { HeldPoll } from './poll-leases.ts';
import type { Walked, WalkStart } from './walk.ts';

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
async function failPoll({ pollLeases: leases, stopping }: JobContext, poll: HeldPoll, error: Error): Promise<number> {
  if (!(error instanceof VenueError) && isDatabaseUnavailable(error)) {
    leases.pause(poll);
    throw error;
  }
  if (!stopping.aborted && !isOwnFault(error)) return leases.fail(poll, error);
  // An own fault that repeats keeps the poll from its work, so the state shows its reason.
  await leases.abandon(poll, stopping.aborted ? null : error.message);
  return 0;
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

/**
 * Runs `work` under a lease that a heartbeat renews. `isCharged`: whether an error counts as a failure in a row. When the database is
 * unavailable this rejects, and the lease ends by itself.
 */
export async function underLease<L extends Lease, T>(
  { db, log, stopping }: JobContext,
  leases: Leases<L>,
  lease: L,
  work: () => Promise<T>,
  isCharged: (error: Error) => boolean,
): Promise<{ result: T } | { error: Error; failures: number }> {
  const renew = () => leases.renew(db, lease).catch((error: unknown) => log.warn({ err: error }, 'lease not renewed'));
  const heartbeat = setInterval(renew, (leases.seconds * 1000) / 3);
  try {
    const result = await work();
    await leases.release(db, lease, null);
    return { result };
  } catch (thrown) {
    const error = asError(thrown);
    if (!(error instanceof VenueError) && isDatabaseUnavailable(error)) throw error;
    if (!stopping.aborted && isCharged(error))
      return { error, failures: await leases.release(db, lease, error.message) };
    await leases.abandon(db, lease);
    return { error, failures: 0 };
  } finally {
    clearInterval(heartbeat);
  }
}
