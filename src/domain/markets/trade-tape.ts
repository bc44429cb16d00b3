/** A round over the feeds of Limitless takes up to two minutes; the tapes of the other venues are read to their end every few seconds. */
const BEHIND_AT_LEAST_MS = 180_000;
const BEHIND_INTERVALS = 5;

/** The time after which a tape that was not read to its end again is behind. `pollMs`: the interval of its polls. */
export function tapeToleranceMs(pollMs = 0): number {
  return Math.max(BEHIND_AT_LEAST_MS, BEHIND_INTERVALS * pollMs);
}

/** Whether newer trades may be missing, because the tape was last read without a gap long before `nowMs`, or never. */
export function isTapeBehind(caughtUpMs: number | null, nowMs: number, pollMs?: number): boolean {
  return caughtUpMs === null || nowMs - caughtUpMs > tapeToleranceMs(pollMs);
}
