import type { Caller } from '../context.ts';
import { ApiError } from '../errors.ts';
import type { AnswerDeps } from '../http/deps.ts';
import type { Admission } from './account-limits.ts';

/** The venue requests that one read may still cause: a book fetch, or the start of a history backfill. */
export interface ColdAllowance {
  /** Counts a cold read of the account. Returns false when the account has used up the cold reads of this minute. */
  take(): boolean;
  /** How long the read waits for its venue, milliseconds. */
  readonly waitMs: number;
  /** Whether `take` returned false: the answer then holds the stored data, and other accounts do not share it. */
  readonly isExhausted: boolean;
  /** 429 for a read without stored data. */
  rejection(): ApiError;
}

/** The allowance of a request; see AccountLimits for how accounts are counted. */
export function coldAllowance(deps: Pick<AnswerDeps, 'limits' | 'coldWaitMs'>, caller: Caller): ColdAllowance {
  let rejected: Admission | undefined;
  return {
    waitMs: deps.coldWaitMs,
    take() {
      const admission = deps.limits.take('cold_reads', caller.accountId, caller.coldReadsPerMinute);
      if (admission?.isAdmitted === false) rejected = admission;
      return admission?.isAdmitted ?? true;
    },
    get isExhausted() {
      return rejected !== undefined;
    },
    rejection() {
      const message = `no data is stored for this read, and the account has used up its ${rejected?.limit} cold reads per minute`;
      return new ApiError('rate_limited', message, { headers: { 'Retry-After': String(rejected?.resetSeconds ?? 1) } });
    },
  };
}
