import type { Producer } from '../../src/queues/producer.ts';
import type { IngestDeps } from '../ingest/store-page.ts';

/** The dependencies of the streamer. */
export interface StreamerDeps extends IngestDeps {
  readonly producer: Producer;
  /** Fires when the process is told to stop. */
  readonly stopping: AbortSignal;
}
