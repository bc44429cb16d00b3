import { asError } from '../../src/domain/values/errors.ts';
import { failureFields } from '../../src/observe/failure-fields.ts';
import { FailureStreaks } from '../../src/observe/failure-streaks.ts';
import { processLag } from '../../src/observe/process-lag.ts';
import { acquirePollLease, advancePoll, POLL_LEASES, restPoll } from '../../src/store/catalog/poll-state.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { type Lease, LeaseLostError, type Leases, newLeaseToken } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { JobContext, JobReport } from '../process/define.ts';
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
 * Runs one poll of a venue under its lease. Each page is one transaction, so a poll that dies anywhere resumes after the last
 * committed page. Without the lease it does nothing: a slow poll does not pile up.
 */
export async function runPoll<A extends object>(
  context: JobContext,
  { venue, lease: kind, adapters }: Poll<A>,
  walk: (adapter: A, start: Required<WalkStart>) => Promise<Walked>,
): Promise<JobReport> {
  const adapter = adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const lease = await acquirePollLease(context.db, venue, kind, newLeaseToken(context.presence.key));
  if (!lease) return { skipped: 'already running' };
  const advance: WalkStart['advance'] = (tx, position, isIdle) => advancePoll(tx, lease, position, isIdle);
  const lag = processLag().begin();
  const work = async () => {
    try {
      return await walk(adapter, { venue, position: lease.position, advance });
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
  const end = await underLease(context, POLL_LEASES, lease, work, { endLease, ...uncharged });
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
