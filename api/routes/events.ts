import { z } from 'zod';
import { rowPresenter } from '../../src/domain/wire/fields.ts';
import { MARKET_EVENT } from '../../src/domain/wire/market-data.ts';
import { findEvent, listEvents, type StoredEvent } from '../../src/store/catalog/market-event-reads.ts';
import { listMarkets } from '../../src/store/catalog/market-list.ts';
import {
  eventListQuery,
  eventMeta,
  eventQuery,
  type MarketEventBody,
  marketEvent,
  marketEventExample,
  marketEventWithMarkets,
  marketEventWithMarketsExample,
} from '../contract/events/market-event.ts';
import { ApiError } from '../errors.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { presentMarket } from '../reads/market-search.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import { venueScopes } from './market-scope.ts';
import { toStatuses } from './markets.ts';

/** GET /v1/{venue}/events and /events/{event_id}. */
export function eventRoutes(deps: ReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const placeOf = (scope: string, cursor: string | undefined) =>
    cursor === undefined ? undefined : deps.cursors.decode(scope, cursor);
  const metaOf = (scope: string, next: readonly string[] | undefined) => ({
    next_cursor: next === undefined ? null : deps.cursors.encode(scope, next),
  });
  return [
    marketRoute(
      {
        path: '/v1/:venue/events',
        operationId: 'listEvents',
        summary: 'List events',
        description: 'The event that oddswire stored last comes first.',
        query: eventListQuery,
        answer: {
          description: 'Events.',
          data: z.array(marketEvent),
          example: [marketEventExample],
          meta: eventMeta,
          metaExample: { next_cursor: null },
        },
        errors: ['invalid_cursor'],
      },
      ({ params, query: { cursor, limit, category, ...given } }) => {
        const { name, venues } = scopeOf(params.venue);
        const statuses = given.status && toStatuses(given.status);
        const text = given.q?.trim() || undefined;
        const scope = JSON.stringify(['events', name, statuses, category, text]);
        return {
          key: [scope, limit, cursor],
          load: async () => {
            const [after] = placeOf(scope, cursor) ?? [];
            const { events, next } = await listEvents(deps.db, {
              venues,
              limit,
              ...(statuses !== undefined && { statuses }),
              ...(category !== undefined && { category }),
              ...(text !== undefined && { text }),
              ...(after !== undefined && { after }),
            });
            return {
              data: events.map(presentEvent),
              meta: metaOf(scope, next === undefined ? undefined : [next]),
              freshness: 'latest',
            };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/events/:event_id',
        operationId: 'getEvent',
        summary: 'Read an event with its markets',
        description: '`limit` and `cursor` page through its markets.',
        query: eventQuery,
        answer: {
          description: 'The event.',
          data: marketEventWithMarkets,
          example: marketEventWithMarketsExample,
          meta: eventMeta,
          metaExample: { next_cursor: null },
        },
        errors: ['invalid_cursor'],
      },
      ({ params, query: { cursor, limit } }) => {
        const { name, venues } = scopeOf(params.venue);
        const eventId = params.event_id;
        const scope = JSON.stringify(['event', name, eventId]);
        return {
          key: ['event', name, eventId, limit, cursor],
          load: async () => {
            const after = placeOf(scope, cursor);
            const event = await findEvent(deps.db, venues, eventId);
            if (!event) throw new ApiError('event_not_found', 'no such event');
            const { markets, next } = await listMarkets(deps.db, {
              venues: [event.venue],
              eventId,
              limit,
              ...(after && { after }),
            });
            return {
              data: { ...presentEvent(event), markets: markets.map(presentMarket) },
              meta: metaOf(scope, next),
              freshness: 'latest',
            };
          },
        };
      },
    ),
  ];
}

const presentEvent: (event: StoredEvent) => MarketEventBody = rowPresenter(MARKET_EVENT);
