import type { VenueObserver } from './observer.ts';
import type { ParsedBatch } from './parsed-batch.ts';
import type { Batch, RecordKind } from './port.ts';

/** Enough to recognise a value. The values of a venue may have any length. */
const MAX_VALUE_LENGTH = 100;

/** The observations of an adapter beside its records, under its venue's name. */
export interface Report {
  /**
   * Counts an answer: so many raw records, and the batch that they made, with its unknown values and its skips. Where one raw record makes
   * several records (a market with the prices of both outcomes), it counts once for each, and a rejected or skipped one counts once. The
   * count does not come from the batch's records, so a lost record shows as a difference. Returns the batch without the counted facts.
   */
  counted<B extends Countable>(
    kind: RecordKind,
    rows: number,
    batch: B,
    recordsPerRow?: number,
  ): Omit<B, 'unknowns' | 'skipped'>;
  /** The batch with the records of these outcomes only; the others are counted as skipped. */
  requested<R extends { outcomeId: string }>(
    kind: RecordKind,
    batch: Batch<R>,
    outcomeIds: readonly string[],
  ): Batch<R>;
  /** A walk that could not see everything it should have; undefined when it did. */
  truncated(kind: RecordKind, detail: string | undefined): void;
}

type Countable = Pick<Batch<unknown>, 'rejected'> & Partial<Pick<ParsedBatch<unknown>, 'unknowns' | 'skipped'>>;

export function createReport(venue: string, observer: VenueObserver | undefined): Report {
  function countSkipped(kind: RecordKind, reasons: readonly string[]): void {
    const counts = new Map<string, number>();
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    for (const [reason, count] of counts) observer?.onSkipped?.({ venue, kind, reason, count });
  }

  return {
    counted(kind, rows, { unknowns = [], skipped = [], ...batch }, recordsPerRow = 1) {
      for (const { field, value } of unknowns) {
        observer?.onUnknown?.({ venue, field, value: value.slice(0, MAX_VALUE_LENGTH) });
      }
      const accepted = rows - batch.rejected.length - skipped.length;
      const count = rows + (recordsPerRow - 1) * accepted;
      if (count > 0) observer?.onReceived?.({ venue, kind, count });
      countSkipped(kind, skipped);
      return batch;
    },
    requested(kind, batch, outcomeIds) {
      const wanted = new Set(outcomeIds);
      const records = batch.records.filter(({ outcomeId }) => wanted.has(outcomeId));
      countSkipped(kind, Array(batch.records.length - records.length).fill('not_requested'));
      return { ...batch, records };
    },
    truncated(kind, detail) {
      if (detail !== undefined) observer?.onTruncated?.({ venue, kind, detail });
    },
  };
}
