import type { ServerResponse } from 'node:http';
import type { Scope } from '../../src/domain/values/api-key.ts';
import { asError } from '../../src/domain/values/errors.ts';
import { noteListener } from '../../src/store/accounts/first-steps.ts';
import { type ApiContext, type Caller, isVisitor } from '../context.ts';
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
import type { EndReason, Sink, StreamClient } from '../streams/client.ts';
import { sseOf } from '../streams/frame.ts';
import type { Unsent } from '../streams/outbox.ts';
import type { StreamDeps } from '../streams/port.ts';
import { filterOf } from '../streams/request/request-filter.ts';
import { venueScopes } from './market-scope.ts';

/** Proxies must neither buffer nor change a stream; nginx reads the last header. */
const HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** Pages of the console name a silent server within twelve seconds. */
const CONSOLE_HEARTBEAT_MS = 7_000;

/** The cursor of a request: browsers repeat the address with the header of the last event. */
function requestedCursor(ctx: ApiContext, cursor: string | undefined): string | undefined {
  const last = ctx.get('Last-Event-ID');
  return last === '' ? cursor : last;
}

/**
 * Answers with a stream of server-sent events.
 * @throws ApiError `rate_limited`
 */
function startSse(
  ctx: ApiContext,
  { streams }: StreamDeps,
  { caller, scope }: { caller: Caller; scope: Scope },
  begin: (client: StreamClient) => void,
): void {
  ctx.set(HEADERS);
  if (ctx.method === 'HEAD') {
    ctx.status = 200;
    return;
  }
  const { res } = ctx;
  const { socket } = ctx.req;
  if (res.destroyed || socket.destroyed) return;
  const use = streams.admit(caller.accountId);
  // The stream is written past Koa, which would buffer and compress it.
  ctx.respond = false;
  ctx.compress = false;
  const isPage = ctx.state.session !== undefined || isVisitor(caller);
  const maxHeartbeatMs = isPage ? CONSOLE_HEARTBEAT_MS : undefined;
  const client = streams.open(use, {
    sink: createSseSink(res, streams.lastReadMs),
    caller,
    scope,
    protocol: 'sse',
    socket,
    maxHeartbeatMs,
  });
  res.once('close', () => client.closed());
  res.on('drain', () => streams.resume(client));
  begin(client);
}

/** Without bytes for so long, the system asks the client's whether the connection lives. */
const KEEP_ALIVE_MS = 20_000;
/** The delay before a browser connects again, milliseconds. */
const RETRY_MS = 1_000;

/**
 * A stream over HTTP: server-sent events. The headers of the answer must be set. `lastReadMs` is the time for the reader to read its last
 * messages.
 */
function createSseSink(response: ServerResponse, lastReadMs: number): Sink {
  response.writeHead(200);
  // Node keeps the text of the headers as long as the stream. Sent alone it becomes one string; before a body it would stay a tree of some
  // eighty parts.
  response.flushHeaders();
  // A client that is gone without a word would keep its place until the system gives its bytes up.
  response.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  response.write(`retry: ${RETRY_MS}\n\n`);
  return {
    get isBlocked() {
      return response.writableNeedDrain;
    },
    get unsentBytes() {
      return response.destroyed ? 0 : response.writableLength;
    },
    send(messages) {
      response.write(bytesOf(messages));
    },
    end(reason: EndReason, last) {
      if (response.destroyed) return;
      if (last.length > 0) response.write(bytesOf(last));
      response.end();
      // A reader that does not read would keep its buffer. An unresponsive connection gets no time.
      const limitMs = reason === 'unresponsive' ? 0 : lastReadMs;
      const timer = setTimeout(() => response.destroy(), limitMs);
      timer.unref();
      response.once('close', () => clearTimeout(timer));
    },
  };
}

function bytesOf(messages: readonly Unsent[]): Buffer {
  const [only, ...others] = messages;
  if (only && others.length === 0) return encode(only);
  return Buffer.concat(messages.map(encode));
}

function encode({ message, conflated }: Unsent): Buffer {
  return conflated === 0 ? message.sse : sseOf(message, `,"conflated":${conflated}`);
}

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
