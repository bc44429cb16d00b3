import type { IncomingMessage } from 'node:http';
import type { Cidr } from '../../src/domain/webhooks/address-policy.ts';
import { ApiError } from '../errors.ts';
import type { AccountLimits } from './account-limits.ts';
import { clientNetwork } from './client-address.ts';

/** The wrong keys of one network per minute that are answered with 401. */
const MAX_FAILED_KEYS = 30;

/**
 * Limits the wrong keys of a network, in all API processes together. A key is looked up first, and only a wrong one is counted: the
 * failures of other clients behind the same address never affect a valid key.
 */
export interface FailedKeys {
  /** Counts a wrong key. Returns 429 `rate_limited` for it beyond the limit, otherwise null. */
  count(req: IncomingMessage): ApiError | null;
}

interface FailedKeysOptions {
  limits: Pick<AccountLimits, 'takeFailure'>;
  /** The operator's proxies: only their `X-Forwarded-For` counts. */
  trustedProxies: readonly Cidr[];
  maxFailed?: number;
}

export function createFailedKeys(options: FailedKeysOptions): FailedKeys {
  const { limits, trustedProxies, maxFailed = MAX_FAILED_KEYS } = options;
  return {
    count(req) {
      const { isAdmitted, resetSeconds } = limits.takeFailure(
        'failed_keys',
        clientNetwork(req, trustedProxies),
        maxFailed,
      );
      if (isAdmitted) return null;
      return new ApiError('rate_limited', 'too many failed authentications from this address', {
        headers: { 'Retry-After': String(resetSeconds) },
      });
    },
  };
}
