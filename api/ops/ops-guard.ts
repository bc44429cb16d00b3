import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiDeps, ApiState, OpsOptions } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { findLiveSession } from './ops-session.ts';

const QUEUES_PATH = '/ops/queues';

/** Everything the pages load is ours. The queue dashboard's chart and editor libraries make styles at run time. */
function contentSecurityPolicy(path: string): string {
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
 * Headers that keep every third party out, and writes only from the pages themselves: by where the browser says they come
 * from, beside the cookie that it sends on same-site requests only.
 */
export function opsHeaders(ops: Pick<OpsOptions, 'publicUrl'>): Middleware<ApiState> {
  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', contentSecurityPolicy(ctx.path));
    // Without a referrer browsers would send `Origin: null` with forms.
    ctx.set('Referrer-Policy', 'same-origin');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('X-Frame-Options', 'DENY');
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin');
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin');
    ctx.set('Cache-Control', 'no-store');
    if (!isRead(ctx) && !isSameOrigin(ctx, ops.publicUrl)) {
      throw new ApiError('cross_origin', 'changes are accepted from the operator pages only');
    }
    await next();
  };
}

/** Passes requests with a session, which it puts into the state; redirects others to the login page. */
export function opsGuard(deps: Pick<ApiDeps, 'db' | 'now'>, ops: OpsOptions): Middleware<ApiState> {
  return async (ctx, next) => {
    const session = await findLiveSession(ctx, deps, ops);
    if (session === null) return refuse(ctx);
    ctx.state.ops = session;
    await next();
  };
}

function refuse(ctx: ParameterizedContext<ApiState>): void {
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

/** Whether a person's browser asks for a page: it says so, scripts do not. */
export function wantsHtml(ctx: ParameterizedContext<ApiState>): boolean {
  return ctx.get('Accept').includes('text/html');
}

function isRead(ctx: ParameterizedContext<ApiState>): boolean {
  return ctx.method === 'GET' || ctx.method === 'HEAD';
}

/**
 * A browser says where the page is that makes a request. Neither header: not a browser that could be trusted to say so,
 * refused.
 */
function isSameOrigin(ctx: ParameterizedContext<ApiState>, publicUrl: string | undefined): boolean {
  const fetchSite = ctx.get('Sec-Fetch-Site');
  const origin = ctx.get('Origin');
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  if (origin === '') return fetchSite === 'same-origin';
  if (!URL.canParse(origin)) return false;
  return publicUrl === undefined
    ? new URL(origin).host === ctx.host
    : new URL(origin).origin === new URL(publicUrl).origin;
}
