import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import { logLimited } from '../../../src/observe/limited-lines.ts';
import type { Logger } from '../../../src/observe/logger.ts';
import type { Database } from '../../../src/store/db/tx.ts';
import type { Caller } from '../../context.ts';
import type { ClientFrame } from '../../contract/live.ts';
import { ApiError, type ErrorCode } from '../../errors.ts';
import { type AuthDeps, authenticateKey } from '../../middleware/authenticate.ts';
import { toApiError } from '../../middleware/envelope.ts';
import type { AccountUse } from '../account-use.ts';
import type { StreamClient } from '../client.ts';
import type { StreamDeps } from '../port.ts';
import { filterOf } from '../request/request-filter.ts';
import { CLOSE_CODES, createSocketSink, readFrame } from './frames.ts';

export interface SocketDeps extends AuthDeps, StreamDeps {
  db: Database;
  log: Logger;
  /** The venues of a name. @throws ApiError `venue_not_found` */
  scopeOf(name: string): { name: string; venues: readonly string[] };
  /** The interval of pings. A client that answers none within it is gone. */
  pingMs?: number;
  /** The time for the key as the first frame. */
  authMs?: number;
}

/** Frames of one client: a burst, and the rate afterwards. */
const FRAME_BURST = 50;
const FRAMES_PER_SECOND = 10;
/** Invalid frames after which the connection is closed. */
const MAX_INVALID = 20;
const AUTH_MS = 5_000;
const PING_MS = 20_000;
/** Frames that wait for the database. */
const MAX_WAITING = 64;

