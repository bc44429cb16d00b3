import { createHash, timingSafeEqual } from 'node:crypto';
import type { Middleware } from 'koa';
import { LRUCache } from 'lru-cache';
import type { ApiState } from '../deps.ts';
import { ApiError } from '../errors.ts';

const USER = 'ops';
/** Wrong passwords one address may send within the window. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;

/** Everything the dashboard loads is ours. Styles are inline because its chart and editor libraries make them at run time. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Guards the operator pages: HTTP Basic login as `ops` (compared in constant time, tries limited per address), writes only
 * from the page itself, and headers that keep every third party out.
 */
export function opsGuard(password: string): Middleware<ApiState> {
  const expected = digest(`${USER}:${password}`);
  const failures = new LRUCache<string, { count: number }>({ max: 10_000, ttl: WINDOW_MS });

  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    ctx.set('Referrer-Policy', 'no-referrer');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('X-Frame-Options', 'DENY');
    const address = ctx.req.socket.remoteAddress ?? 'unknown';
    const tries = failures.get(address) ?? { count: 0 };
    if (tries.count >= MAX_FAILURES) {
      const retryAfterSeconds = Math.max(1, Math.ceil(failures.getRemainingTTL(address) / 1000));
      throw new ApiError('rate_limited', 'too many failed logins', {
        headers: { 'Retry-After': String(retryAfterSeconds) },
      });
    }
    const offered = basicCredentials(ctx.get('Authorization'));
    if (offered === null || !timingSafeEqual(digest(offered), expected)) {
      if (offered !== null) failures.set(address, { count: tries.count + 1 }, { noUpdateTTL: true });
      throw new ApiError('unauthorized', 'log in as the operator', {
        headers: { 'WWW-Authenticate': 'Basic realm="oddswire ops", charset="UTF-8"' },
      });
    }
    if (
      !['GET', 'HEAD'].includes(ctx.method) &&
      !isSameOrigin(ctx.get('Sec-Fetch-Site'), ctx.get('Origin'), ctx.host)
    ) {
      throw new ApiError('cross_origin', 'changes are accepted from the operator page only');
    }
    await next();
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** `user:password` of a Basic header, or null when there is none. */
function basicCredentials(header: string): string | null {
  const match = /^basic +([A-Za-z0-9+/=]{1,1024})$/i.exec(header);
  return match?.[1] === undefined ? null : Buffer.from(match[1], 'base64').toString('utf8');
}

/**
 * A browser sends the login with any request to us, wherever the page that makes it comes from; but it also says where that
 * is. Neither header: not a browser we can trust to say so, refused.
 */
function isSameOrigin(fetchSite: string, origin: string, host: string): boolean {
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  if (origin !== '') return URL.canParse(origin) && new URL(origin).host === host;
  return fetchSite === 'same-origin';
}
