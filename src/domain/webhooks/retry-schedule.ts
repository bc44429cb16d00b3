import { OddswireError } from '../values/errors.ts';

const MAX_SCHEDULE_ENTRIES = 50;
/** 30 days: longer than attempts are kept. */
const MAX_SCHEDULE_DELAY_SECONDS = 2_592_000;

/** A WEBHOOK_RETRY_SCHEDULE that cannot be used. */
export class RetryScheduleError extends OddswireError {
  constructor(message: string) {
    super('invalid_retry_schedule', message);
  }
}

/**
 * Reads a comma list of delays in seconds: N delays are N + 1 attempts. Decimals are allowed, though no delay is ever
 * shorter than one second. Throws RetryScheduleError.
 */
export function parseRetrySchedule(text: string): number[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length > MAX_SCHEDULE_ENTRIES) {
    throw new RetryScheduleError(`has ${parts.length} delays, at most ${MAX_SCHEDULE_ENTRIES} are allowed`);
  }
  // Named by position: what stands in a variable by mistake may be a secret.
  const bad = parts.flatMap((part, index) =>
    /^\d+(\.\d+)?$/.test(part) && Number(part) <= MAX_SCHEDULE_DELAY_SECONDS ? [] : [`entry ${index + 1}`],
  );
  if (bad.length > 0) {
    throw new RetryScheduleError(`${bad.join(', ')}: not seconds from 0 to ${MAX_SCHEDULE_DELAY_SECONDS}`);
  }
  return parts.map(Number);
}
