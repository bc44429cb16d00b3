import type { Middleware, ParameterizedContext } from 'koa';
import { parseUrl } from '../../../../src/domain/values/parse-url.ts';
import type { ApiDeps, ApiState, OpsOptions } from '../../../deps.ts';
import { ApiError } from '../../../errors.ts';
import { findLiveSession } from './session.ts';

const QUEUES_PATH = '/ops/queues';

/** The pages load only their own files. The chart and editor libraries of the queue dashboard create styles at run time. */
export function contentSecurityPolicy(path: string): string {
  const isDashboard = path === QUEUES_PATH || path.startsWith(`${QUEUES_PATH}/`);
  return [
    "default-src 'none'",
    "script-src 'self'",
    isDashboard ? "style-src 'self' 'unsafe-inline'" : "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    isDashboard ? "base-uri 'self'" : "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Sets headers that block third parties, and accepts writes only from the pages themselves. The check of the origin supplements
 * the SameSite cookie.
 */
export function opsHeaders(ops: Pick<OpsOptions, 'publicUrl'>): Middleware<ApiState> {
  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', contentSecurityPolicy(ctx.path));
    // Without a referrer, browsers send `Origin: null` with forms.
    ctx.set('Referrer-Policy', 'same-origin');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('X-Frame-Options', 'DENY');
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin');
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin');
    ctx.set('Cache-Control', 'no-store');
    if (!isRead(ctx) && !isSameOrigin(ctx, ops.publicUrl)) {
      throw new ApiError('cross_origin', 'the server accepts changes only from the operator pages');
    }
    await next();
  };
}

/** Admits requests with a session, which it puts into the state. Redirects other requests to the login page. */
export function opsGuard(deps: Pick<ApiDeps, 'db' | 'now'>, ops: OpsOptions): Middleware<ApiState> {
  return async (ctx, next) => {
    const session = await findLiveSession(ctx, deps, ops);
    if (session === null) return requireLogin(ctx);
    ctx.state.ops = session;
    await next();
  };
}

function requireLogin(ctx: ParameterizedContext<ApiState>): void {
  if (isRead(ctx) && wantsHtml(ctx)) {
    ctx.status = 303;
    ctx.redirect(
      ctx.path === '/ops' ? '/ops/login' : `/ops/login?${new URLSearchParams({ next: ctx.url }).toString()}`,
    );
    return;
  }
  throw new ApiError('unauthorized', 'log in at /ops/login', {
    headers: { 'WWW-Authenticate': 'Session realm="oddswire ops"' },
  });
}

/** Whether a browser requests a page. Scripts do not accept `text/html`. */
export function wantsHtml(ctx: ParameterizedContext<ApiState>): boolean {
  return ctx.get('Accept').includes('text/html');
}

export function isRead(ctx: ParameterizedContext<ApiState>): boolean {
  return ctx.method === 'GET' || ctx.method === 'HEAD';
}

/**
 * Whether the headers name this origin as the source of the request. Without both headers the client is not a current browser, and
 * the request is rejected.
 */
export function isSameOrigin(ctx: ParameterizedContext<ApiState>, publicUrl: string | undefined): boolean {
  const fetchSite = ctx.get('Sec-Fetch-Site');
  const origin = ctx.get('Origin');
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  if (origin === '') return fetchSite === 'same-origin';
  const parsed = parseUrl(origin);
  if (!parsed) return false;
  return publicUrl === undefined ? parsed.host === ctx.host : parsed.origin === new URL(publicUrl).origin;
}
