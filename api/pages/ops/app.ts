import Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiDeps, ApiState, OpsOptions } from '../../deps.ts';
import { methodNotAllowed } from '../../http/paths.ts';
import { loadOpsAssets, type OpsAssets } from '../kit/assets.ts';
import { errorPages, pageNotFound } from '../kit/error-pages.ts';
import { type Html, html } from '../kit/html.ts';
import { opsGuard, opsHeaders } from './access/guard.ts';
import { opsHosts } from './access/hosts.ts';
import { loginRoutes, logoutRoutes } from './access/login.ts';
import { csrfTokenOf } from './access/operator.ts';
import { accountPages } from './account.ts';
import { alertsPage } from './alerts.ts';
import { auditPages } from './audit.ts';
import { deliveriesPage } from './deliveries.ts';
import { deliveryPage } from './delivery.ts';
import { keyPages } from './keys.ts';
import { page } from './layout.ts';
import { marketPage } from './market.ts';
import { marketsPage } from './markets.ts';
import { overviewPages } from './overview.ts';
import { queueBoard } from './queue-board.ts';
import { createOpsRouter, type OpsRouter } from './route.ts';
import { venuePages } from './venues.ts';
import { webhookPage } from './webhook.ts';
import { webhooksPage } from './webhooks.ts';

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
    errorPages(deps, (ctx, title, text) => errorPage(ctx, assets, title, text)),
    opsHosts(ops),
    opsHeaders(ops),
    sendAssets(assets),
    entry.routes() as Middleware<ApiState>,
    opsGuard(deps, ops),
    queueBoard(deps, ops),
    exit.routes() as Middleware<ApiState>,
    pages.routes(),
    pageNotFound,
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

/** The page of a failure. */
function errorPage(
  ctx: ParameterizedContext<ApiState>,
  assets: OpsAssets,
  title: string,
  text: (help: Html) => Html,
): string {
  const session = ctx.state.ops;
  const [path, label] = session ? ['/ops', 'Overview'] : ['/ops/login', 'Log in'];
  return page(assets, {
    title,
    body: text(html`<p><a class="button" href="${path}">${label}</a></p>`),
    ...(session && { operator: session.operator, csrf: csrfTokenOf(session.token) }),
  });
}
