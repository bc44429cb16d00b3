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
