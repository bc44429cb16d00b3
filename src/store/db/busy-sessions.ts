import pg from 'pg';
import { within } from '../../domain/values/within.ts';
import type { BusySessions } from '../../observe/silent-connections.ts';
import { sqlState } from './tx.ts';

const ANSWER_MS = 3_000;
const FAREWELL_MS = 1_000;

/** A session that waits for its client is not at work: either half of what it was told is lost, or what it answered is. */
const FIND_BUSY = `SELECT pid FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'`;

/**
 * Those of these sessions (`pg_stat_activity.pid`) that run a statement, or wait for a lock: none when nobody answers in 3 s,
 * `unknown` when the server answers and refuses, as one does that has too many clients.
 */
export async function findBusySessions(databaseUrl: string, pids: readonly number[]): Promise<BusySessions> {
  // Not of a pool: what is in there may be just what is silent.
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'oddswire-silence',
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(FIND_BUSY, [pids]);
    return new Set(rows.map(({ pid }) => pid));
  } catch (error) {
    return sqlState(error) === undefined ? new Set() : 'unknown';
  } finally {
    await within(FAREWELL_MS, client.end(), () => undefined).catch(() => undefined);
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }
}
