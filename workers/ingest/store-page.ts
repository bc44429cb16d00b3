import { asError } from '../../src/domain/values/errors.ts';
import type { Producer } from '../../src/queues/producer.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { isContentRefused, type Tx } from '../../src/store/db/tx.ts';
import { halvesOf } from '../../src/venues/http/parts.ts';
import type { Batch, RecordKind, RejectedRecord } from '../../src/venues/port.ts';
import type { PriceConfirmations } from './price-confirmations.ts';

/** The dependencies of the stores of pages, in a worker and in the streamer. */
export interface IngestDeps extends Pick<ProcessContext, 'config' | 'db' | 'partitions' | 'metrics' | 'log' | 'now'> {
  readonly producer: Pick<Producer, 'wakeStage' | 'wakePublisher'>;
  /** The confirmations of all ticks of the process. Absent: each tick writes its own. */
  readonly confirmations?: PriceConfirmations;
}

/** How pages of one kind of records are stored: pages of a walk, or batches of a feed. `W` is the result of writing records. */
export interface PageStore<R, W, P extends Batch<R> = Batch<R>> {
  kind: RecordKind;
  /** The kind of the stored rows in `ingest_rows_total`, when it is not `kind`. */
  rowKind?: string;
  /**
   * The records that may change something; the others are known to be stored. Absent: all of them. A page without news, rejected records and
   * `finish` has no transaction.
   */
  news?(records: readonly R[], page: P): readonly R[] | Promise<readonly R[]>;
  /** Makes partitions, before the transaction. */
  prepare?(page: P): Promise<void>;
  /**
   * Each statement of `write` is complete, so that a page of records alone has no transaction around it. When a later statement fails, the
   * repeated `write` finds the records of the earlier ones stored, and does not wake for them: their marks wait for the next look.
   */
  commitsEach?: true;
  /** Writes records idempotently, in the transaction that moves the position. */
  write(tx: Tx, records: readonly R[], page: P): Promise<W>;
  /** Writes facts about the page as a whole, once, after its records and in the transaction that moves the position. */
  finish?(tx: Tx, page: P): Promise<void>;
  /**
   * Wakes the next stages after the commit. `parts` has more than one element when Postgres refused the page as a whole, and none when the
   * page had no transaction.
   */
  wake?(parts: readonly W[], page: P): void;
  /** Completes the work of all pages at the end of the walk, also of one that failed. */
  end?(): Promise<void>;
}

/** The result of writing records. */
export interface Written {
  /** Records that changed something. */
  written: number;
}

/** Where a page comes from. */
interface PageOrigin {
  venue: string;
  /**
   * The first statements of each transaction of the page: they move the position of a walk. `isLast` is false while a part of the page is
   * not stored. Absent: no position. @throws LeaseLostError
   */
  advance?(tx: Tx, isLast: boolean): Promise<void>;
  /** Moves the position behind a page without news, outside any transaction. Absent: every page has a transaction. */
  keep?(): void;
}

/** Stores one page: partitions, transaction, counters, wake-ups. Each of its records counts as written, rejected or unchanged. */
export async function storePage<R, W extends Written, P extends Batch<R>>(
  deps: Pick<IngestDeps, 'db' | 'metrics' | 'producer'>,
  store: PageStore<R, W, P>,
  page: P,
  origin: PageOrigin,
): Promise<{ written: number; rejected: number }> {
  const { metrics } = deps;
  const { kind, rowKind = kind } = store;
  const { venue } = origin;
  let stored: { parts: W[]; rejected: RejectedRecord[] };
  try {
    const news = store.news ? await store.news(page.records, page) : page.records;
    if (origin.keep && store.news && !store.finish && news.length + page.rejected.length === 0) {
      origin.keep();
      stored = { parts: [], rejected: [] };
    } else {
      await store.prepare?.(page);
      stored = await writePage(deps, store, { page, news }, origin);
    }
  } catch (error) {
    // The next poll receives the page again: without this, its records would count as received twice and as stored once.
    metrics.skippedRecords.inc({ venue, kind, reason: 'not_stored' }, recordsOf(page) + page.rejected.length);
    throw error;
  }
  const { parts, rejected: rejectedByStore } = stored;
  const written = parts.reduce((sum, part) => sum + part.written, 0);
  const rejected = [...page.rejected, ...rejectedByStore];
  metrics.ingestedRows.inc({ venue, kind: rowKind }, written);
  metrics.duplicateRecords.inc({ venue, kind }, Math.max(0, recordsOf(page) - written - rejectedByStore.length));
  for (const { reason } of rejected) metrics.rejectedRecords.inc({ venue, kind, reason });
  store.wake?.(parts, page);
  if (written > 0) deps.producer.wakePublisher();
  return { written, rejected: rejected.length };
}

/** The accepted records of a page, with those that are known to be stored. */
export function recordsOf({ records, known = 0 }: Batch<unknown>): number {
  return records.length + known;
}

/**
 * Writes a page and moves the position, in one transaction. When Postgres refuses the content, halves of the page are written with
 * the position unchanged, until the rejected record stands alone; the last transaction quarantines it and moves the position.
 * A process that dies between these transactions repeats the page, and every write of a record is idempotent.
 */
async function writePage<R, W, P extends Batch<R>>(
  { db }: Pick<IngestDeps, 'db'>,
  { kind, write, finish, commitsEach }: PageStore<R, W, P>,
  { page, news }: { page: P; news: readonly R[] },
  { venue, advance }: PageOrigin,
): Promise<{ parts: W[]; rejected: RejectedRecord[] }> {
  const parts: W[] = [];
  const rejected: RejectedRecord[] = [];
  const transact = (records: readonly R[], isLast: boolean): Promise<W> => {
    const refused = isLast ? [...page.rejected, ...rejected] : [];
    if (commitsEach && !advance && !finish && refused.length === 0) {
      return db.retrying(() => write(db, records, page));
    }
    return db.transaction(async (tx) => {
      await advance?.(tx, isLast);
      await quarantine(tx, venue, refused);
      const part = await write(tx, records, page);
      if (isLast) await finish?.(tx, page);
      return part;
    });
  };
  try {
    return { parts: [await transact(news, true)], rejected };
  } catch (error) {
    if (!isContentRefused(error) || news.length === 0) throw error;
  }
  const pending = halvesOf(news);
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
