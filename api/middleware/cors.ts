import koaCors from '@koa/cors';
import type { Middleware } from 'koa';
import type { ApiState } from '../context.ts';
import { isPathTarget } from './request-context.ts';

const ALLOWED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const ALLOWED_HEADERS = [
  'Authorization',
  'X-API-Key',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'If-Range',
  'Last-Event-ID',
  'Range',
  'X-Request-Id',
];
/** The headers that a page may read besides the safelisted ones. */
const EXPOSED_HEADERS = [
  'Accept-Ranges',
  'Content-Digest',
  'Content-Range',
  'Repr-Digest',
  'ETag',
  'Location',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'WWW-Authenticate',
  'X-Request-Id',
  'Idempotent-Replayed',
  'Deprecation',
  'Sunset',
  'Link',
];
/** How long browsers cache a preflight. Most browsers limit it to two hours. */
const MAX_AGE_SECONDS = 3_600;

/**
 * Allows browser calls from pages of `origins` (`*`: all). Preflights need no key. Keys are in headers, so credentials (cookies)
 * are never allowed. Only their own origin may call the operator pages. `exposed` names more headers that a page may read.
 */
export function cors(origins: readonly string[], exposed: readonly string[]): Middleware<ApiState> {
  const isOpen = origins.includes('*');
  const allow = koaCors({
    origin: (ctx) => {
      const origin = ctx.get('Origin');
      if (origin === '') return '';
      return isOpen ? '*' : origins.includes(origin) ? origin : '';
    },
    allowMethods: ALLOWED_METHODS,
    allowHeaders: ALLOWED_HEADERS,
    exposeHeaders: [...EXPOSED_HEADERS, ...exposed],
    maxAge: MAX_AGE_SECONDS,
    keepHeadersOnError: false,
  });
  return (ctx, next) => {
    const { url } = ctx.req;
    return !isPathTarget(url) || url?.startsWith('/ops') ? next() : allow(ctx, next);
  };
}
