import type { VenueObserver } from './observer.ts';
import type { RecordKind } from './port.ts';

/** Enough to recognise a value. The values of a venue may have any length. */
const MAX_VALUE_LENGTH = 100;

/** The observations of an adapter beside its records, under its venue's name. */
export interface Report {
  /** States and forms that are not known and were mapped to the nearest safe ones. */
  unknowns(values: readonly { field: string; value: string }[]): void;
  /** A walk that could not see everything it should have; undefined when it did. */
  truncated(kind: RecordKind, detail: string | undefined): void;
  /** Sound records that are not stored, one reason each. */
  skipped(kind: RecordKind, reasons: readonly string[]): void;
  /**
   * So many raw records were received, once their batch is complete; `made` is the batch that they made. Where one raw record
   * makes several records (a market with the prices of both outcomes), it counts once for each, and a rejected or skipped one
   * counts once. The count does not come from the batch's records, so a lost record shows as a difference.
   */
  received(kind: RecordKind, rows: number, made?: Made, recordsPerRow?: number): void;
}

interface Made {
  rejected: readonly unknown[];
  skipped?: readonly unknown[];
}

export function createReport(venue: string, observer: VenueObserver | undefined): Report {
  return {
    unknowns(values) {
      for (const { field, value } of values) {
        observer?.onUnknown?.({ venue, field, value: value.slice(0, MAX_VALUE_LENGTH) });
      }
    },
    truncated(kind, detail) {
      if (detail !== undefined) observer?.onTruncated?.({ venue, kind, detail });
    },
    skipped(kind, reasons) {
      const counts = new Map<string, number>();
      for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
      for (const [reason, count] of counts) observer?.onSkipped?.({ venue, kind, reason, count });
    },
    received(kind, rows, made, recordsPerRow = 1) {
      const accepted = rows - (made?.rejected.length ?? 0) - (made?.skipped?.length ?? 0);
      const count = rows + (recordsPerRow - 1) * accepted;
      if (count > 0) observer?.onReceived?.({ venue, kind, count });
    },
  };
}
