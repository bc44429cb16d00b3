import { setTimeout as delay } from 'node:timers/promises';
import { asError, OddswireError } from '../domain/values/errors.ts';
import { tlsFailure } from '../domain/values/failure-reasons.ts';
import type { Logger } from '../observe/logger.ts';
import { StartupError } from './lifecycle.ts';

/** The interval of log lines; attempts are more frequent. */
const REMIND_MS = 10_000;

/** A certificate that is refused once is refused for good. @throws StartupError with the cause */
export function refuseTlsFailure(subject: string, error: unknown): void {
  const reason = tlsFailure(error);
  if (reason !== undefined) throw new StartupError(`the TLS connection to ${subject} fails: ${reason}`, error);
}

/**
 * Resolves when `ask` does; retries without a limit when it rejects. The log names `subject`.
 * @throws OddswireError `aborted` when the signal fires first, StartupError when TLS cannot succeed
 */
export async function waitUntilAnswers(
  subject: string,
  ask: () => Promise<void>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let saidAt = 0;
  for (let attempt = 1; ; attempt++) {
    if (signal.aborted) throw new OddswireError('aborted', `stopped while waiting for ${subject}`);
    try {
      return await ask();
    } catch (error) {
      refuseTlsFailure(subject, error);
      if (Date.now() - saidAt > REMIND_MS) {
        saidAt = Date.now();
        const { message } = asError(error);
        log.info({ reason: message || 'connection refused', attempt }, `waiting for ${subject}`);
      }
      await delay(Math.min(100 * attempt, 1_000));
    }
  }
}
