import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Cidr, networkOf } from '../../src/domain/webhooks/address-policy.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { OpenCounts } from '../access/open-counts.ts';

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
export function boundConnections(server: Server, bounds: ConnectionBounds, log: Logger): (socket: Socket) => void {
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
