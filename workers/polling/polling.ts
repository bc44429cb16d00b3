import { asError } from '../../src/domain/values/errors.ts';
import { newToken } from '../../src/domain/values/ids.ts';
import { shouldLog } from '../../src/observe/failure-streaks.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import {
  abandonPollLease,
  acquirePollLease,
  POLL_LEASE_SECONDS,
  type PollLease,
  releasePollLease,
  renewPollLease,
} from '../../src/store/catalog/poll-state.ts';
import { isDatabaseUnavailable, type Tx } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type {
  Batch,
  CallContext,
  Page,
  PollKind,
  RecordKind,
  RejectedRecord,
  VenueAdapter,
} from '../../src/venues/port.ts';
import type { JobContext, JobReport } from '../process/define.ts';
import { LeaseLostError, type WrittenPage, writePage } from './page-writer.ts';

/** Where a walk stands, and what it works with. */
export interface Walk<A = VenueAdapter> {
  adapter: A;
  lease: PollLease;
  position: unknown;
  call: CallContext;
}

interface Poll<R, P extends Page<R> = Page<R>, A = VenueAdapter> {
  venue: string;
  /** What the records are. */
  kind: PollKind;
  /** The lease it takes, when that is not the kind's own: polls of different leases run at once. */
  leaseKind?: string;
  /** The next page after `position`. Runs outside any transaction. */
  fetch(adapter: A, position: unknown, call: CallContext): Promise<P>;
  /** Partitions and the like, before the transaction. */
  prepare?(records: readonly R[]): Promise<void>;
  /** Writes the page, in the transaction that moves the position. */
  write(tx: Tx, records: readonly R[], adapter: A, page: P): Promise<WrittenPage>;
  /** What the page says as a whole, once, behind its records: in the transaction that moves the position. */
  finish?(tx: Tx, page: P): Promise<void>;
  /** What else is to be done under the lease, before each page. */
  beforePage?(walk: Walk<A>): Promise<void>;
}

/** A walk makes room for the next tick after so many pages or this long: half the job's deadline, so that no page is cut off. */
const MAX_PAGES = 500;
const WALK_MS = JOBS['poll-markets'].deadlineMs / 2;

/**
 * One poll: take the lease, then page by page fetch, write and advance, until the venue has no more or the signal fires.
 * Every page is one transaction, so dying anywhere resumes at the last page that was committed. Without the lease there is
 * nothing to do: another poll of this kind is under way, and a slow one does not pile up.
 */
export function runPoll<R, P extends Page<R> = Page<R>>(context: JobContext, poll: Poll<R, P>): Promise<JobReport> {
  return runPollOf(context, context.adapters, poll);
}

/** The same with adapters of another kind than markets. */
export async function runPollOf<A extends object, R, P extends Page<R> = Page<R>>(
  context: JobContext,
  adapters: ReadonlyMap<string, A>,
  poll: Poll<R, P, A>,
): Promise<JobReport> {
  const { venue, kind, leaseKind = kind } = poll;
  const adapter = adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const lease = await acquirePollLease(context.db, venue, leaseKind, newToken());
  if (!lease) return { skipped: 'under way' };
  const heartbeat = setInterval(
    () => {
      renewPollLease(context.db, lease).catch((error: unknown) =>
        context.log.warn({ err: error }, 'lease not renewed'),
      );
    },
    (POLL_LEASE_SECONDS * 1000) / 3,
  );
  try {
    const report = await walk(context, poll, adapter, lease);
    await releasePollLease(context.db, lease, null);
    return report;
  } catch (error) {
    await endFailedPoll(context, lease, error);
    return { failed: asError(error).message };
  } finally {
    clearInterval(heartbeat);
  }
}

async function walk<A, R, P extends Page<R>>(
  context: JobContext,
  poll: Poll<R, P, A>,
  adapter: A,
  lease: PollLease,
): Promise<JobReport> {
  const { venue, kind } = poll;
  const report = { pages: 0, records: 0, written: 0, rejected: 0 };
  let position = lease.position;
  const enoughAtMs = performance.now() + WALK_MS;
  while (report.pages < MAX_PAGES && performance.now() < enoughAtMs && !context.signal.aborted) {
    const call = { signal: context.signal, now: context.now };
    await poll.beforePage?.({ adapter, lease, position, call });
    const page = await poll.fetch(adapter, position, call);
    const write = (tx: Tx, records: readonly R[]) => poll.write(tx, records, adapter, page);
    const finish = async (tx: Tx) => poll.finish?.(tx, page);
    const target = { db: context.db, lease, kind, from: position, write, finish };
    const { parts, refused } = await countUnstored(context, { venue, kind, page }, async () => {
      await poll.prepare?.(page.records);
      return writePage(target, page);
    });
    for (const part of parts) part.wake();
    const { written, rejected } = countPage(context, { venue, kind, page, parts, refused });
    position = page.position;
    report.pages += 1;
    report.records += page.records.length;
    report.written += written;
    report.rejected += rejected.length;
    if (!page.more) break;
  }
  return report;
}

interface CountedPage {
  venue: string;
  kind: RecordKind;
  page: Batch<unknown>;
}

/** Counts what one page came to: each of its records is written, rejected, or changed nothing. */
export function countPage(
  { metrics }: Pick<JobContext, 'metrics'>,
  counted: CountedPage & { parts: readonly Pick<WrittenPage, 'written' | 'quarantined'>[]; refused: RejectedRecord[] },
): { written: number; rejected: readonly RejectedRecord[] } {
  const { venue, kind, page, parts, refused } = counted;
  const written = parts.reduce((sum, part) => sum + part.written, 0);
  const quarantined = parts.reduce((sum, part) => sum + (part.quarantined ?? 0), refused.length);
  const rejected = [...page.rejected, ...refused];
  metrics.ingestedRows.inc({ venue, kind }, written);
  metrics.duplicateRecords.inc({ venue, kind }, Math.max(0, page.records.length - written - quarantined));
  for (const record of rejected) metrics.rejectedRecords.inc({ venue, kind, reason: record.reason });
  return { written, rejected };
}

/**
 * Runs `store`. When it throws, the page is received again, so its records count as skipped (`not_stored`): otherwise they would
 * be received twice and counted once.
 */
export async function countUnstored<T>(
  { metrics }: Pick<JobContext, 'metrics'>,
  { venue, kind, page }: CountedPage,
  store: () => Promise<T>,
): Promise<T> {
  try {
    return await store();
  } catch (error) {
    const lost = page.records.length + page.rejected.length;
    if (lost > 0) metrics.skippedRecords.inc({ venue, kind, reason: 'not_stored' }, lost);
    throw error;
  }
}

/** A venue that is down is a state, shown by venue health, not a failed job for each tick: the log says it now and then. */
async function endFailedPoll(context: JobContext, lease: PollLease, thrown: unknown): Promise<void> {
  const error = asError(thrown);
  if (!(thrown instanceof VenueError) && isDatabaseUnavailable(thrown)) throw error;
  if (context.stopping.aborted) return abandonPollLease(context.db, lease);
  const failures = await releasePollLease(context.db, lease, error.message.slice(0, 500));
  if (!(thrown instanceof VenueError) && !(thrown instanceof LeaseLostError)) {
    context.partitions.forget();
    throw error;
  }
  const { venue, kind } = lease;
  if (shouldLog(failures)) context.log.warn({ venue, kind, failures, err: error }, 'poll failed');
}
