import { asError } from '../../src/domain/values/errors.ts';
import { newToken } from '../../src/domain/values/ids.ts';
import { shouldLog } from '../../src/observe/failure-streaks.ts';
import { JOBS } from '../../src/queues/jobs.ts';
import { acquirePollLease, advancePoll, POLL_LEASES } from '../../src/store/catalog/poll-state.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { type Lease, LeaseLostError, type Leases } from '../../src/store/db/leases.ts';
import { isContentRefused, isDatabaseUnavailable, type Tx } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { CallContext, Page, RecordKind, RejectedRecord } from '../../src/venues/port.ts';
import type { JobContext, JobReport } from '../process/define.ts';

type Advance = (tx: Tx, position: unknown) => Promise<void>;

/** How pages of one kind of records are stored. `W` is the result of writing records. */
export interface PageStore<R, W, P extends Page<R> = Page<R>> {
  kind: RecordKind;
  /** The kind of the stored rows in `ingest_rows_total`, when it is not `kind`. */
  rowKind?: string;
  /** Makes partitions, before the transaction. */
  prepare?(page: P): Promise<void>;
  /** Writes records idempotently, in the transaction that moves the position. */
  write(tx: Tx, records: readonly R[], page: P): Promise<W>;
  /** Writes facts about the page as a whole, once, after its records and in the transaction that moves the position. */
  finish?(tx: Tx, page: P): Promise<void>;
  /** Wakes the next stages after the commit. `parts` has more than one element when Postgres refused the page as a whole. */
  wake(parts: readonly W[], page: P): void;
}

/** Pages that are read one after the other, and how they are stored. */
export interface PageSource<R, W, P extends Page<R> = Page<R>> extends PageStore<R, W, P> {
  /** Other work under the lease, before each page. */
  beforePage?(position: unknown, call: CallContext): Promise<void>;
  /** The next page after `position`, read outside any transaction; undefined ends the walk. */
  fetch(position: unknown, call: CallContext): Promise<P | undefined>;
}

/** The result of writing records. */
interface Written {
  /** Records that changed something. */
  written: number;
}

/** A walk over the pages of a venue. */
export interface WalkState {
  venue: string;
  position: unknown;
  /** Moves the position in the transaction of a page. Absent: the walk has no position. @throws LeaseLostError */
  advance?: Advance;
}

/** A walk ends for this tick after this many pages or this long. Half the deadline of the job leaves the last page enough time. */
const MAX_PAGES = 500;
const WALK_MS = JOBS['poll-markets'].deadlineMs / 2;

/**
 * Runs one poll of a venue under its lease. Each page is one transaction, so a poll that dies anywhere resumes after the last
 * committed page. Without the lease it does nothing: a slow poll does not pile up.
 */
export async function runPoll<A extends object, R, W extends Written, P extends Page<R>>(
  context: JobContext,
  { venue, lease: kind, adapters }: { venue: string; lease: string; adapters: ReadonlyMap<string, A> },
  open: (adapter: A, advance: Advance) => PageSource<R, W, P>,
): Promise<JobReport> {
  const adapter = adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const lease = await acquirePollLease(context.db, venue, kind, newToken());
  if (!lease) return { skipped: 'already running' };
  const advance: Advance = (tx, position) => advancePoll(tx, lease, position);
  const end = await underLease(context, POLL_LEASES, lease, () =>
    walkPages(context, open(adapter, advance), { venue, position: lease.position, advance }),
  );
  if ('result' in end) return end.result.report;
  const { error, failures } = end;
  const isExpected = error instanceof VenueError || error instanceof LeaseLostError || context.stopping.aborted;
  if (!isExpected) {
    // The error may be a partition that was dropped after this process had seen it.
    context.partitions.forget();
    throw error;
  }
  // An outage of a venue is a state that venue health shows, so the job does not fail.
  if (shouldLog(failures)) context.log.warn({ venue, kind, failures, err: error }, 'poll failed');
  return { failed: error.message };
}

/**
 * Runs `work` under a lease that a heartbeat renews, and releases the lease. An error that `isCharged` accepts counts as a failure
 * in a row. When the database is unavailable this rejects, and the lease ends by itself.
 */
