import pg from 'pg';
import type { BusySessions } from '../../observe/silent-connections.ts';
import { endSession } from './kept-session.ts';
import { sqlState } from './tx.ts';

const ANSWER_MS = 3_000;

/** Excludes a session that waits for its client: either its statement or its answer was lost. */
const FIND_BUSY = `SELECT pid FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'`;

/**
 * The sessions among these (`pg_stat_activity.pid`) that run a statement or wait for a lock: empty when the server does not answer in 3 s,
 * `unknown` when it answers with a refusal, for example because it has too many clients.
 */
export async function findBusySessions(databaseUrl: string, pids: readonly number[]): Promise<BusySessions> {
  // A new connection, because a pool may hand out one of the silent connections.
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
    await endSession(client);
  }
}
