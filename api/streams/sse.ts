import type { ServerResponse } from 'node:http';
import type { Scope } from '../../src/domain/values/api-key.ts';
import { type ApiContext, type Caller, isVisitor } from '../context.ts';
import type { EndReason, Sink, StreamClient } from './client.ts';
import { sseOf } from './frame.ts';
import type { Unsent } from './outbox.ts';
import type { StreamDeps } from './port.ts';

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
