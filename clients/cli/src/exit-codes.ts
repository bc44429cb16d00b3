import { type OddswireApiError, OddswireConnectionError } from '../../typescript/src/index.ts';

/** The exit codes of the program (README.md, "Exit codes"). */
export const EXIT = {
  done: 0,
  /** The API rejected the request, or the command could not do its work. */
  failed: 1,
  usage: 2,
  /** 401 and 403. */
  denied: 3,
  notFound: 4,
  /** No answer, or an answer of 500 and up. */
  unavailable: 5,
  rateLimited: 6,
  settings: 78,
  /** 128 and the number of SIGINT. */
  interrupted: 130,
  /** 128 and the number of SIGPIPE, as a shell reports a program whose reader ended. */
  brokenPipe: 141,
} as const;

export function exitCodeOf(error: OddswireApiError | OddswireConnectionError): number {
  if (error instanceof OddswireConnectionError || error.status >= 500) return EXIT.unavailable;
  if (error.status === 401 || error.status === 403) return EXIT.denied;
  if (error.status === 404) return EXIT.notFound;
  return error.status === 429 ? EXIT.rateLimited : EXIT.failed;
}

/** The lines that report an error of the API: code and message, a line per faulty part of the input, and the id of the request. */
export function linesOf(error: OddswireApiError | OddswireConnectionError): string[] {
  if (error instanceof OddswireConnectionError) return [`${error.code}: ${causeOf(error)}`];
  const details = error.details.map(({ path, message }) => `  ${path}: ${message}`);
  const request = error.requestId === undefined ? [] : [`  request ${error.requestId}`];
  const later = error.retryAfterSeconds === undefined ? [] : [`  try again in ${error.retryAfterSeconds} s`];
  return [error.message, ...details, ...later, ...request];
}

/** The message of `fetch` is "fetch failed"; its cause has the reason. */
function causeOf(error: OddswireConnectionError): string {
  const failed = error.cause as { cause?: { message?: string; code?: string } } | undefined;
  const reason = failed?.cause?.message || failed?.cause?.code;
  return reason ? `no answer (${reason})` : error.message;
}

/** A missing or invalid variable. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** A failure with its own text and exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
