import { asError } from '../../src/domain/values/errors.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { isContentRefused, type Tx } from '../../src/store/db/tx.ts';
import { halvesOf } from '../../src/venues/http/parts.ts';
import type { Page, RecordKind, RejectedRecord } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';

export type Advance = (tx: Tx, position: unknown, isIdle?: boolean) => Promise<void>;

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
  /** Completes the work of all pages at the end of the walk, also of one that failed. */
  end?(): Promise<void>;
}

/** The result of writing records. */
export interface Written {
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
  let stored: { parts: W[]; rejected: RejectedRecord[] };
  try {
    await store.prepare?.(page);
    stored = await writePage(context, store, page, from);
  } catch (error) {
    // The next poll receives the page again: without this, its records would count as received twice and as stored once.
    metrics.skippedRecords.inc({ venue, kind, reason: 'not_stored' }, page.records.length + page.rejected.length);
    throw error;
  }
  const { parts, rejected: rejectedByStore } = stored;
  const written = parts.reduce((sum, part) => sum + part.written, 0);
  const rejected = [...page.rejected, ...rejectedByStore];
  metrics.ingestedRows.inc({ venue, kind: rowKind }, written);
  metrics.duplicateRecords.inc({ venue, kind }, Math.max(0, page.records.length - written - rejectedByStore.length));
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind, reason });
  store.wake(parts, page);
  return { written, rejected: rejected.length };
}

/**
 * Writes a page and moves the position, in one transaction. When Postgres refuses the content, halves of the page are written with
 * the position unchanged, until the rejected record stands alone; the last transaction quarantines it and moves the position.
 * A process that dies between these transactions repeats the page, and every write of a record is idempotent.
 */
export async function writePage<R, W, P extends Page<R>>(
  { db }: Pick<JobContext, 'db'>,
  { kind, write, finish }: PageStore<R, W, P>,
  page: P,
  { venue, position, advance }: WalkState,
): Promise<{ parts: W[]; rejected: RejectedRecord[] }> {
  const parts: W[] = [];
  const rejected: RejectedRecord[] = [];
  const transact = (records: readonly R[], isLast: boolean): Promise<W> =>
    db.transaction(async (tx) => {
      await advance?.(tx, isLast ? page.position : position, page.isIdle);
      if (isLast) await quarantine(tx, venue, [...page.rejected, ...rejected]);
      const part = await write(tx, records, page);
      if (isLast) await finish?.(tx, page);
      return part;
    });
  try {
    return { parts: [await transact(page.records, true)], rejected };
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
      else rejected.push(toRejected(kind, half[0], asError(error)));
    }
  }
  parts.push(await transact([], true));
  return { parts, rejected };
}

function toRejected(kind: RecordKind, record: unknown, error: Error): RejectedRecord {
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
