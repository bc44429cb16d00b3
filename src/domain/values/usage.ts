/** The limited resources of an account, counted per window of time. */
export type UsageKind = 'requests' | 'cold_reads';

/** The usage of an account that one process admitted since its last report. */
export interface UsageEntry {
  kind: UsageKind;
  accountId: bigint;
  /** Epoch milliseconds; the same in every process. */
  windowStartMs: number;
  used: number;
}

/**
 * Adds the usage of this process to the total of all processes. Returns the totals of the windows in the order of the entries; null
 * when a later window has begun. At most one entry per account and kind. @throws when the store is unavailable
 */
export type AddUsage = (entries: readonly UsageEntry[]) => Promise<(number | null)[]>;
