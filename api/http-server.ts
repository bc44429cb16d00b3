import { createServer, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { newId } from '../src/domain/ids.ts';
import type { Logger } from '../src/observe/logger.ts';
import { errorBody } from './middleware/envelope.ts';

/** Requests get this long to finish once we stop; then their connections are cut. */
const DRAIN_MS = 10_000;

/** The HTTP server of the API. What the parser refuses is answered in the envelope too. */
export function createHttpServer(listener: RequestListener, log: Logger): Server {
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000 }, listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    log.debug({ code: error.code }, 'bad request line or headers');
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(refusal(error.code));
  });
  return server;
}

function refusal(code: string | undefined): string {
  const isTooLarge = code === 'HPE_HEADER_OVERFLOW';
  const isSlow = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const status = isTooLarge
    ? '431 Request Header Fields Too Large'
    : isSlow
      ? '408 Request Timeout'
      : '400 Bad Request';
  const message = isTooLarge
    ? 'the headers are too large'
    : isSlow
      ? 'the request came too slowly'
      : 'this is not HTTP/1.1';
  const requestId = newId('req');
  const body = errorBody({ code: 'invalid_request', message }, requestId, Date.now());
  const headers = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  return `${headers.join('\r\n')}\r\n\r\n${body}`;
}

/** Stops accepting, lets requests under way finish, and resolves when the last connection is gone. */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Requests that finish from now on leave their connection idle, and idle ones are closed.
  const sweep = setInterval(() => server.closeIdleConnections(), 100);
  const limit = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  try {
    await closed;
  } finally {
    clearInterval(sweep);
    clearTimeout(limit);
  }
}
