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

/** The part of DATABASE_POOL_SIZE that a process opens, by the value of DATABASE_POOLS. */
const SHARE = { full: 1, half: 1 / 2, quarter: 1 / 4 } as const;

export type DatabasePools = keyof typeof SHARE;
export const DATABASE_POOLS = Object.keys(SHARE) as [DatabasePools, ...DatabasePools[]];

/** A day for the archive, the upkeep of the storage and a backtest each hold one for minutes, beside candles and snapshots. */
const FEWEST: Partial<Record<keyof typeof DATABASE_POOL_SIZE, number>> = { aggregator: 4 };

/** The connections that a process opens to the database at most. */
export function poolSizeOf(name: keyof typeof DATABASE_POOL_SIZE, pools: DatabasePools = 'full'): number {
  return Math.max(FEWEST[name] ?? 1, Math.ceil(DATABASE_POOL_SIZE[name] * SHARE[pools]));
}

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
