import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { createAuthority } from '../../sim/receiver-tls.ts';

/** A server below HTTP, for receivers that misbehave. */
export interface RawServer {
  readonly port: number;
  /** `https://127.0.0.1:<port>/hook`, even when the server speaks another protocol. */
  readonly url: string;
  /** TCP connections accepted so far. */
  readonly connections: () => number;
  /** Requests with complete headers so far; always 0 for a TCP server. */
  readonly requests: () => number;
  /** Resolves once no accepted connection is open. */
  readonly idle: () => Promise<void>;
  readonly close: () => Promise<void>;
}

let authority: ReturnType<typeof createAuthority> | undefined;

/** One authority per test file, because key generation is slow. */
export function testAuthority(): ReturnType<typeof createAuthority> {
  authority ??= createAuthority();
  return authority;
}

export interface TlsServerOptions extends TlsOptions {
  /** Names on the certificate. Default: the names of this machine. */
  readonly hosts?: readonly string[];
  /** Called once per request, with a socket for any bytes as an answer and a function that sends a TCP reset. */
  readonly onRequest: (socket: TLSSocket, reset: () => void) => void;
}

/** A TLS server with a certificate of `testAuthority`, answering each request with the output of `onRequest`. */
export async function startTlsServer({ hosts, onRequest, ...options }: TlsServerOptions): Promise<RawServer> {
  const ca = await testAuthority();
  let requests = 0;
  const certificate = await ca.issue(hosts ?? ['localhost', '127.0.0.1']);
  const tcpSockets = new Map<number | undefined, Socket>();
  const server = createTlsServer({ ...certificate, ...options }, (socket) => {
    let text = '';
    socket.on('error', ignoreHangUp);
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      text = '';
      requests += 1;
      onRequest(socket, () => tcpSockets.get(socket.remotePort)?.resetAndDestroy());
    });
  });
  server.on('tlsClientError', ignoreHangUp);
  server.on('connection', (socket: Socket) => tcpSockets.set(socket.remotePort, socket));
  return listen(server, () => requests);
}

/** A TCP server that passes each accepted connection to `onSocket` and sends nothing by itself. */
export function startTcpServer(onSocket: (socket: Socket) => void): Promise<RawServer> {
  const server = createTcpServer((socket) => {
    onSocket(socket);
    // An unread socket would never notice that the other side disconnected.
    socket.resume();
  });
  return listen(server, () => 0);
}

/** A free port of 127.0.0.1. */
export async function closedPort(): Promise<number> {
  const server = await startTcpServer((socket) => socket.destroy());
  await server.close();
  return server.port;
}

async function listen(server: Server, requests: () => number): Promise<RawServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  // On a TLS server too this is the TCP socket, before any handshake.
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', ignoreHangUp);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://127.0.0.1:${port}/hook`,
    connections: () => connections,
    requests,
    async idle() {
      await Promise.all([...sockets].map((socket) => once(socket, 'close')));
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Ignores the errors of connections that the sender closes, as these tests expect. */
function ignoreHangUp(): void {
  // Without a listener the process would end.
}
