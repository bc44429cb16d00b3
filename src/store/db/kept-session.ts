import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { asError } from '../../domain/values/errors.ts';
import { forwardAbort, within } from '../../domain/values/signals.ts';
import { FailureStreaks } from '../../observe/failures.ts';
import type { Logger } from '../../observe/logger.ts';

const ANSWER_MS = 5_000;
/** The maximum wait for the server at the end of a session. */
const END_TIMEOUT_MS = 1_000;

interface KeptSessionOptions {
  /** Past any pooler, because the state of `use` belongs to a session. */
  databaseUrl: string;
  applicationName: string;
  /** Ends the session for good. */
  closing: AbortSignal;
  log: Logger;
  /** The log line of a lost session. */
  lostMessage: string;
  firstRetryMs: number;
  longestRetryMs: number;
  /**
   * Uses a session until the signal fires, which also happens when the session is lost. It calls `onReady` when the session has its state;
   * the wait after a loss is then short again.
   */
  use(client: pg.Client, signal: AbortSignal, onReady: () => void): Promise<void>;
  /** Called when a session is lost or cannot be opened. */
  onLost?(): void;
}

/** Keeps a session outside the pool: after a loss it opens another one, with backoff. Resolves when `closing` fires, and never rejects. */
export async function keepSession(options: KeptSessionOptions): Promise<void> {
  const { closing, log, lostMessage, firstRetryMs, longestRetryMs, onLost } = options;
  const streaks = new FailureStreaks();
  for (let failures = 0; !closing.aborted; failures++) {
    try {
      await useSession(options, () => {
        failures = 0;
        streaks.succeeded('session');
      });
    } catch (error) {
      if (closing.aborted) return;
      const { inARow, shouldLog } = streaks.failed('session');
      log[shouldLog ? 'warn' : 'debug']({ err: asError(error), inARow }, lostMessage);
      onLost?.();
    }
    const pauseMs = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures, 10));
    const jittered = pauseMs * (0.75 + Math.random() / 2);
    await delay(jittered, undefined, { signal: closing, ref: false }).catch(() => undefined);
  }
}

/** @throws the error of the session when it is lost, or of `use` */
async function useSession(options: KeptSessionOptions, onReady: () => void): Promise<void> {
  const { databaseUrl, applicationName, closing, use } = options;
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: applicationName,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
  });
  const ended = new AbortController();
  client.on('error', (error) => ended.abort(error));
  client.on('end', () => ended.abort(new Error('the session ended')));
  // A statement without an answer would delay the end.
  const cutSoon = () => void setTimeout(() => cut(client), END_TIMEOUT_MS).unref();
  closing.addEventListener('abort', cutSoon);
  const unlink = forwardAbort(closing, ended);
  try {
    await client.connect();
    await use(client, ended.signal, onReady);
    ended.signal.throwIfAborted();
  } finally {
    unlink();
    closing.removeEventListener('abort', cutSoon);
    await endSession(client);
  }
}

/** Ends a session in time, also when its server is silent. Never rejects. */
export async function endSession(client: pg.Client): Promise<void> {
  await within(END_TIMEOUT_MS, client.end(), () => undefined).catch(() => undefined);
  cut(client);
}

/** Ends the connection: a statement in flight fails. */
function cut(client: pg.Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
