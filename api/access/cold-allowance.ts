import type { ApiDeps, Caller } from '../deps.ts';
import { ApiError } from '../errors.ts';
import type { Admission } from './account-limits.ts';

/** The venue requests that one read may still cause: fetching a book, or starting a walk back through old trades. */
export interface ColdAllowance {
  /** Counts a cold read of the account; false when it has used up those of this minute. */
  take(): boolean;
  /** Whether `take` refused: then the answer holds the stored data, and is not shared with others. */
  readonly isExhausted: boolean;
  /** 429 for a read of which nothing is stored. */
  refusal(): ApiError;
}

/** The allowance of a request; see AccountLimits for how accounts are counted. */
export function coldAllowance(deps: Pick<ApiDeps, 'limits'>, caller: Caller): ColdAllowance {
  let refused: Admission | undefined;
  return {
    take() {
      const admission = deps.limits.take('cold_reads', caller.accountId, caller.coldReadsPerMinute);
      if (admission?.isAdmitted === false) refused = admission;
      return admission?.isAdmitted ?? true;
    },
    get isExhausted() {
      return refused !== undefined;
    },
    refusal() {
      const message = `nothing is stored of this, and the account has used up its ${refused?.limit} cold reads per minute`;
      return new ApiError('rate_limited', message, { headers: { 'Retry-After': String(refused?.resetSeconds ?? 1) } });
    },
  };
}
