/**
 * Database connections of each process, in one place. Beside these a process holds its queue connections (on Postgres: one
 * LISTEN per Worker and six to query with), so one of each process needs about 80 connections: with your own Postgres, `max_connections` of 200 carries two of each.
 */
export const DATABASE_POOL_SIZE = {
  api: 10,
  poller: 8,
  aggregator: 6,
  alerter: 6,
  deliverer: 16,
} as const;

/**
 * How long a statement of each process may go without an answer before the server is asked whether it works at it at all; if not, its
 * connection is given up. A client of the API has left soon after. Behind a pooler, where that cannot be asked: a multiple of it.
 */
export const DATABASE_SILENCE_MS = {
  api: 8_000,
  poller: 30_000,
  aggregator: 30_000,
  alerter: 30_000,
  deliverer: 30_000,
} as const satisfies Record<keyof typeof DATABASE_POOL_SIZE, number>;

/** After so long without a word the network is asked whether an idle connection is still there; the system's default is two hours. */
export const KEEP_ALIVE_DELAY_MS = 10_000;
