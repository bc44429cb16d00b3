/**
 * Settings both backends share (queues.md 2.9). Every processor is idempotent, so a stalled job is simply run again:
 * BullMQ's own default of one stall per life would fail jobs for good after a second kill.
 */
export const WORKER_SETTINGS = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  maxStalledCount: 1_000,
} as const;

/** Age-based only: on Postgres a count would delete by sub-select at every finish. Seconds. */
export const JOB_RETENTION = {
  removeOnComplete: { age: 300 },
  removeOnFail: { age: 86_400 },
} as const;

/** A queue store that says nothing for so long while it is asked is connected to again. No command of BullMQ blocks for more than 10 s. */
export const SILENCE_MS = 15_000;