/** One WebSocket: reads frames in their order, one at a time. */
export class SocketConnection {
  readonly #socket: WebSocket;
  readonly #connection: Socket;
  readonly #request: IncomingMessage;
  readonly #deps: SocketDeps;
  readonly #bucket = new TokenBucket(FRAME_BURST, FRAMES_PER_SECOND);
  readonly #pings: NodeJS.Timeout;
  #authTimer: NodeJS.Timeout | undefined;
  #client: StreamClient | undefined;
  #use: AccountUse | undefined;
  #accountId: bigint | undefined;
  #invalid = 0;
  #isAlive = true;
  #waiting = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, connection: Socket, request: IncomingMessage, deps: SocketDeps) {
    this.#socket = socket;
    this.#connection = connection;
    this.#request = request;
    this.#deps = deps;
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    // ws closes the connection with 1002, 1007, 1008 or 1009 for a frame that it rejects.
    socket.on('error', (error) => {
      deps.log.debug({ err: error }, 'invalid WebSocket frame');
      this.#client?.end('protocol');
    });
    socket.on('ping', () => void this.#isWithinRate());
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    socket.on('close', () => this.#closed());
    connection.on('drain', () => this.#client && deps.streams.resume(this.#client));
    this.#pings = setInterval(() => this.#ping(), deps.pingMs ?? PING_MS);
    this.#pings.unref();
  }

  /** Waits for the first frame, which must have the key. */
  awaitKey(): void {
    const { authMs = AUTH_MS } = this.#deps;
    this.#authTimer = setTimeout(
      () => this.#close(CLOSE_CODES.authTimeout, 'unauthorized', `the first frame must be auth, within ${authMs} ms`),
      authMs,
    );
  }

  /** Begins to serve an account whose connection was counted. */
  begin(caller: Caller, use: AccountUse): void {
    clearTimeout(this.#authTimer);
    this.#authTimer = undefined;
    this.#use = use;
    this.#accountId = caller.accountId;
    this.#client = this.#deps.streams.open(use, {
      sink: createSocketSink(this.#socket, this.#connection),
      caller,
      scope: 'markets:read',
      protocol: 'websocket',
      socket: this.#connection,
    });
  }

  /** After the close frame, the frames of a flood are read and ignored: unread bytes would reset the connection and lose the code. */
  #receive(data: RawData, isBinary: boolean): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (isBinary) {
      this.#close(CLOSE_CODES.unsupported, 'unsupported_media_type', 'send text frames');
      return;
    }
    if (!this.#isWithinRate()) return;
    const read = readFrame(String(data));
    if ('error' in read) {
      this.#reject(read.error.code, read.error.message, read.error.id);
      return;
    }
    this.#waiting += 1;
    this.#tail = this.#tail.then(async () => {
      try {
        if (this.#socket.readyState === this.#socket.OPEN) await this.#handle(read.frame);
      } catch (error) {
        this.#fail(error, 'id' in read.frame ? read.frame.id : undefined);
      } finally {
        this.#waiting -= 1;
      }
    });
  }

  /** Counts a frame. Too many of them end the connection. */
  #isWithinRate(): boolean {
    if (this.#bucket.take() && this.#waiting < MAX_WAITING) return true;
    this.#close(CLOSE_CODES.rateLimited, 'rate_limited', `send at most ${FRAMES_PER_SECOND} frames per second`);
    return false;
  }

  async #handle(frame: ClientFrame): Promise<void> {
    if (frame.type === 'auth') return this.#authenticate(frame.key);
    const client = this.#client;
    if (!client || !this.#use || this.#accountId === undefined) {
      this.#close(CLOSE_CODES.unauthorized, 'unauthorized', 'the first frame must be {"type":"auth","key"}');
      return;
    }
    if (frame.type === 'unsubscribe') {
      if (!this.#deps.streams.unsubscribe(client, frame.id)) {
        this.#reject('not_found', 'no subscription has this id', frame.id);
        return;
      }
      this.#use.removeSubscription();
      this.#send({ type: 'unsubscribed', id: frame.id });
      return;
    }
    await this.#subscribe(client, { use: this.#use, accountId: this.#accountId }, frame);
  }

  async #subscribe(
    client: StreamClient,
    { use, accountId }: { use: AccountUse; accountId: bigint },
    frame: ClientFrame & { type: 'subscribe' },
  ): Promise<void> {
    const { id, venue, cursor } = frame;
    if (client.subscriptions.has(id)) throw new ApiError('conflict', 'a subscription has this id');
    this.#deps.streams.requireReady();
    const scope = this.#deps.scopeOf(venue);
    const position = cursor === undefined ? undefined : this.#deps.streams.cursors.decode(cursor);
    if (!use.addSubscription())
      throw new ApiError('quota_exceeded', 'this account has as many subscriptions as it may have');
    try {
      const filter = await filterOf(this.#deps.db, scope, frame);
      if (client.hasEnded) return;
      this.#deps.streams.requireRoom(accountId, filter);
      const start = { hasSnapshot: frame.snapshot ?? false, ...(position !== undefined && { position }) };
      const seq = this.#deps.streams.subscribe(client, id, filter, start);
      // No message of the subscription precedes its answer, because messages wait for the next round of writes.
      this.#send({ type: 'subscribed', id, seq });
    } catch (error) {
      use.removeSubscription();
      throw error;
    }
  }

  async #authenticate(key: string): Promise<void> {
    if (this.#client) {
      this.#reject('conflict', 'the connection has a key');
      return;
    }
    const caller = await authenticateKey(this.#deps, this.#request, key);
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.begin(caller, this.#deps.streams.admit(caller.accountId));
  }

  #fail(thrown: unknown, id: string | undefined): void {
    const error = toApiError(thrown);
    const code = error.code as ErrorCode;
    if (code === 'internal_error') {
      logLimited(this.#deps.log, { level: 'error', fields: { err: thrown }, message: 'WebSocket frame failed' });
    }
    if (this.#client) {
      this.#reject(code, error.message, id);
      return;
    }
    const closeCode =
      code === 'insufficient_scope'
        ? CLOSE_CODES.insufficientScope
        : code === 'rate_limited'
          ? CLOSE_CODES.rateLimited
          : code === 'unauthorized'
            ? CLOSE_CODES.unauthorized
            : CLOSE_CODES.failed;
    this.#close(closeCode, code, error.message);
  }

  /** Answers an invalid frame. Many of them end the connection. */
  #reject(code: ErrorCode, message: string, id?: string): void {
    this.#invalid += 1;
    if (this.#invalid > MAX_INVALID) {
      this.#close(CLOSE_CODES.rateLimited, 'rate_limited', 'too many invalid frames');
      return;
    }
    this.#send({ type: 'error', code, message, ...(id !== undefined && { id }) });
  }

  #close(closeCode: number, code: ErrorCode, message: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#send({ type: 'error', code, message });
    this.#socket.close(closeCode, message.slice(0, 120));
    this.#client?.end('protocol');
  }

  #send(frame: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #ping(): void {
    if (!this.#isAlive) {
      this.#client?.end('unresponsive');
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    this.#socket.ping();
  }

  #closed(): void {
    clearInterval(this.#pings);
    clearTimeout(this.#authTimer);
    this.#client?.closed();
  }
}

/** Allows a burst, and then a rate. */
class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #nowMs: () => number;
  #tokens: number;
  #filledAtMs: number;

  constructor(burst: number, perSecond: number, nowMs: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#nowMs = nowMs;
    this.#tokens = burst;
    this.#filledAtMs = nowMs();
  }

  /** Whether one more is allowed. Counts it. */
  take(): boolean {
    const nowMs = this.#nowMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#filledAtMs) / 1_000) * this.#perSecond);
    this.#filledAtMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
