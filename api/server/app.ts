import type { RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { asError } from '../../src/domain/values/errors.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { ApiContext, ApiState } from '../context.ts';
import { docsSite } from '../docs/site.ts';
import { ApiError } from '../errors.ts';
import { CSV_META_HEADERS } from '../http/csv-answer.ts';
import { InternalClient } from '../http/internal-client.ts';
import { methodNotAllowed } from '../http/paths.ts';
import { type Route, register } from '../http/route.ts';
import { StaticFile, sendFile } from '../http/static-file.ts';
import { MCP_PATH, mcpEndpoint } from '../mcp/endpoint.ts';
import { LLMS_TEXT } from '../mcp/llms-text.ts';
import { authenticateAnyKey } from '../middleware/authenticate.ts';
import { compression } from '../middleware/compression.ts';
import { cors } from '../middleware/cors.ts';
import { envelope } from '../middleware/envelope.ts';
import { requestContext } from '../middleware/request-context.ts';
import { securityHeaders } from '../middleware/security-headers.ts';
import { targetLength, textGuard } from '../middleware/text-guard.ts';
import { createApiCalls } from '../pages/console/api-calls.ts';
import { createConsole } from '../pages/console/app.ts';
import { createOps } from '../pages/ops/app.ts';
import { withRecentAnswers } from '../reads/recent-answers.ts';
import { accountEventRoutes } from '../routes/account-events.ts';
import { alertBacktestRoutes } from '../routes/alert-backtests.ts';
import { alertWriteRoutes } from '../routes/alert-writes.ts';
import { alertRoutes } from '../routes/alerts.ts';
import { archiveRoutes } from '../routes/archive/files.ts';
import { compareRoutes } from '../routes/books/compare.ts';
import { executableRoutes } from '../routes/books/executable.ts';
import { feeRoutes } from '../routes/books/fees.ts';
import { orderbookRoutes } from '../routes/books/orderbook.ts';
import { coverageRoutes } from '../routes/coverage.ts';
import { deliveryRoutes } from '../routes/deliveries.ts';
import { asyncApiRoute, docsRoutes, openApiRoute } from '../routes/documents.ts';
import { eventRoutes } from '../routes/events.ts';
import { healthRoutes } from '../routes/health.ts';
import { keyRoutes } from '../routes/keys.ts';
import { marketVenues } from '../routes/market-scope.ts';
import { marketRoutes } from '../routes/markets.ts';
import { priceRoutes } from '../routes/prices.ts';
import { resolutionRoutes } from '../routes/resolutions.ts';
import { rulesRoutes } from '../routes/rules.ts';
import { seriesRoutes } from '../routes/series.ts';
import { streamRoutes } from '../routes/streams.ts';
import { tradeRoutes } from '../routes/trades.ts';
import { venueRoutes } from '../routes/venues.ts';
import { walletRoutes } from '../routes/watched/wallets.ts';
import { watchlistRoutes } from '../routes/watched/watchlist.ts';
import { webhookActionRoutes } from '../routes/webhook-actions.ts';
import { webhookRoutes } from '../routes/webhooks.ts';
import { SOCKET_PATH } from '../streams/port.ts';
import type { ApiDeps, RoutesDeps } from './api-deps.ts';

/** All routes of the API, in the order of the document. */
export function routeTable(deps: RoutesDeps): Route[] {
  const routes: Route[] = [];
  const openApi = openApiRoute(deps, routes);
  routes.push(
    ...docsRoutes(openApi.file),
    ...healthRoutes(deps),
    asyncApiRoute(deps),
    ...webhookRoutes(deps),
    ...webhookActionRoutes(deps),
    ...deliveryRoutes(deps),
    ...accountEventRoutes(deps),
    ...streamRoutes(deps),
    ...alertRoutes(deps),
    ...alertWriteRoutes(deps),
    ...alertBacktestRoutes(deps),
    ...walletRoutes(deps),
    ...watchlistRoutes(deps),
    ...keyRoutes(deps),
    ...archiveRoutes(deps),
    ...venueRoutes(deps),
    ...marketRoutes(deps),
    ...rulesRoutes(deps),
    ...eventRoutes(deps),
    ...priceRoutes(deps),
    ...resolutionRoutes(deps),
    ...seriesRoutes(deps),
    ...tradeRoutes(deps),
    ...coverageRoutes(deps),
    ...orderbookRoutes(deps),
    ...feeRoutes(deps),
    ...executableRoutes(deps),
    ...compareRoutes(deps),
  );
  return [openApi.route, ...routes];
}

const LLMS_SECONDS = 300;
const llmsText = new StaticFile('text/plain; charset=utf-8', LLMS_SECONDS, () => LLMS_TEXT);

/** The request listener of the HTTP API. It neither listens nor owns its dependencies. */
export function createApi(deps: ApiDeps): RequestListener {
  return withRecentAnswers(deps, createApp(deps));
}

/** The codes of a connection that its client has closed. */
const ABANDONED = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
]);

/** A client may abandon any number of answers. The server has no fault then. */
function logUnfinished(log: Logger, error: Error & { code?: string }): void {
  const { code = '' } = error;
  const message = 'answer not completed';
  if (ABANDONED.has(code)) logLimited(log, { level: 'info', fields: { reason: code }, message, kind: code });
  else logLimited(log, { level: 'warn', fields: { err: error }, message });
}

function createApp(deps: ApiDeps): RequestListener {
  const app = new Koa<ApiState>();
  const client = new InternalClient((request, response) => listener(request, response));
  app.on('error', (error) => logUnfinished(deps.log, asError(error)));
  app.use(requestContext(deps));
  app.use(securityHeaders);
  if (deps.corsOrigins.length > 0) app.use(cors(deps.corsOrigins, CSV_META_HEADERS));
  app.use(compression());
  app.use(envelope(deps));
  app.use(targetLength);
  app.use(textGuard);
  if (deps.ops) app.use(createOps(deps, deps.ops));

  app.use(docsSite({ decimalFormat: deps.decimalFormat, venues: marketVenues(deps) }));
  const routes = routeTable(deps);
  if (deps.console) app.use(createConsole(deps, deps.console, createApiCalls(deps, client, routes)));
  const router = new Router<ApiState>({ sensitive: true });
  register(router, deps, routes);
  router.get(SOCKET_PATH, notUpgraded);
  router.get('/llms.txt', (ctx) => sendFile(ctx, llmsText));
  router.post(MCP_PATH, authenticateAnyKey(deps), mcpEndpoint(deps, client));
  app.use(router.routes());
  app.use(unrouted);
  const listener = app.callback();
  return listener;
}

/** The answer to a plain request for the WebSocket. The server handles upgrades before the app. */
const notUpgraded: Middleware<ApiState> = () => {
  throw new ApiError('upgrade_required', 'connect with a WebSocket; /asyncapi.json describes its messages', {
    headers: { Upgrade: 'websocket' },
  });
};

/** The answer without a matching route: 405 when another method matches, else 404. */
const unrouted: Middleware<ApiState> = (ctx) => {
  const layers = (ctx as Partial<ApiContext>).matched ?? [];
  const allowed = [...new Set(layers.flatMap(({ methods }) => methods))].sort();
  if (allowed.length === 0) throw new ApiError('not_found', 'no such route');
  throw methodNotAllowed(allowed);
};
