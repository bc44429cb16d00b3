import type { Middleware } from 'koa';
import type { ApiState } from '../context.ts';

/**
 * Headers of every answer; names and values alternate. Answers are data, so browsers must not frame, embed or run them. Pages
 * (`/docs`, `/ops`) set their own policy. The proxy terminates HTTPS, so it also sets `Strict-Transport-Security`.
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

/** Sets the headers first, so that failures have them too. */
export const securityHeaders: Middleware<ApiState> = (ctx, next) => {
  for (let i = 0; i < SECURITY_HEADERS.length; i += 2)
    ctx.set(SECURITY_HEADERS[i] ?? '', SECURITY_HEADERS[i + 1] ?? '');
  return next();
};
