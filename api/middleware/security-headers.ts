import type { Middleware } from 'koa';
import type { ApiState } from '../deps.ts';

/**
 * On every answer, names and values in turn: an answer is data and never a page, so it must not be framed, embedded or run. Pages
 * (`/docs`, `/ops`) set a policy of their own instead. HTTPS, and so `Strict-Transport-Security`, is the proxy's.
 */
export const SECURITY_HEADERS: readonly string[] = [
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy',
  'same-origin',
];

/** Sets them before anything can fail. */
export const securityHeaders: Middleware<ApiState> = (ctx, next) => {
  for (let i = 0; i < SECURITY_HEADERS.length; i += 2)
    ctx.set(SECURITY_HEADERS[i] ?? '', SECURITY_HEADERS[i + 1] ?? '');
  return next();
};
