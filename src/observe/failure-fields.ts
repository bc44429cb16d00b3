import { OddswireError } from '../domain/values/errors.ts';

/** The fields of an error in a log line. The message of our own errors is complete; any other error needs its stack. */
export function failureFields(error: Error): { code: string; reason: string } | { err: Error } {
  return error instanceof OddswireError ? { code: error.code, reason: error.message } : { err: error };
}
