import type { Config } from '../config/config.ts';
import type { LivenessTracker } from '../observe/liveness.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Dependency } from '../observe/probe-server.ts';
import type { QueueBackend } from '../queues/port.ts';
import type { Producer } from '../queues/producer.ts';
import type { Partitions } from '../store/db/partitions.ts';
import type { Presence } from '../store/db/presence.ts';
import type { Database } from '../store/db/tx.ts';
import type { SecretBox } from '../webhooks/secret-box.ts';

/** The parts that processes have in common; see start-process.ts. */
export interface ProcessContext {
  readonly config: Config;
  readonly log: Logger;
  readonly db: Database;
  readonly partitions: Partitions;
  readonly backend: QueueBackend;
  readonly producer: Producer;
  readonly metrics: Metrics;
  readonly secretBox: SecretBox;
  readonly dependencies: readonly Dependency[];
  /** Names this process in its claims, once it is registered. */
  readonly presence: Omit<Presence, 'close'>;
  /** Its reasons for a stall make /health fail. */
  readonly tracker: LivenessTracker;
  /** Fires when the process is told to stop. */
  readonly stopping: AbortSignal;
  /** Epoch milliseconds: by the database's clock, in the API by that of the machine. */
  now(): number;
}
