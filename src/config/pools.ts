/**
 * Database connections of each process. A worker process has another one for its presence, an aggregator one for the publisher, and each
 * process has its queue connections (on Postgres: one LISTEN per Worker and six for queries), so one of each process needs about 100
 * connections: `max_connections` of 200 is enough for two of each.
 */
export const DATABASE_POOL_SIZE = {
  api: 10,
  poller: 8,
  aggregator: 6,
  alerter: 6,
  deliverer: 16,
  // Per venue one write of quotes and one of books, beside the leases and the choice of markets.
  streamer: 10,
} as const;

/**
 * How long a statement of each process may wait for an answer before the process asks the server whether it works on the statement;
 * if not, the connection is closed. A client of the API disconnects soon after. Behind a pooler, which cannot answer that question,
 * the limit is a multiple of it.
 */
export const DATABASE_SILENCE_MS = {
  api: 8_000,
  poller: 30_000,
  aggregator: 30_000,
  alerter: 30_000,
  deliverer: 30_000,
  streamer: 30_000,
} as const satisfies Record<keyof typeof DATABASE_POOL_SIZE, number>;

/** After this idle time TCP probes whether a connection is still alive; the default of the system is two hours. */
export const KEEP_ALIVE_DELAY_MS = 10_000;