export async function underLease<L extends Lease, T>(
  { db, log, stopping }: JobContext,
  leases: Leases<L>,
  lease: L,
  work: () => Promise<T>,
  isCharged: (error: Error) => boolean = () => true,
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

/** Reads and stores page after page, until the venue has no more, the tick is over or the signal fires. */
export async function walkPages<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  source: PageSource<R, W, P>,
  start: WalkState,
  maxPages = MAX_PAGES,
) {
  const report = { pages: 0, records: 0, written: 0, rejected: 0 };
  const call = { signal: context.signal, now: context.now };
  const endsAtMs = performance.now() + WALK_MS;
  const state = { ...start };
  while (report.pages < maxPages && performance.now() < endsAtMs && !context.signal.aborted) {
    await source.beforePage?.(state.position, call);
    const page = await source.fetch(state.position, call);
    if (!page) break;
    const { written, rejected } = await storePage(context, source, page, state);
    state.position = page.position;
    report.pages += 1;
    report.records += page.records.length;
    report.written += written;
    report.rejected += rejected;
    if (!page.more) break;
  }
  return { report, position: state.position };
}

/** Stores one page: partitions, transaction, counters, wake-ups. Each of its records counts as written, rejected or unchanged. */
export async function storePage<R, W extends Written, P extends Page<R>>(
  context: Pick<JobContext, 'db' | 'metrics'>,
  store: PageStore<R, W, P>,
  page: P,
  from: WalkState,
): Promise<{ written: number; rejected: number }> {
  const { metrics } = context;
  const { kind, rowKind = kind } = store;
  const { venue } = from;
  let stored: { parts: W[]; refused: RejectedRecord[] };
  try {
    await store.prepare?.(page);
    stored = await writePage(context, store, page, from);
  } catch (error) {
    // The next poll receives the page again: without this, its records would count as received twice and as stored once.
    metrics.skippedRecords.inc({ venue, kind, reason: 'not_stored' }, page.records.length + page.rejected.length);
    throw error;
  }
  const { parts, refused } = stored;
  const written = parts.reduce((sum, part) => sum + part.written, 0);
  const rejected = [...page.rejected, ...refused];
  metrics.ingestedRows.inc({ venue, kind: rowKind }, written);
  metrics.duplicateRecords.inc({ venue, kind }, Math.max(0, page.records.length - written - refused.length));
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind, reason });
  store.wake(parts, page);
  return { written, rejected: rejected.length };
}

/**
 * Writes a page and moves the position, in one transaction. When Postgres refuses the content, halves of the page are written with
 * the position unchanged, until the refused record stands alone; the last transaction quarantines it and moves the position.
 * A process that dies between these transactions repeats the page, and every write of a record is idempotent.
 */
export async function writePage<R, W, P extends Page<R>>(
  { db }: Pick<JobContext, 'db'>,
  { kind, write, finish }: PageStore<R, W, P>,
  page: P,
  { venue, position, advance }: WalkState,
): Promise<{ parts: W[]; refused: RejectedRecord[] }> {
  const parts: W[] = [];
  const refused: RejectedRecord[] = [];
  const transact = (records: readonly R[], isLast: boolean): Promise<W> =>
    db.transaction(async (tx) => {
      await advance?.(tx, isLast ? page.position : position);
      if (isLast) await quarantine(tx, venue, [...page.rejected, ...refused]);
      const part = await write(tx, records, page);
      if (isLast) await finish?.(tx, page);
      return part;
    });
  try {
    return { parts: [await transact(page.records, true)], refused };
  } catch (error) {
    if (!isContentRefused(error) || page.records.length === 0) throw error;
  }
  const pending = halvesOf(page.records);
  for (let half = pending.shift(); half !== undefined; half = pending.shift()) {
    try {
      parts.push(await transact(half, false));
    } catch (error) {
      if (!isContentRefused(error)) throw error;
      if (half.length > 1) pending.unshift(...halvesOf(half));
      else refused.push(refusal(kind, half[0], asError(error)));
    }
  }
  parts.push(await transact([], true));
  return { parts, refused };
}

function halvesOf<R>(records: readonly R[]): (readonly R[])[] {
  const middle = Math.ceil(records.length / 2);
  return [records.slice(0, middle), records.slice(middle)].filter((half) => half.length > 0);
}

function refusal(kind: RecordKind, record: unknown, error: Error): RejectedRecord {
  const ids = record as { tradeId?: string; transactionId?: string; marketId?: string; outcomeId?: string };
  const recordId = ids.tradeId ?? ids.transactionId ?? ids.marketId ?? ids.outcomeId;
  const sample = JSON.stringify(record);
  return {
    kind,
    reason: 'refused_by_store',
    detail: error.message,
    sample,
    ...(recordId !== undefined && { recordId }),
  };
}
