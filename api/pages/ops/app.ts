import Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import { hostNameOf, isFixedHost } from '../../../src/domain/values/parse-url.ts';
import type { ApiState } from '../../context.ts';
import { ApiError } from '../../errors.ts';
import { type Assets, loadAssets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { createSite } from '../kit/site.ts';
import { loginRoutes, logoutRoutes } from './access/login.ts';
import { type OpsOptions, operatorOf, opsGuard } from './access/session.ts';
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

/**
 * Accepts requests for the host names of the pages only. By DNS rebinding, the owner of any domain can point it at this address, for
 * example at 127.0.0.1: for a browser, its pages and the operator pages then have the same origin. Only the Host header shows the
 * difference. Without configured names, the pages accept loopback names and IP addresses, which a domain cannot imitate.
 */
function opsHosts({ hosts = [] }: Pick<OpsOptions, 'hosts'>): Middleware<ApiState> {
  return async (ctx, next) => {
    const name = hostNameOf(ctx.get('Host'));
    const isAccepted = name !== null && (hosts.length > 0 ? hosts.includes(name) : isFixedHost(name));
    if (isAccepted) return next();
    throw new ApiError(
      'misdirected_request',
      'the operator pages do not serve this host name; OPS_HOSTS and OPS_PUBLIC_URL name their hosts',
    );
  };
}
