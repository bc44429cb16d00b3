import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { verifyBody, verifyStandard } from '../src/domain/webhooks/signature.ts';
import { createAuthority, openAuthority } from './receiver-tls.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const DEFAULT_RECORDED = 50_000;
const HOSTS = ['localhost', '127.0.0.1', '::1'];

/** The verdict on a signature header. `unchecked` when the receiver has no secret for the path. */
export type SignatureVerdict = 'ok' | 'bad' | 'missing' | 'unchecked';

/** One complete request. */
export interface ReceivedRequest {
  /** From 1, in order of arrival. */
  readonly sequence: number;
  readonly receivedAtMs: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body as JSON, undefined for other bodies. */
  readonly json: unknown;
  /** `X-Webhook-Signature`. */
  readonly bodySignature: SignatureVerdict;
  /** `webhook-signature`, with `webhook-id` and a timestamp not more than five minutes off. */
  readonly standardSignature: SignatureVerdict;
  /** Whether an earlier request had this `webhook-id`. */
  readonly duplicate: boolean;
}

/** The answer. Default: 200 at once with a short JSON body. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly delayMs?: number;
}

/** A fixed reply, or a function of the request. A function without a result answers through `response`, now or later. */
export type ReplyRule =
  | Reply
  | ((request: ReceivedRequest, response: ServerResponse) => Reply | undefined | Promise<Reply | undefined>);

interface ReceiverOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Where the certificate authority is kept. Default: a new one in memory. */
  readonly caDirectory?: string;
  /** The secrets for verification, or a function that returns the secrets for the path of a request. */
  readonly secrets?: readonly string[] | ((path: string) => readonly string[]);
  readonly reply?: ReplyRule;
  /** Called for each request before it is answered. */
  readonly onRequest?: (request: ReceivedRequest) => void;
  /** The limit of `requests`; the oldest are dropped first. Default 50 000. */
  readonly maxRecorded?: number;
}

export interface Receiver {
  /** `https://127.0.0.1:<port>`, without a path. */
  readonly url: string;
  readonly port: number;
  /** The authority that clients must trust. */
  readonly caPem: string;
  readonly requests: readonly ReceivedRequest[];
  /** Changes the answer from the next request on. */
  readonly replyWith: (rule: ReplyRule) => void;
  /** Changes the secrets from the next request on. */
  readonly expectSecrets: (secrets: readonly string[]) => void;
  /** The first matching request, past or future. Rejects after `timeoutMs` or on `close`. */
  readonly waitFor: (predicate: (request: ReceivedRequest) => boolean, timeoutMs: number) => Promise<ReceivedRequest>;
  /** All requests once there are `count` of them. */
  readonly waitForCount: (count: number, timeoutMs: number) => Promise<readonly ReceivedRequest[]>;
  /** Ends every connection, answered or not. */
  readonly close: () => Promise<void>;
}

interface Waiter {
  readonly check: () => void;
  readonly fail: (error: Error) => void;
}

/** A local HTTPS webhook receiver. Rejects with the listen error when the port is taken. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { host = '127.0.0.1', maxRecorded = DEFAULT_RECORDED } = options;
  const ca = options.caDirectory === undefined ? await createAuthority() : await openAuthority(options.caDirectory);
  const requests: ReceivedRequest[] = [];
  const seenIds = new Set<string>();
  const waiters = new Set<Waiter>();
  let secrets = options.secrets ?? [];
  let rule = options.reply ?? {};
  let sequence = 0;

  function record(incoming: IncomingMessage, body: Buffer): ReceivedRequest {
    const known = typeof secrets === 'function' ? secrets(incoming.url ?? '') : secrets;
    const eventId = headerText(incoming.headers['webhook-id']);
    sequence += 1;
    const received: ReceivedRequest = {
      sequence,
      receivedAtMs: Date.now(),
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers: incoming.headers,
      body,
      json: parseJson(body),
      bodySignature: bodyVerdict(known, incoming.headers, body),
      standardSignature: standardVerdict(known, incoming.headers, body),
      duplicate: eventId !== '' && seenIds.has(eventId),
    };
    if (eventId !== '') remember(seenIds, eventId, maxRecorded);
    requests.push(received);
    if (requests.length > maxRecorded) requests.shift();
    options.onRequest?.(received);
    for (const waiter of waiters) waiter.check();
    return received;
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(incoming);
    if (body === null) {
      response.writeHead(413, { connection: 'close' }).end();
      return;
    }
    const received = record(incoming, body);
    const reply = typeof rule === 'function' ? await rule(received, response) : rule;
    if (reply === undefined) return;
    if (reply.delayMs !== undefined) await delay(reply.delayMs, undefined, { ref: false });
    if (response.destroyed) return;
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers });
    response.end(reply.body ?? '{"received":true}');
  }

  const server = createServer({ ...(await ca.issue(HOSTS)), minVersion: 'TLSv1.2' }, (incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      // A sender that disconnected needs no answer; the answer reports an error of the reply function.
      if (incoming.destroyed && !incoming.complete) return;
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    });
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(options.port ?? 0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  function waitUntil<T>(find: () => T | undefined, wanted: string, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        waiters.delete(waiter);
      };
      const waiter: Waiter = {
        check() {
          const found = find();
          if (found === undefined) return;
          leave();
          resolve(found);
        },
        fail(error) {
          leave();
          reject(error);
        },
      };
      const timer = setTimeout(() => {
        waiter.fail(new Error(`no ${wanted} within ${timeoutMs} ms; ${sequence} requests came`));
      }, timeoutMs);
      waiters.add(waiter);
      waiter.check();
    });
  }

  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    caPem: ca.caPem,
    requests,
    replyWith: (next) => {
      rule = next;
    },
    expectSecrets: (next) => {
      secrets = next;
    },
    waitFor: (predicate, timeoutMs) => waitUntil(() => requests.find(predicate), 'such request', timeoutMs),
    waitForCount: (count, timeoutMs) =>
      waitUntil(() => (sequence >= count ? requests : undefined), `${count} requests`, timeoutMs),
    async close() {
      for (const waiter of [...waiters]) waiter.fail(new Error('the receiver was closed'));
      const closed = once(server, 'close');
      server.close();
      // Connections still in their TLS handshake are unknown to `closeAllConnections`.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function bodyVerdict(secrets: readonly string[], headers: IncomingHttpHeaders, body: Buffer): SignatureVerdict {
  const header = headerText(headers['x-webhook-signature']);
  if (header === '') return 'missing';
  if (secrets.length === 0) return 'unchecked';
  return secrets.some((secret) => verifyBody(secret, body, header)) ? 'ok' : 'bad';
}

function standardVerdict(secrets: readonly string[], headers: IncomingHttpHeaders, body: Buffer): SignatureVerdict {
  const signature = headerText(headers['webhook-signature']);
  if (signature === '') return 'missing';
  if (secrets.length === 0) return 'unchecked';
  const id = headerText(headers['webhook-id']);
  const timestamp = headerText(headers['webhook-timestamp']);
  const verdict = verifyStandard(secrets, { id, timestamp, signature, body }, Math.floor(Date.now() / 1000));
  return verdict === 'ok' ? 'ok' : 'bad';
}

function headerText(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** A set that drops its oldest members, so that a receiver can run for weeks. */
function remember(seen: Set<string>, id: string, limit: number): void {
  seen.add(id);
  if (seen.size <= limit) return;
  const [oldest] = seen;
  if (oldest !== undefined) seen.delete(oldest);
}
