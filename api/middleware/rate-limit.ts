import type { Admission } from '../access/account-limits.ts';
import { ApiError } from '../errors.ts';

/** The `RateLimit-Policy` text of each limit. Every request needs one, and few limits exist. */
const policies = new Map<number, string>();
/** Bounds the memory: beyond it the cache is cleared. */
const MAX_POLICIES = 1_000;

function policyOf(limit: number): string {
  const known = policies.get(limit);
  if (known !== undefined) return known;
  if (policies.size >= MAX_POLICIES) policies.clear();
  const policy = `"default";q=${limit};w=60`;
  policies.set(limit, policy);
  return policy;
}

/**
 * The headers about the account's limit: names and values alternate. The first two come from
 * draft-ietf-httpapi-ratelimit-headers, the others are older names. Empty without a limit.
 */
export function rateLimitHeaders(admission: Admission | null): string[] {
  if (admission === null) return [];
  const { limit, remaining, resetSeconds } = admission;
  return [
    'RateLimit-Policy',
    policyOf(limit),
    'RateLimit',
    `"default";r=${remaining};t=${resetSeconds}`,
    'RateLimit-Limit',
    String(limit),
    'RateLimit-Remaining',
    String(remaining),
    'RateLimit-Reset',
    String(resetSeconds),
  ];
}

/** 429 for an account that used up its requests of this minute. */
export function tooManyRequests({ limit, resetSeconds }: Admission): ApiError {
  return new ApiError('rate_limited', `this account has a limit of ${limit} requests per minute`, {
    headers: { 'Retry-After': String(resetSeconds) },
  });
}
