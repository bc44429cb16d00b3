import { asError, OddswireError } from '../../src/domain/values/errors.ts';
import { advancePoll, type PollLease } from '../../src/store/catalog/poll-state.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { type Database, isContentRefused, type Tx } from '../../src/store/db/tx.ts';
import type { Page, PollKind, RejectedRecord } from '../../src/venues/port.ts';

/** What one page came to: told after its commit. */
export interface WrittenPage {
  /** Records that changed something. */
  written: number;
  /** Records that were quarantined while they were written; none when absent. */
  quarantined?: number;
  /** Wake-ups of the next stages. */
  wake(): void;
}

/** The lease was taken over: the process had been frozen, and somebody else polls now. */
export class LeaseLostError extends OddswireError {
  constructor(venue: string, kind: string) {
    super('lease_lost', `the ${kind} poll of ${venue} was taken over`, { retryable: true });
  }
}

/** Where a page goes, and how its records are written. */
interface PageTarget<R> {
  db: Database;
  lease: PollLease;
  kind: PollKind;
  /** Where the walk stood before this page. */
  from: unknown;
  write(tx: Tx, records: readonly R[]): Promise<WrittenPage>;
  /** What the page says as a whole: done once, after its records, in the transaction that moves the position. */
  finish?(tx: Tx): Promise<void>;
}

/**
 * Stores a page and moves the position, in one transaction. When Postgres refuses the content, the page is written in
 * halves that leave the position where it was, until the refused record stands alone, which is quarantined; then the
 * position moves. Dying in between repeats the page: every write of a record is idempotent.
 * @throws LeaseLostError when the lease is no longer ours: nothing was written then.
 */
export async function writePage<R>(
  target: PageTarget<R>,
  page: Page<R>,
): Promise<{ parts: WrittenPage[]; refused: RejectedRecord[] }> {
  try {
    return { parts: [await writeWhole(target, page.records, page.rejected, page)], refused: [] };
  } catch (error) {
    if (!isContentRefused(error) || page.records.length === 0) throw error;
  }
  const parts: WrittenPage[] = [];
  const refused: RejectedRecord[] = [];
  await writeHalves(target, page.records, parts, refused);
  parts.push(await writeWhole(target, [], [...page.rejected, ...refused], page));
  return { parts, refused };
}

function writeWhole<R>(
  { db, lease, kind, from, write, finish }: PageTarget<R>,
  records: readonly R[],
  rejected: readonly RejectedRecord[],
  done?: Page<R>,
): Promise<WrittenPage> {
  return db.transaction(async (tx) => {
    if (!(await advancePoll(tx, lease, done ? done.position : from))) throw new LeaseLostError(lease.venue, kind);
    await quarantine(tx, lease.venue, rejected);
    const written = await write(tx, records);
    if (done) await finish?.(tx);
    return written;
  });
}

async function writeHalves<R>(
  target: PageTarget<R>,
  records: readonly R[],
  parts: WrittenPage[],
  refused: RejectedRecord[],
): Promise<void> {
  const middle = Math.ceil(records.length / 2);
  for (const half of [records.slice(0, middle), records.slice(middle)]) {
    if (half.length === 0) continue;
    try {
      parts.push(await writeWhole(target, half, []));
    } catch (error) {
      if (!isContentRefused(error)) throw error;
      const [only] = half;
      if (half.length > 1 || only === undefined) await writeHalves(target, half, parts, refused);
      else refused.push(refusal(target.kind, only, asError(error)));
    }
  }
}

function refusal(kind: PollKind, record: unknown, error: Error): RejectedRecord {
  const { tradeId, marketId, outcomeId } = record as { tradeId?: string; marketId?: string; outcomeId?: string };
  const recordId = tradeId ?? marketId ?? outcomeId;
  const sample = JSON.stringify(record);
  return {
    kind,
    reason: 'refused_by_store',
    detail: error.message,
    sample,
    ...(recordId !== undefined && { recordId }),
  };
}
