import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observe/logger.ts';
import { isDatabaseUnavailable } from '../store/db/tx.ts';
import { StartupError } from './lifecycle.ts';

/**
 * Starts again when the database is lost during a start, because a start that finds no database waits for it. A failed start has closed
 * everything that it opened.
 * @throws every other error of `start`
 */
export async function startAgain<T>(start: () => Promise<T>, log: Logger, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (signal.aborted || error instanceof StartupError || !isDatabaseUnavailable(error)) throw error;
      log.warn({ err: error, attempt }, 'database lost during the start; starting again');
      await delay(Math.min(100 * attempt, 1_000));
    }
  }
}
