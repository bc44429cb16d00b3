import type { Processor, Queue, Worker } from 'bullmq';
import type { AddUsage } from '../domain/values/usage.ts';
import type { Logger } from '../observe/logger.ts';
import type { BusySessions } from '../observe/silent-connections.ts';

/** BullMQ on one of its two stores. */
export interface QueueBackend {
  readonly kind: 'postgres' | 'redis';
  /** Makes the queue store ready. Call inside the boot lock, before anything is constructed. */
  migrate(): Promise<void>;
  /** Re-creates the queue store if it was dropped under us; says whether it had to. Cheap when all is well. */
  restore(): Promise<boolean>;
  /** Rejects when the queue store does not answer. */
  ping(): Promise<void>;
  /** Use of the connection pool, where there is one. */
  poolUse?(): { open: number; idle: number; waiting: number; limit: number };
  /** Counts the usage of accounts for all processes. Present where the queue store counts faster than the database. */
  addUsage?: AddUsage;
  queue(name: string): Queue;
  worker(name: string, processor: Processor, concurrency: number): Worker;
  /** Closes connections. Workers and queues must be closed before. */
  close(): Promise<void>;
}

export interface QueueBackendOptions {
  databaseUrl: string;
  redisUrl?: string;
  prefix: string;
  /** Workers this process will start: each holds a LISTEN connection on Postgres. */
  workers: number;
  log: Logger;
  /** Queues in Postgres: which of these sessions the server is working for. Absent: silence is borne as long as TCP bears it. */
  findBusy?: (sessions: readonly number[]) => Promise<BusySessions>;
  /** Fires when the process is told to end. */
  stopping?: AbortSignal;
}
