/** The limited resources of an account. */
export type AccountUsage = 'requests' | 'cold_reads';
/** The limited failures of a source, such as an address. */
export type FailureUsage = 'failed_keys' | 'failed_logins';
/** The kinds of usage, counted per window of time. */
export type UsageKind = AccountUsage | FailureUsage;

/** The usage of an account, or the failures of a source, that one process counted since its last report. */
export interface UsageEntry {
  kind: UsageKind;
  /** The id of the account, or a hash of the source. */
  subject: bigint;
  /** Epoch milliseconds; the same in every process. */
  windowStartMs: number;
  used: number;
}

/**
 * Adds the usage of this process to the total of all processes. Returns the totals of the windows in the order of the entries; null
 * when a later window has begun. At most one entry per subject and kind. @throws when the store is unavailable
 */
export type AddUsage = (entries: readonly UsageEntry[]) => Promise<(number | null)[]>;
