import type { IncomingMessage } from 'node:http';
import type { RouterMiddleware } from '@koa/router';
import type { AccountLimits, Admission } from '../access/account-limits.ts';
import type { FailedKeys } from '../access/failed-keys.ts';
import type { KeyDirectory } from '../access/key-directory.ts';
import type { ApiContext, ApiState, Caller, RouteGroup } from '../context.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { internalCallOf } from './request-context.ts';

const CHALLENGE = { Authorization: 'Bearer realm="oddswire"', 'X-API-Key': 'ApiKey realm="oddswire"' };

/** How the API knows its callers. */
export interface AuthDeps {
  keys: KeyDirectory;
  /** Limits the wrong keys of a network. */
  failedKeys: FailedKeys;
  /** The limits of accounts per minute. */
  limits: Pick<AccountLimits, 'take' | 'look'>;
  /** Epoch milliseconds. */
  now(): number;
}

/**
 * Accepts a request with a valid key in the header of its route group (specification section 5), within the limit of its account, and
 * with the scope of the route. A key in the other header gets 401 with a message that names the right header. Every answer states
 * the remaining limit. The caller of a session needs no key, and its page has been counted.
 */
export function authenticate(deps: AuthDeps, group: RouteGroup): RouterMiddleware<ApiState> {
  return async (ctx, next) => {
    const caller = internalCallOf(ctx.req)?.caller;
    if (caller) ctx.state.caller = caller;
    requireScope(caller ? caller.scopes : await admit(deps, ctx, group, offeredKey(ctx, group)), group);
    await next();
  };
}

/** As `authenticate`, with the key in either header and without a scope: the routes that the request calls check theirs. */
export function authenticateAnyKey(deps: AuthDeps): RouterMiddleware<ApiState> {
  return async (ctx, next) => {
    await admit(deps, ctx, ANY_GROUP, anyKeyOf(ctx));
    await next();
  };
}

/** The challenge of a request without a key in either header. */
const ANY_GROUP: RouteGroup = { header: 'Authorization', scope: 'markets:read' };

/** The key of either header. @throws ApiError `unauthorized` without one */
export function anyKeyOf(ctx: ApiContext): string {
  const apiKey = ctx.get('X-API-Key');
  return apiKey === '' ? offeredKey(ctx, ANY_GROUP) : apiKey;
}

/** Sets the caller of a valid key within the limit of its account, and returns its scopes. @throws ApiError */
async function admit(deps: AuthDeps, ctx: ApiContext, group: RouteGroup, key: string): Promise<readonly string[]> {
  const found = await deps.keys.find(key, deps.now());
  if (!found) throw unknownKey(deps, ctx.req, group);
  const { accountId, id: keyId, scopes, ratePerMinute, coldReadsPerMinute } = found;
  ctx.state.caller = { accountId, keyId, scopes, coldReadsPerMinute };
  const admission = deps.limits.take('requests', accountId, ratePerMinute);
  setHeaders(ctx, admission);
  if (admission?.isAdmitted === false) throw tooManyRequests(admission);
  return scopes;
}

/**
 * Counts the further messages of a batch in the limit of the account: all of them or none.
 * @throws ApiError `rate_limited`, or `invalid_request` for a batch that the limit never admits
 */
export async function admitFurther(deps: AuthDeps, ctx: ApiContext, messages: number): Promise<void> {
  const found = await deps.keys.find(anyKeyOf(ctx), deps.now());
  if (!found) throw unknownKey(deps, ctx.req, ANY_GROUP);
  const { accountId, ratePerMinute } = found;
  const left = deps.limits.look('requests', accountId, ratePerMinute);
  if (left === null) return;
  if (messages >= left.limit) {
    const message = `has ${messages + 1} messages, and the account has a limit of ${left.limit} requests per minute: send smaller batches`;
    throw invalidRequest([{ path: 'body', message }]);
  }
  if (left.remaining < messages) throw tooManyRequests(left);
  for (let counted = 0; counted < messages; counted += 1) {
    setHeaders(ctx, deps.limits.take('requests', accountId, ratePerMinute));
  }
}

function setHeaders(ctx: ApiContext, admission: Admission | null): void {
  const headers = rateLimitHeaders(admission);
  for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i] ?? '', headers[i + 1] ?? '');
}

/** The caller with this key, for reads of market data outside of Koa. @throws ApiError as `authenticate` */
export async function authenticateKey(deps: AuthDeps, request: IncomingMessage, key: string): Promise<Caller> {
  const group: RouteGroup = { header: 'Authorization', scope: 'markets:read' };
  const found = await deps.keys.find(key, deps.now());
  if (!found) throw unknownKey(deps, request, group);
  const { accountId, id: keyId, scopes, ratePerMinute, coldReadsPerMinute } = found;
  const admission = deps.limits.take('requests', accountId, ratePerMinute);
  if (admission?.isAdmitted === false) throw tooManyRequests(admission);
  requireScope(scopes, group);
  return { accountId, keyId, scopes, coldReadsPerMinute };
}

/** The key of an `Authorization` header; undefined without the header. @throws ApiError `unauthorized` for another form of it */
export function bearerOf({ authorization = '' }: IncomingMessage['headers']): string | undefined {
  if (authorization === '') return undefined;
  const [scheme = '', key = '', ...rest] = authorization.split(' ').filter((part) => part !== '');
  if (scheme.toLowerCase() === 'bearer' && key !== '' && rest.length === 0) return key;
  const message = 'the Authorization header must read "Authorization: Bearer <API_KEY>"';
  throw unauthorized({ header: 'Authorization', scope: 'markets:read' }, message);
}

function unknownKey(deps: Pick<AuthDeps, 'failedKeys'>, request: IncomingMessage, group: RouteGroup): ApiError {
  return deps.failedKeys.count(request) ?? unauthorized(group, 'the API key is unknown, expired or revoked');
}

function requireScope(scopes: readonly string[], { header, scope }: RouteGroup): void {
  if (scopes.includes(scope)) return;
  throw new ApiError('insufficient_scope', `this key lacks the scope ${scope}`, {
    headers: { 'WWW-Authenticate': `${CHALLENGE[header]}, error="insufficient_scope", scope="${scope}"` },
  });
}

/** The caller of a route behind `authenticate`. */
export function callerOf(ctx: ApiContext): Caller {
  const { caller } = ctx.state;
  if (!caller) throw new TypeError('this route has no authentication');
  return caller;
}

function offeredKey(ctx: ApiContext, group: RouteGroup): string {
  const bearer = ctx.get('Authorization');
  const apiKey = ctx.get('X-API-Key');
  if (group.header === 'X-API-Key') {
    if (apiKey !== '') return apiKey;
    throw unauthorized(
      group,
      bearer === ''
        ? 'send an API key in the header "X-API-Key: <API_KEY>"'
        : 'this route expects the key in the header "X-API-Key: <API_KEY>", not in Authorization',
    );
  }
  const key = bearerOf(ctx.headers);
  if (key !== undefined) return key;
  throw unauthorized(
    group,
    apiKey === ''
      ? 'send an API key in the header "Authorization: Bearer <API_KEY>"'
      : 'this route expects the key in the header "Authorization: Bearer <API_KEY>", not in X-API-Key',
  );
}

function unauthorized(group: RouteGroup, message: string): ApiError {
  return new ApiError('unauthorized', message, { headers: { 'WWW-Authenticate': CHALLENGE[group.header] } });
}

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
