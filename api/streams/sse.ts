import type { Scope } from '../../src/domain/values/api-key.ts';
import { isVisitor } from '../access/visitor.ts';
import type { ApiContext, Caller } from '../context.ts';
import type { StreamClient } from './client.ts';
import type { StreamDeps } from './port.ts';
import { createSseSink } from './sse-sink.ts';

/** Proxies must neither buffer nor change a stream; nginx reads the last header. */
const HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** Pages of the console name a silent server within twelve seconds. */
const CONSOLE_HEARTBEAT_MS = 7_000;

/** The cursor of a request: browsers repeat the address with the header of the last event. */
export function requestedCursor(ctx: ApiContext, cursor: string | undefined): string | undefined {
  const last = ctx.get('Last-Event-ID');
  return last === '' ? cursor : last;
}

/**
 * Answers with a stream of server-sent events.
 * @throws ApiError `rate_limited`
 */
export function startSse(
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
