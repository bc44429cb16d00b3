import Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiState } from '../../context.ts';
import { type Assets, loadAssets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { createSite } from '../kit/site.ts';
import { loginRoutes, logoutRoutes } from './access/login.ts';
import { type OpsOptions, operatorOf, opsGuard, opsHosts } from './access/session.ts';
import { accountPages } from './account.ts';
import { createOpsRouter, type OpsRouter } from './actions.ts';
import { alertsPage } from './alerts.ts';
import { auditPages } from './audit.ts';
import { deliveriesPage } from './deliveries.ts';
import { deliveryPage } from './delivery.ts';
import { type KeysDeps, keyPages } from './keys.ts';
import { page } from './layout.ts';
import { marketPage } from './market.ts';
import { marketsPage } from './markets.ts';
import { overviewPages } from './overview.ts';
import { createProblems, type OverviewDeps } from './problems/read.ts';
import { queueBoard } from './queue-board.ts';
import { venuePages } from './venues.ts';
import { webhookPage } from './webhook.ts';
import { webhooksPage } from './webhooks.ts';

type OpsDeps = PageDeps & OverviewDeps & KeysDeps;

/** Registers every page: one line per file. */
export function registerPages(router: OpsRouter, given: OpsDeps, problems = createProblems(given)): void {
  const deps = { ...given, problems };
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
export function createOps(deps: OpsDeps, ops: OpsOptions): Middleware<ApiState> {
  const assets = loadAssets('/ops/assets', 'ops');
  const entry = new Router<ApiState>({ sensitive: true });
  loginRoutes(entry, deps, ops, assets);
  const exit = new Router<ApiState>({ sensitive: true });
  logoutRoutes(exit, deps, ops);
  const pages = createOpsRouter(deps, assets);
  const problems = createProblems(deps);
  registerPages(pages, deps, problems);
  return createSite(deps, {
    has: (path) => path === '/ops' || path.startsWith('/ops/'),
    assets,
    errorPage: (ctx, title, text) => errorPage(ctx, assets, title, text),
    name: 'the operator pages',
    publicUrl: ops.publicUrl,
    admit: opsHosts(ops),
    layers: [
      entry.routes() as Middleware<ApiState>,
      opsGuard(deps, ops),
      queueBoard({ ...deps, problems }, ops),
      exit.routes() as Middleware<ApiState>,
      pages.routes(),
    ],
  });
}

/** The page of a failure. */
function errorPage(
  ctx: ParameterizedContext<ApiState>,
  assets: Assets,
  title: string,
  text: (advice: Html) => Html,
): string {
  const session = operatorOf(ctx);
  const [path, label] = session ? ['/ops', 'Overview'] : ['/ops/login', 'Log in'];
  return page(assets, { title, body: text(html`<p><a class="button" href="${path}">${label}</a></p>`), session });
}
