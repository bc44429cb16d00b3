import Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiDeps, ApiState, OpsOptions } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { toApiError } from '../middleware/envelope.ts';
import { loadOpsAssets, type OpsAssets } from './assets.ts';
import { html } from './html.ts';
import { page } from './layout.ts';
import { loginRoutes, logoutRoutes } from './login.ts';
import { csrfTokenOf } from './operator.ts';
import { opsGuard, opsHeaders, wantsHtml } from './ops-guard.ts';
import { opsHosts } from './ops-hosts.ts';
import { createOpsRouter, type OpsRouter } from './ops-route.ts';
import { accountPages } from './pages/account.ts';
import { alertsPage } from './pages/alerts.ts';
import { auditPages } from './pages/audit.ts';
import { deliveriesPage } from './pages/deliveries.ts';
import { deliveryPage } from './pages/delivery.ts';
import { keyPages } from './pages/keys.ts';
import { marketPage } from './pages/market.ts';
import { marketsPage } from './pages/markets.ts';
import { overviewPages } from './pages/overview.ts';
import { venuePages } from './pages/venues.ts';
import { webhookPage } from './pages/webhook.ts';
import { webhooksPage } from './pages/webhooks.ts';
import { queueBoard } from './queue-board.ts';

/** Registers every page: one line per file in `pages/`. */
export function registerPages(router: OpsRouter, deps: ApiDeps): void {
  overviewPages(router, deps);
  venuePages(router, deps);
  keyPages(router, deps);
  accountPages(router, deps);
  auditPages(router, deps);
  alertsPage(router, deps);
  deliveriesPage(router, deps);
  deliveryPage(router, deps);
  marketPage(router, deps);
  marketsPage(router, deps);
  webhookPage(router, deps);
  webhooksPage(router, deps);
}

/** The operator pages: /ops and all paths below it. */
export function createOps(deps: ApiDeps, ops: OpsOptions): Middleware<ApiState> {
  const assets = loadOpsAssets();
  const entry = new Router<ApiState>({ sensitive: true });
  loginRoutes(entry, deps, ops, assets);
  const exit = new Router<ApiState>({ sensitive: true });
  logoutRoutes(exit, deps, ops);
  const pages = createOpsRouter(deps, assets);
  registerPages(pages, deps);
  const layers: readonly Middleware<ApiState>[] = [
    errorPages(assets),
    opsHosts(ops),
    opsHeaders(ops),
    sendAssets(assets),
    entry.routes() as Middleware<ApiState>,
    opsGuard(deps, ops),
    queueBoard(deps, ops),
    exit.routes() as Middleware<ApiState>,
    pages.routes(),
    notFound,
  ];
  return (ctx, next) => {
    if (ctx.path !== '/ops' && !ctx.path.startsWith('/ops/')) return next();
    return layers.reduceRight<() => Promise<unknown>>((inner, layer) => async () => layer(ctx, inner), next)();
  };
}

export function sendAssets(assets: OpsAssets): Middleware<ApiState> {
  return async (ctx, next) => {
    if (!assets.has(ctx.path)) return next();
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
    assets.send(ctx);
  };
}

/** The answer without a matching page: 405 when another method matches, else 404. */
const notFound: Middleware<ApiState> = (ctx) => {
  const { matched = [] } = ctx as { matched?: readonly { methods: readonly string[] }[] };
  const allowed = [...new Set(matched.flatMap(({ methods }) => methods))].sort();
  throw allowed.length === 0 ? new ApiError('not_found', 'the page does not exist') : methodNotAllowed(allowed);
};

export function methodNotAllowed(allowed: readonly string[]): ApiError {
  return new ApiError('method_not_allowed', `allowed methods: ${allowed.join(', ')}`, {
    headers: { Allow: allowed.join(', ') },
  });
}

/** Shows a failure as a page in a browser. Scripts get the envelope of the API. */
function errorPages(assets: OpsAssets): Middleware<ApiState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = toApiError(thrown);
      if (!wantsHtml(ctx)) throw error;
      if (error.status === 500) ctx.state.log.error({ err: thrown }, 'request failed');
      ctx.set(error.headers);
      ctx.status = error.status;
      ctx.type = 'text/html; charset=utf-8';
      ctx.body = errorPage(ctx, assets, error);
    }
  };
}

export const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Not logged in',
  403: 'Not allowed',
  404: 'Not found',
  421: 'Unknown host',
  429: 'Too many attempts',
  500: 'Server error',
  503: 'Not available',
};

function errorPage(ctx: ParameterizedContext<ApiState>, assets: OpsAssets, error: ApiError): string {
  const session = ctx.state.ops;
  const body = html`<p class="lead">${error.message}</p>
${error.details.length > 1 && html`<ul>${error.details.map(({ path, message }) => html`<li>${path}: ${message}</li>`)}</ul>`}
<p>${session ? html`<a class="button" href="/ops">Overview</a>` : html`<a class="button" href="/ops/login">Log in</a>`}</p>
<p class="hint">Request <code>${ctx.state.requestId}</code></p>`;
  return page(assets, {
    title: TITLES[error.status] ?? 'Request failed',
    body,
    ...(session && { operator: session.operator, csrf: csrfTokenOf(session.token) }),
  });
}
