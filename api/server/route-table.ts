import type { Route } from '../http/route.ts';
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
import type { RoutesDeps } from './api-deps.ts';

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
