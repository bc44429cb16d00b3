import type { Processor, Queue, Worker } from 'bullmq';
import type { AddUsage } from '../domain/values/usage.ts';
import type { Logger } from '../observe/logger.ts';
import type { BusySessions } from '../observe/silent-connections.ts';

/** BullMQ on one of its two stores. */
export interface QueueBackend {
  readonly kind: 'postgres' | 'redis';
  /**
   * Prepares the queue store. Call inside the boot lock, before anything is constructed.
   * @throws OddswireError `other_schema` when the store needs a migration and this role must not migrate
   */
  migrate(): Promise<void>;
  /** Re-creates a dropped queue store; returns whether it was missing. Cheap otherwise. @throws as `migrate` */
  restore(): Promise<boolean>;
  /** Rejects when the queue store does not answer, with the error of its last connection where there is one. */
  ping(): Promise<void>;
  /** Use of the connection pool, if the store has one. */
  poolUse?(): { open: number; idle: number; waiting: number; limit: number };
  /** Counts the usage of accounts for all processes. Present when the queue store counts faster than the database. */
  addUsage?: AddUsage;
  queue(name: string): Queue;
  /** The lock tokens of the active jobs of a queue, by job id: the id of the worker, a colon and a number. */
  locks(queue: Queue): Promise<ReadonlyMap<string, string>>;
  worker(name: string, processor: Processor, concurrency: number): Worker;
  /** Closes connections. Workers and queues must be closed before. */
  close(): Promise<void>;
}

export interface QueueBackendOptions {
  databaseUrl: string;
  redisUrl?: string;
  prefix: string;
  /** Workers that this process starts: each holds a LISTEN connection on Postgres. */
  workers: number;
  /** Fewer connections for queries, for one process of six. */
  hasFewConnections?: boolean;
  log: Logger;
  /** Whether the role of `databaseUrl` may migrate the schema of queues in Postgres. Default: it may. */
  mayMigrate?: boolean;
  /** Queues in Postgres: the sessions that the server is working for. Absent: only TCP detects a silent server. */
  findBusy?: (sessions: readonly number[]) => Promise<BusySessions>;
  /**
   * Queues in Postgres: whether an error says that the server does not answer. The end of a job is then repeated until it does. Absent: only
   * after a refused connection, and another end waits for the lock of its job.
   */
  isUnavailable?: (error: unknown) => boolean;
  /** Fires when the process stops. */
  stopping?: AbortSignal;
}

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
