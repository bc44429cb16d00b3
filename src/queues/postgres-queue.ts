import { setTimeout as delay } from 'node:timers/promises';
import { type BackendFactory, PostgresConnection, type PostgresConnectionOptions, PostgresQueueBackend } from 'bullmq';

/** Between two failed fetches of a worker, milliseconds. */
const FAILED_FETCH_PAUSE_MS = 250;

/**
 * Omits BullMQ's check of the schema, because BullMQ keeps a failed check: the worker then repeats it without a pause, and its process
 * stops answering. `migrate` checks the schema before the first queue exists; after that, each statement reports its own failure.
 */
class CheckedConnection extends PostgresConnection {
  override waitUntilReady(): Promise<void> {
    return Promise.resolve();
  }
}

/** Pauses after a failed fetch: BullMQ repeats it at once unless the connection failed. */
class PacedBackend extends PostgresQueueBackend {
  override async moveToActive(...fetch: Parameters<PostgresQueueBackend['moveToActive']>) {
    try {
      return await super.moveToActive(...fetch);
    } catch (error) {
      await delay(FAILED_FETCH_PAUSE_MS, undefined, { ref: false });
      throw error;
    }
  }
}

/** BullMQ's `createPostgresBackend` with both classes above. Workers keep the name of their LISTEN connection. */
export const postgresQueueFactory: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection = false } = {},
) => {
  const listenName = withBlockingConnection ? name : undefined;
  return new PacedBackend(new CheckedConnection(options.connection), name, options, true, listenName);
};
