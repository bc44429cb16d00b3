import type { RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { asError } from '../src/domain/errors.ts';
import type { ApiContext, ApiDeps, ApiState } from './deps.ts';
import { ApiError } from './errors.ts';
import { compression } from './middleware/compression.ts';
import { envelope } from './middleware/envelope.ts';
import { requestContext } from './middleware/request-context.ts';
import { textGuard } from './middleware/text-guard.ts';
import { opsGuard } from './ops/ops-guard.ts';
import { queueBoard } from './ops/queue-board.ts';
import { withRecentAnswers } from './recent-answers.ts';
import { alertRoutes } from './routes/alerts.ts';
import { deliveryRoutes } from './routes/deliveries.ts';
import { healthRoutes } from './routes/health.ts';
import { marketRoutes } from './routes/markets.ts';
import { orderbookRoutes } from './routes/orderbook.ts';
import { priceRoutes } from './routes/prices.ts';
import { seriesRoutes } from './routes/series.ts';
import { tradeRoutes } from './routes/trades.ts';
import { venueRoutes } from './routes/venues.ts';
import { walletRoutes } from './routes/wallets.ts';
import { webhookRoutes } from './routes/webhooks.ts';

/** The HTTP API (DESIGN section 4) as a server takes it. It listens nowhere and owns none of what it is given. */
export function createApi(deps: ApiDeps): RequestListener {
  return withRecentAnswers(deps, createApp(deps).callback());
}

function createApp(deps: ApiDeps): Koa<ApiState> {
  const app = new Koa<ApiState>();
  app.on('error', (error) => deps.log.warn({ err: asError(error) }, 'answer not completed'));
  app.use(requestContext(deps));
  app.use(compression());
  app.use(envelope(deps));
  app.use(textGuard);
  if (deps.ops) app.use(underOps([opsGuard(deps.ops.password), queueBoard(deps, deps.ops)]));

  const router = new Router<ApiState>({ sensitive: true });
  healthRoutes(router, deps);
  // Before the market routes, whose first segment is any venue.
  webhookRoutes(router, deps);
  deliveryRoutes(router, deps);
  alertRoutes(router, deps);
  walletRoutes(router, deps);
  venueRoutes(router, deps);
  marketRoutes(router, deps);
  priceRoutes(router, deps);
  seriesRoutes(router, deps);
  tradeRoutes(router, deps);
  orderbookRoutes(router, deps);
  app.use(router.routes());
  app.use(unrouted);
  return app;
}

/** What no route took: 405 where another method would do, else 404. */
const unrouted: Middleware<ApiState> = (ctx) => {
  const layers = (ctx as Partial<ApiContext>).matched ?? [];
  const allowed = [...new Set(layers.flatMap(({ methods }) => methods))].sort();
  if (allowed.length === 0) throw new ApiError('not_found', 'no such route');
  throw new ApiError('method_not_allowed', `allowed here: ${allowed.join(', ')}`, {
    headers: { Allow: allowed.join(', ') },
  });
};

/** Runs middleware for /ops and below only. */
function underOps([guard, pages]: readonly [Middleware<ApiState>, Middleware<ApiState>]): Middleware<ApiState> {
  return async (ctx, next) => {
    if (ctx.path !== '/ops' && !ctx.path.startsWith('/ops/')) return next();
    return guard(ctx, () => pages(ctx, next) as Promise<unknown>);
  };
}
