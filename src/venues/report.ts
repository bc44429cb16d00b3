import type { VenueObserver } from './observer.ts';
import type { RecordKind } from './port.ts';

/** Enough to recognise a value by; what a venue sends may be of any length. */
const MAX_VALUE_LENGTH = 100;

/** What an adapter tells of a walk beside its records, with its own name on it. */
interface Report {
  /** States and forms that are not known and were mapped to the nearest safe ones. */
  unknowns(values: readonly { field: string; value: string }[]): void;
  /** A walk that could not see everything it should have; undefined when it did. */
  truncated(kind: RecordKind, detail: string | undefined): void;
  /** Sound records that are not stored: one reason each. */
  skipped(kind: RecordKind, reasons: readonly string[]): void;
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
  };
}
