import type { Dispatcher } from 'undici';
import { EXCERPT_BYTES, type ReceivedHeaders } from '../domain/webhooks/response-headers.ts';
import { DeadlineError } from './attempt.ts';

/** The connection is closed after this much of the response body. */
const MAX_READ_BYTES = 16 * 1024;

interface PostRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The result of one POST: a status with the start of its body, or the error that occurred before a status. */
export type Exchange =
  | { readonly statusCode: number; readonly headers: ReceivedHeaders; readonly excerpt: Uint8Array }
  | { readonly error: Error };

/**
 * Sends one POST and reads the answer under one absolute deadline. Never redirects, retries, decompresses or rejects.
 * A received status counts even when the body fails later.
 *
 * It uses the dispatcher directly: undici's `request` ignores its abort signal until a connection exists, and
 * would then still send the aborted request.
 */
export function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  request: PostRequest,
  deadlineMs: number,
): Promise<Exchange> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let readBytes = 0;
    let answer: { statusCode: number; headers: ReceivedHeaders } | undefined;
    let controller: Dispatcher.DispatchController | undefined;
    let settled = false;

    // The error is created only on demand: its stack costs more than the rest of this function.
    const settle = (error: () => Error) => {
      settled = true;
      clearTimeout(timer);
      // Only the first of these calls counts.
      const excerptBytes = Math.min(readBytes, EXCERPT_BYTES);
      resolve(answer === undefined ? { error: error() } : { ...answer, excerpt: Buffer.concat(chunks, excerptBytes) });
    };
    const giveUp = (error: Error) => {
      settle(() => error);
      controller?.abort(error);
    };
    const timer = setTimeout(() => giveUp(new DeadlineError()), deadlineMs);

    dispatcher.dispatch(
      {
        origin: request.url.origin,
        path: request.url.pathname + request.url.search,
        method: 'POST',
        headers: request.headers,
        body: request.body,
      },
      {
        onRequestStart(started) {
          controller = started;
          // The deadline passed while the request waited for its connection, so it must not be sent.
          if (settled) started.abort(new DeadlineError());
        },
        onResponseStart(_controller, statusCode, headers) {
          if (statusCode < 200) return;
          answer = { statusCode, headers };
        },
        onResponseData(_controller, chunk) {
          chunks.push(chunk);
          readBytes += chunk.length;
          if (readBytes > MAX_READ_BYTES) giveUp(new Error('the rest of the response is ignored'));
        },
        onResponseEnd() {
          settle(() => new Error('the response ended without a status'));
        },
        onResponseError(_controller, error) {
          settle(() => error);
        },
      },
    );
  });
}
