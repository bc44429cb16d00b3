import pg from 'pg';
import type { Logger } from '../observe/logger.ts';
import { waitUntilAnswers } from './wait-until.ts';

/**
 * Resolves when the database accepts a query. Everything else is constructed after this, because BullMQ never recovers from a
 * failed first connection.
 * @throws OddswireError `aborted` when the signal fires first
 */
export function waitForDatabase(databaseUrl: string, log: Logger, signal: AbortSignal): Promise<void> {
  const ask = async () => {
    const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 3_000 });
    try {
      await client.connect();
      await client.query('SELECT 1');
    } finally {
      await client.end().catch((error: unknown) => log.debug({ err: error }, 'closing a failed connection'));
    }
  };
  return waitUntilAnswers('the database', ask, log, signal);
}
