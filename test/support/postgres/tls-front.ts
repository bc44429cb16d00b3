import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { createAuthority } from '../../../sim/receiver-tls.ts';

type ServerCertificate = Awaited<ReturnType<Awaited<ReturnType<typeof createAuthority>>['issue']>>;

/** The first message of a client that asks for TLS: its length and a number that stands for no version. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** A Postgres that requires TLS: it ends the TLS connection and passes the bytes on to a real server. */
export async function startTlsFront(
  targetUrl: string,
  certificate: ServerCertificate,
): Promise<{ port: number; close(): Promise<void> }> {
  const { hostname, port } = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((socket) => {
    keep(socket);
    socket.once('data', (first) => {
      if (!first.equals(SSL_REQUEST)) {
        socket.destroy();
        return;
      }
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, ...certificate });
      const inner = connect(Number(port), hostname);
      for (const one of [secure, inner]) keep(one);
      secure.pipe(inner).pipe(secure);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
