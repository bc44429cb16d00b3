import WebSocket from 'ws';
import { processLag } from '../../observe/process-lag.ts';
import type { VenueFeed } from './port.ts';

/** Characters of a refusal that are read. */
const MAX_REFUSAL_LENGTH = 2_048;

interface SocketEvents {
  onOpen(): void;
  onFrame(text: string): void;
  /** A ping, or the answer to one. */
  onHeard(): void;
  /** The venue refused the credentials. */
  onRefused(detail: string): void;
  onDisconnected(detail: string): void;
}

interface SocketOptions {
  readonly feed: VenueFeed;
  /** The headers of the handshake, and the time for which they are signed, epoch milliseconds. */
  readonly headers: Readonly<Record<string, string>>;
  readonly sentMs: number;
  readonly handshakeMs: number;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Whether the connection still uses this socket: a socket that was replaced must not change the state of its successor. */
  readonly isCurrent: (socket: WebSocket) => boolean;
  readonly events: SocketEvents;
}

/** Begins the handshake of a socket. Until it is open, a refusal or an error ends it. */
export function openFeedSocket(options: SocketOptions): WebSocket {
  const { feed, headers, sentMs, now, isCurrent, events } = options;
  // Longer while this process runs late.
  const handshakeMs = processLag().stretched(options.handshakeMs);
  const lag = processLag().begin();
  const socket = new WebSocket(feed.url, {
    headers,
    handshakeTimeout: handshakeMs,
    maxPayload: feed.limits.maxFrameBytes,
    perMessageDeflate: false,
  });
  const ifCurrent =
    <Args extends unknown[]>(act: (...args: Args) => void) =>
    (...args: Args) => {
      if (isCurrent(socket)) act(...args);
    };
  let isOpen = false;
  socket.on(
    'open',
    ifCurrent(() => {
      isOpen = true;
      events.onOpen();
    }),
  );
  socket.on(
    'message',
    ifCurrent((data: Buffer) => events.onFrame(data.toString('utf8'))),
  );
  const sawFrame = ifCurrent(() => events.onHeard());
  socket.on('ping', sawFrame);
  socket.on('pong', sawFrame);
  socket.on('unexpected-response', (_request, response) => {
    let body = '';
    const nowMs = now();
    const done = ifCurrent(() => {
      const { statusCode = 0, headers: answered } = response;
      const answer = { statusCode, headers: answered, body, sentMs, nowMs };
      const { detail, isOfCredentials } = feed.describeRefusal(answer);
      if (isOfCredentials) events.onRefused(detail);
      else events.onDisconnected(detail);
      response.destroy();
      socket.terminate();
    });
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      body += chunk;
      if (body.length >= MAX_REFUSAL_LENGTH) done();
    });
    response.setTimeout(handshakeMs, done);
    response.on('close', done);
    response.on('error', done);
  });
  socket.on(
    'error',
    ifCurrent((error: Error) => {
      const isOwnDelay = !isOpen && lag.wasLate();
      const why = isOwnDelay ? ` while this process was late by ${Math.round(lag.lateMs())} ms` : '';
      events.onDisconnected(`${error.message}${why}`);
    }),
  );
  socket.on(
    'close',
    ifCurrent((code: number) => events.onDisconnected(`closed with ${code}`)),
  );
  return socket;
}
