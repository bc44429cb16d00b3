/**
 * The base class of all errors that oddswire throws on purpose.
 * `code` is stable and safe to show; `retryable` says whether the same call may succeed later without a change.
 */
export class OddswireError extends Error {
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** Any thrown value as an Error: a thrown string or object keeps its text. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(typeof thrown === 'string' ? thrown : textOf(thrown));
}

function textOf(thrown: unknown): string {
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    // BigInt values and circular objects have no JSON.
    return String(thrown);
  }
}
