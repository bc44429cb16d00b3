import { OddswireError } from '../values/errors.ts';

const MAX_SCHEDULE_ENTRIES = 50;
/** 30 days: attempts are kept for a shorter time. */
const MAX_SCHEDULE_DELAY_SECONDS = 2_592_000;

/**
 * Parses a comma list of delays in seconds: N delays are N + 1 attempts. Decimals are allowed, but every delay lasts at least
 * one second. @throws OddswireError `invalid_retry_schedule`
 */
export function parseRetrySchedule(text: string): number[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length > MAX_SCHEDULE_ENTRIES) {
    throw invalid(`has ${parts.length} delays, at most ${MAX_SCHEDULE_ENTRIES} are allowed`);
  }
  // The error gives only the position: a value in the wrong variable may be a secret.
  const bad = parts.flatMap((part, index) =>
    /^\d+(\.\d+)?$/.test(part) && Number(part) <= MAX_SCHEDULE_DELAY_SECONDS ? [] : [`entry ${index + 1}`],
  );
  if (bad.length > 0) {
    throw invalid(`${bad.join(', ')}: not seconds from 0 to ${MAX_SCHEDULE_DELAY_SECONDS}`);
  }
  return parts.map(Number);
}

const invalid = (message: string) => new OddswireError('invalid_retry_schedule', message);
