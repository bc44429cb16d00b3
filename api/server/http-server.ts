import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { newId } from '../../src/domain/values/ids.ts';
import { type Cidr, networkOf } from '../../src/domain/webhooks/address-policy.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { OpenCounts } from '../access/open-counts.ts';
import { errorBody } from '../middleware/envelope.ts';
import { SECURITY_HEADERS } from '../middleware/security-headers.ts';
import type { OpenStreams } from '../streams/port.ts';

/** The time for requests in flight after a stop. Then the server closes their connections. */
const DRAIN_MS = 10_000;

/** The limits of connections and requests (docs/api.md, "Limits of a request"). */
interface HttpLimits {
  /** Concurrent connections: in total, and per address. The second bound does not apply to `trustedProxies`. */
  maxConnections: number;
  maxConnectionsPerAddress: number;
  trustedProxies: readonly Cidr[];
  /** Request line and headers together. */
  maxHeaderBytes: number;
  /** The time limits for the headers and for the whole request. */
  headersMs: number;
  requestMs: number;
  /** The idle time between two requests. Longer than the minute of common proxies, so that the proxy closes the connection first. */
  keepAliveMs: number;
  /** The time for a client to read a finished answer. */
  stalledMs: number;
  /** The interval between connection checks. A late connection is closed within this time. */
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
 * The HTTP server of the API. Parser errors get the envelope too. The requests per connection are unbounded, because beyond a bound
 * Node answers 503 without the envelope.
 */
export function createHttpServer(
  listener: RequestListener,
  log: Logger,
  over: Partial<HttpLimits> = {},
  streams?: Pick<OpenStreams, 'exempt'>,
): Server {
  const limits = { ...DEFAULTS, ...over };
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      requestTimeout: limits.requestMs,
      headersTimeout: limits.headersMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      // Node's own answer has no body; see host-header.ts.
      requireHostHeader: false,
    },
    listener,
  );
  const exempt = boundConnections(server, limits, log);
  if (streams) streams.exempt = exempt;
  warnOfUntrustedProxy(server, limits.trustedProxies, log);
  // Ignores unknown expectations (RFC 9110 section 10.1.1). By default Node answers 417 without a body.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    log.debug({ code: error.code }, 'invalid request line or headers');
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(parserErrorAnswer(error.code));
  });
  return server;
}

function parserErrorAnswer(code: string | undefined): string {
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
      ? 'the request was too slow'
      : 'the request is not valid HTTP/1.1';
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

/** Stops accepting connections, lets requests in flight finish, and resolves when the last connection has closed. */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A finished request leaves its connection idle; the sweep closes idle connections.
  const sweep = setInterval(() => server.closeIdleConnections(), 100);
  const limit = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  try {
    await closed;
  } finally {
    clearInterval(sweep);
    clearTimeout(limit);
  }
}

const HEADERS = ['x-forwarded-for', 'forwarded'] as const;

/**
 * Warns at the first request with a header of a proxy from an address outside the trusted proxies. Such a proxy is probably the operator's
 * own: without its address in TRUSTED_PROXIES all of its clients share the limits of one address.
 */
function warnOfUntrustedProxy(server: Server, trusted: readonly Cidr[], log: Logger): void {
  server.on('request', function check({ headers, socket }: IncomingMessage) {
    const header = HEADERS.find((name) => headers[name] !== undefined);
    if (header === undefined || networkOf(socket.remoteAddress ?? '', trusted)?.isWithin !== false) return;
    server.off('request', check);
    log.warn(
      { header, peer: socket.remoteAddress, variable: 'TRUSTED_PROXIES' },
      'a header with the addresses of clients is ignored: if the peer is your proxy, add its address to TRUSTED_PROXIES',
    );
  });
}

interface ConnectionBounds {
  maxConnections: number;
  maxConnectionsPerAddress: number;
  /** Exempt from the bound per address, because a proxy carries many clients. */
  trustedProxies: readonly Cidr[];
  stalledMs: number;
  checkEveryMs: number;
}

/** A connection with unsent bytes at the last check. */
interface Unsent {
  /** Bytes that the client had accepted, in whole writes. */
  acceptedBytes: number;
  /** Checks since the client last accepted bytes. A paused process makes no checks, so its pause does not count. */
  checks: number;
}

/**
 * Closes connections beyond two bounds: in total, and per address (an IPv6 /64). Also closes connections whose client does not
 * accept the sent bytes, because an unsent answer occupies memory of the server.
 *
 * Returns a function that excludes an open connection from both bounds: streams have bounds of their own.
 */
function boundConnections(server: Server, bounds: ConnectionBounds, log: Logger): (socket: Socket) => void {
  const sockets = new Map<Socket, Unsent | null>();
  const exempted = new WeakSet<Socket>();
  const perNetwork = new OpenCounts();
  const networks = new WeakMap<Socket, string>();
  let refused = 0;
  server.maxConnections = bounds.maxConnections;

  function logRejection(reason: string): void {
    refused += 1;
    logLimited(log, { level: 'warn', fields: { reason, refused }, message: 'connection rejected', kind: reason });
  }

  server.on('drop', () => logRejection('too many connections'));
  server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '', bounds.trustedProxies);
    // The connection has already closed.
    if (network === null) return;
    const { text, isWithin } = network;
    if (!isWithin && perNetwork.of(text) >= bounds.maxConnectionsPerAddress) {
      logRejection('too many connections of one address');
      socket.destroy();
      return;
    }
    perNetwork.add(text);
    sockets.set(socket, null);
    networks.set(socket, text);
    socket.once('close', () => {
      sockets.delete(socket);
      if (exempted.has(socket)) server.maxConnections -= 1;
      else perNetwork.remove(text);
    });
  });

  const sweep = setInterval(() => {
    for (const [socket, before] of sockets) {
      const now = check(socket, before);
      if (now !== null && now.checks * bounds.checkEveryMs >= bounds.stalledMs) {
        log.debug({ waitingBytes: socket.writableLength }, 'client does not read its answer');
        socket.destroy();
      } else if (now !== before) {
        sockets.set(socket, now);
      }
    }
  }, bounds.checkEveryMs);
  sweep.unref();
  server.on('close', () => clearInterval(sweep));

  return (socket) => {
    const network = networks.get(socket);
    if (network === undefined || exempted.has(socket) || socket.destroyed) return;
    exempted.add(socket);
    server.maxConnections += 1;
    perNetwork.remove(network);
  };
}

/** Null without unsent bytes. */
function check(socket: Socket, before: Unsent | null): Unsent | null {
  if (socket.writableLength === 0) return null;
  const acceptedBytes = socket.bytesWritten - socket.writableLength;
  return { acceptedBytes, checks: before?.acceptedBytes === acceptedBytes ? before.checks + 1 : 0 };
}
