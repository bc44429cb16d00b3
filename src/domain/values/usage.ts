/** What an account uses up within a window of time. */
export type UsageKind = 'requests' | 'cold_reads';

/** What one process admitted of an account since it last told the others. */
export interface UsageEntry {
  kind: UsageKind;
  accountId: bigint;
  /** Epoch milliseconds; the same in every process. */
  windowStartMs: number;
  used: number;
}

/**
 * Adds what this process admitted to what all processes did, and gives the totals of those windows in the order of the
 * entries; null where a later window has begun. One account and kind at most once. @throws when the store is away.
 */
export type AddUsage = (entries: readonly UsageEntry[]) => Promise<(number | null)[]>;
