import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { type ClientFrame, clientFrame } from '../../contract/live.ts';
import type { ErrorCode } from '../../errors.ts';
import { isMissing } from '../../http/input.ts';
import type { EndReason, Sink } from '../client.ts';
import { jsonOf } from '../frame.ts';
import type { Unsent } from '../outbox.ts';

/** The codes with which the server closes a WebSocket. */
export const CLOSE_CODES = {
  /** The process stops: connect again, which another process answers. */
  restarting: 1012,
  /** A frame is not text. */
  unsupported: 1003,
  unauthorized: 4401,
  insufficientScope: 4403,
  /** No key arrived in time. */
  authTimeout: 4408,
  /** The reader is too slow: resume with the cursor of the `lagged` messages. */
  lagged: 4409,
  /** Too many frames, or too many invalid ones. */
  rateLimited: 4429,
  failed: 1011,
} as const;

/** A frame of a client, or the reason of its rejection. */
type ReadFrame = { frame: ClientFrame } | { error: { code: ErrorCode; message: string; id?: string } };

/** Reads a frame of text. Never throws. */
export function readFrame(text: string): ReadFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: { code: 'invalid_json', message: 'a frame must be JSON' } };
  }
  const parsed = clientFrame.safeParse(value);
  if (parsed.success) return { frame: parsed.data };
  const id = idOf(value);
  return {
    error: { code: 'invalid_request', message: describe(parsed.error, value), ...(id !== undefined && { id }) },
  };
}

/** The id that the client gave, so that it recognizes the answer. */
function idOf(value: unknown): string | undefined {
  const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined;
  return typeof id === 'string' && id.length <= 64 ? id : undefined;
}

function describe(error: z.ZodError, frame: unknown): string {
  const [issue] = error.issues;
  if (!issue) return 'the frame is not valid';
  const path = issue.path.map(String).join('.');
  if (issue.code === 'invalid_union') return 'type: must be auth, subscribe or unsubscribe';
  if (isMissing(issue, frame)) return `${path}: is required`;
  if (issue.code === 'unrecognized_keys') return `${issue.keys[0]?.slice(0, 64)}: unknown field`;
  if (issue.code === 'invalid_value') return `${path}: must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_type') return `${path || 'frame'}: must be of the type ${issue.expected}`;
  return `${path || 'frame'}: is not valid`;
}

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
