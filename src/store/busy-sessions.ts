import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const ANSWER_MS = 2_000;

/** Those of these sessions (`pg_stat_activity.pid`) that run a statement, or wait for a lock; none when the server does not say. */
export async function findBusySessions(databaseUrl: string, pids: readonly number[]): Promise<ReadonlySet<number>> {
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
    const { rows } = await client.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND state = 'active'`,
      [pids],
    );
    return new Set(rows.map(({ pid }) => pid));
  } catch {
    // Who does not answer here either is as silent as its sessions.
    return new Set();
  } finally {
    await Promise.race([client.end().catch(() => undefined), delay(ANSWER_MS, undefined, { ref: false })]);
  }
}
