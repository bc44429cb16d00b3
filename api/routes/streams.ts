import { asError } from '../../src/domain/values/errors.ts';
import { noteListener } from '../../src/store/accounts/first-steps.ts';
import { EVENT_EXAMPLES } from '../contract/events/event.ts';
import {
  eventStreamMessage,
  eventStreamQuery,
  streamMessage,
  streamMessageExample,
  streamQuery,
} from '../contract/live.ts';
import { MARKET_GROUP, type Route, streamRoute, WEBHOOKS_GROUP } from '../http/route.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import type { StreamDeps } from '../streams/port.ts';
import { filterOf } from '../streams/request/request-filter.ts';
import { requestedCursor, startSse } from '../streams/sse.ts';
import { venueScopes } from './market-scope.ts';

/** The stream of a request over HTTP has one subscription, which needs no name. */
const ONLY = '';

/** GET /v1/{venue}/stream and /v1/events/stream: server-sent events. */
export function streamRoutes(deps: ReadDeps & StreamDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    streamRoute(
      {
        path: '/v1/events/stream',
        operationId: 'streamAccountEvents',
        summary: 'Follow the events of the account',
        description:
          'Server-sent events. `event` is the type, `data` the body that a webhook gets, `id` the cursor. Sends events without a webhook ' +
          'too, and no test events. A cursor continues while its events are stored.',
        tag: 'streams',
        group: WEBHOOKS_GROUP,
        query: eventStreamQuery,
        answer: { description: 'The events.', data: eventStreamMessage, example: EVENT_EXAMPLES.price_alert },
        errors: ['invalid_cursor'],
      },
      async ({ ctx, caller, query }) => {
        deps.streams.requireReady();
        const cursor = requestedCursor(ctx, query.cursor);
        const position = cursor === undefined ? undefined : deps.streams.events.decode(caller.accountId, cursor);
        // The page Live of the console is no program. The stream does not need the note, which the next one of the account repeats.
        if (ctx.state.session === undefined) {
          await noteListener(deps.db, caller.accountId).catch((error: unknown) => {
            ctx.state.log.warn({ err: asError(error) }, 'first stream of an account not noted');
          });
        }
        startSse(ctx, deps, { caller, scope: WEBHOOKS_GROUP.scope }, (client) =>
          deps.streams.followEvents(client, caller.accountId, position),
        );
      },
    ),
    streamRoute(
      {
        path: '/v1/:venue/stream',
        operationId: 'streamMarkets',
        summary: 'Follow prices, trades, books, candles, markets and executable prices',
        description:
          'Server-sent events. `event` is the type, `id` the cursor. A heartbeat states that the stream is complete; its absence means ' +
          'that this is unknown.',
        tag: 'streams',
        group: MARKET_GROUP,
        query: streamQuery,
        answer: { description: 'The changes.', data: streamMessage, example: streamMessageExample },
        errors: ['invalid_cursor', 'market_not_found'],
      },
      async ({ ctx, caller, params, query }) => {
        const scope = scopeOf(params.venue);
        deps.streams.requireReady();
        const cursor = requestedCursor(ctx, query.cursor);
        const position = cursor === undefined ? undefined : deps.streams.cursors.decode(cursor);
        const filter = await filterOf(deps.db, scope, query);
        deps.streams.requireRoom(caller.accountId, filter);
        const start = { hasSnapshot: query.snapshot ?? false, ...(position !== undefined && { position }) };
        startSse(ctx, deps, { caller, scope: MARKET_GROUP.scope }, (client) => {
          deps.streams.subscribe(client, ONLY, filter, start);
        });
      },
    ),
  ];
}
