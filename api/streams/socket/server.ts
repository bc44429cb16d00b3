import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { parseUrl } from '../../../src/domain/values/parse-url.ts';
import { logLimited } from '../../../src/observe/limited-lines.ts';
import { hostProblem } from '../../access/host-header.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { authenticateKey, bearerOf } from '../../middleware/authenticate.ts';
import { errorBody, toApiError } from '../../middleware/envelope.ts';
import { requestIdOf } from '../../middleware/request-context.ts';
import { SECURITY_HEADERS } from '../../middleware/security-headers.ts';
import { SOCKET_PATH } from '../port.ts';
import { SocketConnection, type SocketDeps } from './connection.ts';

/** 100 market ids of the longest kind fit. */
const MAX_FRAME_BYTES = 64 * 1024;

interface ServerDeps extends SocketDeps {
  corsOrigins: readonly string[];
}

/** Serves GET /v1/stream as a WebSocket on an HTTP server. Other upgrades are refused. */
export function serveSockets(server: Server, deps: ServerDeps): void {
  const options = {
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    // Compression would cost memory per connection.
    perMessageDeflate: false,
    clientTracking: false,
    // The types of ws lack this option.
    closeTimeout: deps.streams.lastReadMs,
  };
  const sockets = new WebSocketServer(options);
  server.on('upgrade', (request: IncomingMessage, connection: Duplex, head: Buffer) => {
    connection.on('error', (error) => deps.log.debug({ err: error }, 'connection of a WebSocket failed'));
    upgrade(sockets, deps, request, connection as Socket, head).catch((error: unknown) =>
      refuse(request, connection, error, deps),
    );
  });
}

/** @throws ApiError that refuses the upgrade */
async function upgrade(
  sockets: WebSocketServer,
  deps: ServerDeps,
  request: IncomingMessage,
  connection: Socket,
  head: Buffer,
): Promise<void> {
  checkRequest(request, deps);
  deps.streams.requireReady();
  const key = bearerOf(request.headers);
  const caller = key === undefined ? undefined : await authenticateKey(deps, request, key);
  const use = caller && deps.streams.admit(caller.accountId);
  if (connection.destroyed) {
    use?.release();
    return;
  }
  let isUpgraded = false;
  try {
    sockets.handleUpgrade(request, connection, head, (socket) => {
      isUpgraded = true;
      const served = new SocketConnection(socket, connection, request, deps);
      if (caller && use) served.begin(caller, use);
      else served.awaitKey();
    });
  } finally {
    // ws has answered an invalid handshake itself.
    if (!isUpgraded) use?.release();
  }
}

/** Browsers send no preflight for a WebSocket, so the server compares the origin. */
function checkRequest(request: IncomingMessage, { corsOrigins }: Pick<ServerDeps, 'corsOrigins'>): void {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  if (path !== SOCKET_PATH) throw new ApiError('not_found', 'no such WebSocket');
  const given = [...new Set(new URLSearchParams(query).keys())].slice(0, 20);
  if (given.length > 0) {
    const message = 'is not a parameter: the frames have the input of a WebSocket';
    throw invalidRequest(given.map((name) => ({ path: name.slice(0, 200), message })));
  }
  const host = hostProblem(request);
  if (host !== null) throw invalidRequest([{ path: 'headers.host', message: host }]);
  const { origin } = request.headers;
  if (origin === undefined || corsOrigins.includes('*') || corsOrigins.includes(origin)) return;
  const isOwn = request.headers.host !== undefined && parseUrl(origin)?.host === request.headers.host;
  if (!isOwn) throw new ApiError('cross_origin', 'pages of this origin may not open a stream');
}

/** Answers with the envelope, and closes the connection. Bytes that follow the request are ignored, so that they do not reset it. */
function refuse(request: IncomingMessage, connection: Duplex, thrown: unknown, deps: ServerDeps): void {
  const error = toApiError(thrown);
  if (error.status === 500) {
    logLimited(deps.log, { level: 'error', fields: { err: thrown }, message: 'WebSocket not opened' });
  }
  if (connection.destroyed) return;
  const requestId = requestIdOf(request.headers['x-request-id']);
  const body = errorBody(error, requestId, deps.now());
  const lines = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'Connection: close',
    ...Object.entries(error.headers).map(([name, value]) => `${name}: ${value}`),
  ];
  for (let i = 0; i < SECURITY_HEADERS.length; i += 2) lines.push(`${SECURITY_HEADERS[i]}: ${SECURITY_HEADERS[i + 1]}`);
  connection.resume();
  connection.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  const timer = setTimeout(() => connection.destroy(), deps.streams.lastReadMs);
  connection.once('close', () => clearTimeout(timer));
}
