/**
 * Settings of both backends. Every processor is idempotent, so a stalled job runs again:
 * with BullMQ's default of one stall per job, a second kill would fail it permanently.
 */
export const WORKER_SETTINGS = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  maxStalledCount: 1_000,
  /** After a connection error. BullMQ's default of 15 s would delay every job of the queue. */
  runRetryDelay: 500,
} as const;

/** What is kept of ended jobs: by age only, seconds, because on Postgres a limit by count would run a sub-select at every finished job. */
export const JOB_RETENTION = {
  removeOnComplete: { age: 300 },
  removeOnFail: { age: 86_400 },
  /** An end that is repeated while the store is away adds its stack each time. */
  stackTraceLimit: 1,
} as const;

/** Reconnects when the queue store does not answer for this long. No command of BullMQ blocks for more than 10 s. */
export const SILENCE_MS = 15_000;
