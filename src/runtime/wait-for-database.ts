import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { asError, OddswireError } from '../domain/errors.ts';
import type { Logger } from '../observe/logger.ts';

/** Say so once in this while, not at each try. */
const REMIND_MS = 10_000;

/**
 * Resolves when the database accepts a query. Everything else is constructed after this: BullMQ remembers a first failed
 * connection for ever (queues.md 2.4).
 * @throws OddswireError `aborted` when the signal fires first.
 */
export async function waitForDatabase(databaseUrl: string, log: Logger, signal: AbortSignal): Promise<void> {
  let saidAt = 0;
  for (let attempt = 1; ; attempt++) {
    if (signal.aborted) throw new OddswireError('aborted', 'stopped while waiting for the database');
    const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 3_000 });
    try {
      await client.connect();
      await client.query('SELECT 1');
      return;
    } catch (error) {
      if (Date.now() - saidAt > REMIND_MS) {
        saidAt = Date.now();
        const { message } = asError(error);
        log.info({ reason: message || 'connection refused', attempt }, 'waiting for the database');
      }
      await delay(Math.min(100 * attempt, 1_000));
    } finally {
      await client.end().catch((error: unknown) => log.debug({ err: error }, 'closing a failed connection'));
    }
  }
}
