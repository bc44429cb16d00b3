import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { EndReason, Sink } from '../client.ts';
import { jsonOf } from '../frame.ts';
import type { Unsent } from '../outbox.ts';
import { CLOSE_CODES } from './frames.ts';

/** A connection with more unsent bytes than this has a slow reader. */
const BLOCKED_BYTES = 64 * 1024;

const CLOSING: Readonly<Record<EndReason, readonly [number, string]>> = {
  client: [1000, ''],
  lagged: [CLOSE_CODES.lagged, 'lagged: resume with the cursor'],
  memory: [CLOSE_CODES.lagged, 'lagged: resume with the cursor'],
  unauthorized: [CLOSE_CODES.unauthorized, 'the key was revoked or has expired'],
  draining: [CLOSE_CODES.restarting, 'connect again'],
  unresponsive: [CLOSE_CODES.failed, 'no answer to a ping'],
  protocol: [CLOSE_CODES.rateLimited, 'too many frames'],
  failed: [CLOSE_CODES.failed, 'the server failed'],
};

/** A stream over a WebSocket: a frame per message, and one write for all of them. */
export function createSocketSink(socket: WebSocket, connection: Duplex): Sink {
  const sendAll = (messages: readonly Unsent[]) => {
    connection.cork();
    for (const message of messages) socket.send(textOf(message));
    connection.uncork();
  };
  return {
    get isBlocked() {
      return socket.bufferedAmount > BLOCKED_BYTES;
    },
    get unsentBytes() {
      return socket.readyState === socket.CLOSED ? 0 : socket.bufferedAmount;
    },
    send: sendAll,
    end(reason, last) {
      if (reason === 'unresponsive') {
        socket.terminate();
        return;
      }
      // Another close frame waits already: a cut connection would lose it.
      if (socket.readyState !== socket.OPEN) return;
      sendAll(last);
      socket.close(...CLOSING[reason]);
    },
  };
}

function textOf({ message, subscriptions, conflated }: Unsent): string {
  const count = conflated === 0 ? '' : `,"conflated":${conflated}`;
  return jsonOf(message, `${count},"subs":${JSON.stringify(subscriptions)},"cursor":"${message.cursor}"`);
}
