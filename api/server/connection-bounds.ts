import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Cidr, networkOf } from '../../src/domain/webhooks/address-policy.ts';
import { shouldLog } from '../../src/observe/failure-streaks.ts';
import type { Logger } from '../../src/observe/logger.ts';

interface ConnectionBounds {
  maxConnections: number;
  maxConnectionsPerAddress: number;
  /** Their addresses stand for many clients. */
  trustedProxies: readonly Cidr[];
  stalledMs: number;
  checkEveryMs: number;
}

/** A connection that had bytes waiting for its client when it was last looked at. */
interface Waiting {
  /** Bytes that the client had taken by then, in whole writes. */
  takenBytes: number;
  /** Number of checks since the client last took bytes. A process that was stopped made no checks, so its pause does not count. */
  looks: number;
}

/**
 * Closes connections beyond the bounds, of all clients together and of one address (an IPv6 /64), and those whose client does
 * not take the sent bytes: an answer that waits in memory for a client costs the server and not the client.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds, log: Logger): void {
  const sockets = new Map<Socket, Waiting | null>();
  const perNetwork = new Map<string, number>();
  let refused = 0;
  server.maxConnections = bounds.maxConnections;

  function refuse(reason: string): void {
    refused += 1;
    if (shouldLog(refused)) log.warn({ reason, refused }, 'connection refused');
  }

  server.on('drop', () => refuse('too many connections'));
  server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '', bounds.trustedProxies);
    // Gone before we looked.
    if (network === null) return;
    const { text, isWithin } = network;
    const open = perNetwork.get(text) ?? 0;
    if (!isWithin && open >= bounds.maxConnectionsPerAddress) {
      refuse('too many connections of one address');
      socket.destroy();
      return;
    }
    perNetwork.set(text, open + 1);
    sockets.set(socket, null);
    socket.once('close', () => {
      sockets.delete(socket);
      const left = (perNetwork.get(text) ?? 1) - 1;
      if (left > 0) perNetwork.set(text, left);
      else perNetwork.delete(text);
    });
  });

  const sweep = setInterval(() => {
    for (const [socket, before] of sockets) {
      const now = look(socket, before);
      if (now !== null && now.looks * bounds.checkEveryMs >= bounds.stalledMs) {
        log.debug({ waitingBytes: socket.writableLength }, 'client does not take its answer');
        socket.destroy();
      } else if (now !== before) {
        sockets.set(socket, now);
      }
    }
  }, bounds.checkEveryMs);
  sweep.unref();
  server.on('close', () => clearInterval(sweep));
}

/** Null when nothing waits for the client. */
function look(socket: Socket, before: Waiting | null): Waiting | null {
  if (socket.writableLength === 0) return null;
  const takenBytes = socket.bytesWritten - socket.writableLength;
  return { takenBytes, looks: before?.takenBytes === takenBytes ? before.looks + 1 : 0 };
}
