import { createServer, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { newId } from '../../src/domain/values/ids.ts';
import type { Cidr } from '../../src/domain/webhooks/address-policy.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { errorBody } from '../middleware/envelope.ts';
import { SECURITY_HEADERS } from '../middleware/security-headers.ts';
import { boundConnections } from './connection-bounds.ts';

/** Requests get this long to finish once we stop; then their connections are cut. */
const DRAIN_MS = 10_000;

/** The share of the server that one client may hold (docs/api.md, "Limits of a request"). */
export interface HttpLimits {
  /** Connections at once, of all clients and of one address; addresses of `trustedProxies` count for all only. */
  maxConnections: number;
  maxConnectionsPerAddress: number;
  trustedProxies: readonly Cidr[];
  /** Request line and headers together. */
  maxHeaderBytes: number;
  /** Until the headers are there, and the whole request. */
  headersMs: number;
  requestMs: number;
  /** Between two requests. Longer than the minute that proxies keep a connection, so that the proxy closes it first. */
  keepAliveMs: number;
  /** The time for a client to take a finished answer. */
  stalledMs: number;
  /** The interval between checks of connections: a late one is cut within this time. */
  checkEveryMs: number;
}

const DEFAULTS: HttpLimits = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 1_000,
  trustedProxies: [],
  maxHeaderBytes: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 65_000,
  stalledMs: 60_000,
  checkEveryMs: 5_000,
};

/**
 * The HTTP server of the API. It answers parser errors in the envelope too. Requests per connection have no bound:
 * beyond a bound Node answers 503 outside of the envelope, and a proxy distributes clients better.
 */
export function createHttpServer(listener: RequestListener, log: Logger, over: Partial<HttpLimits> = {}): Server {
  const limits = { ...DEFAULTS, ...over };
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      requestTimeout: limits.requestMs,
      headersTimeout: limits.headersMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
    },
    listener,
  );
  boundConnections(server, limits, log);
  // Node answers an unknown expectation with a bare 417; a server may ignore it (RFC 9110 section 10.1.1).
  server.on('checkExpectation', listener);
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
  for (let i = 0; i < SECURITY_HEADERS.length; i += 2) {
    headers.push(`${SECURITY_HEADERS[i]}: ${SECURITY_HEADERS[i + 1]}`);
  }
  return `${headers.join('\r\n')}\r\n\r\n${body}`;
}

/** Stops accepting, lets requests in flight finish, and resolves when the last connection is gone. */
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
