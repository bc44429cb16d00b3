import type { ServerResponse } from 'node:http';
import type { EndReason, Sink } from './client.ts';
import { sseOf } from './frame.ts';
import type { Unsent } from './outbox.ts';

/** Without bytes for so long, the system asks the client's whether the connection lives. */
const KEEP_ALIVE_MS = 20_000;
/** The delay before a browser connects again, milliseconds. */
const RETRY_MS = 1_000;

/**
 * A stream over HTTP: server-sent events. The headers of the answer must be set. `lastReadMs` is the time for the reader to read its last
 * messages.
 */
export function createSseSink(response: ServerResponse, lastReadMs: number): Sink {
  response.writeHead(200);
  // Node keeps the text of the headers as long as the stream. Sent alone it becomes one string; before a body it would stay a tree of some
  // eighty parts.
  response.flushHeaders();
  // A client that is gone without a word would keep its place until the system gives its bytes up.
  response.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  response.write(`retry: ${RETRY_MS}\n\n`);
  return {
    get isBlocked() {
      return response.writableNeedDrain;
    },
    get unsentBytes() {
      return response.destroyed ? 0 : response.writableLength;
    },
    send(messages) {
      response.write(bytesOf(messages));
    },
    end(reason: EndReason, last) {
      if (response.destroyed) return;
      if (last.length > 0) response.write(bytesOf(last));
      response.end();
      // A reader that does not read would keep its buffer. An unresponsive connection gets no time.
      const limitMs = reason === 'unresponsive' ? 0 : lastReadMs;
      const timer = setTimeout(() => response.destroy(), limitMs);
      timer.unref();
      response.once('close', () => clearTimeout(timer));
    },
  };
}

function bytesOf(messages: readonly Unsent[]): Buffer {
  const [only, ...others] = messages;
  if (only && others.length === 0) return encode(only);
  return Buffer.concat(messages.map(encode));
}

function encode({ message, conflated }: Unsent): Buffer {
  return conflated === 0 ? message.sse : sseOf(message, `,"conflated":${conflated}`);
}
