import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { PortTakenError } from '../errors.ts';
import { type FaultBoard, type FaultRequest, isBadAnswer, renameField, setField } from '../faults.ts';
import type { CdnCache } from './cdn-cache.ts';
import { type DelayOptions, delayOf } from './delays.ts';
import type { DocumentedRates } from './documented-rates.ts';
import type { FaultyFeed } from './faulty-feed.ts';
import { isSimHost, json, plainError, type Reply, type SimHost, type SimRequest } from './reply.ts';
import type { RequestLog, RequestRecord } from './request-log.ts';

type HostRoutes = Record<SimHost, (request: SimRequest) => Reply | undefined>;

interface SimServerParts {
  readonly routes: HostRoutes;
  readonly faults: FaultBoard;
  readonly log: RequestLog;
  readonly delays: DelayOptions;
  /** Undefined for venues without limits. */
  readonly rates: DocumentedRates | undefined;
  /** Answers of the requests that a `cdn_cache` fault hits. */
  readonly cache: CdnCache;
  /** Answers of the requests that a `trade_feed` fault hits. */
  readonly feed: FaultyFeed;
  /** Called before a request to a venue host is answered. */
  readonly beforeAnswer: () => void;
  /** Answers the handshakes of feeds; undefined without feeds. */
  readonly upgrade: ((incoming: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
  /** Called when an exchange with a client is over, answered or not. */
  readonly onAnswered: (request: SimRequest, record: RequestRecord) => void;
}

interface SimServer {
  readonly port: number;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Longer than clients keep idle sockets, so that a reused socket is not closing. */
const KEEP_ALIVE_MS = 65_000;

/** Listens and answers. @throws PortTakenError */
export async function listen(parts: SimServerParts, host: string, port: number): Promise<SimServer> {
  const closing = new AbortController();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, response) => {
    handle(parts, incoming, response, closing.signal).catch((error: unknown) => {
      if (closing.signal.aborted || incoming.destroyed) response.destroy();
      else send(response, plainError(500, error instanceof Error ? error.message : 'unknown error'));
    });
  });
  if (parts.upgrade !== undefined) server.on('upgrade', parts.upgrade);
  await bind(server, host, port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve, reject) => {
        closing.abort();
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? new PortTakenError(host, port) : error);
    });
    server.listen(port, host, resolve);
  });
}

async function handle(
  parts: SimServerParts,
  incoming: IncomingMessage,
  response: ServerResponse,
  closing: AbortSignal,
): Promise<void> {
  const body = await bodyOf(incoming);
  if (body === undefined) {
    send(response, plainError(413, 'payload too large'));
    return;
  }
  const request = requestOf(incoming, body);
  if (request === undefined) {
    send(response, plainError(404, 'not found'));
    return;
  }
  if (request.host === '_sim') {
    send(response, parts.routes._sim(request) ?? plainError(404, 'not found'));
    return;
  }
  const hits = parts.faults.take(request);
  const record = recordOf(request, hits);
  parts.log.add(record);
  response.once('close', () => {
    record.endedAtMs = Date.now();
    if (response.headersSent) record.status = response.statusCode;
    parts.onAnswered(request, record);
  });
  // A venue counts a request when it arrives.
  const excess = parts.rates?.refusalOf(request);
  const faultMs = hits.reduce((sum, hit) => sum + (hit.kind === 'latency' ? (hit.latencyMs ?? 0) : 0), 0);
  const delayMs = faultMs + delayOf(request, parts.delays);
  if (delayMs > 0) await wait(delayMs, undefined, { signal: closing });
  // Until the client disconnects, or this server ends.
  if (hits.some((hit) => hit.kind === 'hang')) return;
  if (hits.some((hit) => hit.kind === 'reset')) {
    incoming.socket.resetAndDestroy();
    return;
  }
  if (excess !== undefined) {
    send(response, excess);
    return;
  }
  parts.beforeAnswer();
  const refusal = hits.find(
    ({ kind, members }) =>
      kind === 'status429' || kind === 'status500' || (kind === 'bad_member' && members?.inAnswer !== true),
  );
  if (refusal !== undefined) {
    refuse(response, refusal);
    return;
  }
  const reply = answerOf(parts, request, hits);
  const badRow = hits.find((hit) => isBadAnswer(hit, reply.body));
  if (badRow !== undefined) {
    refuse(response, badRow);
    return;
  }
  record.bytes = Buffer.byteLength(reply.body);
  await answerFaulty(response, reply, hits, closing);
}

function answerOf({ routes, cache, feed }: SimServerParts, request: SimRequest, hits: readonly FaultRequest[]): Reply {
  const route = (asked: SimRequest) => routes[asked.host](asked) ?? notFound(asked);
  const faulty = hits.find((hit) => hit.kind === 'trade_feed');
  const origin = () => (faulty === undefined ? route(request) : feed.answer(request, faulty, route));
  const cursor = request.query.get('cursor');
  if (cursor !== null && hits.some((hit) => hit.kind === 'expired_cursor')) return plainError(400, 'invalid cursor');
  if (cursor !== null && hits.some((hit) => hit.kind === 'repeat_cursor')) {
    const reply = origin();
    return { ...reply, body: setField(reply.body, 'cursor', cursor) };
  }
  const cdn = hits.find((hit) => hit.kind === 'cdn_cache');
  return cdn?.maxAgeSeconds === undefined ? origin() : cache.answer(request, cdn.maxAgeSeconds, origin);
}

function refuse(response: ServerResponse, fault: FaultRequest): void {
  if (fault.kind === 'status500') {
    send(response, plainError(fault.status ?? 500, 'Internal server error'));
    return;
  }
  if (fault.kind === 'bad_member') {
    send(response, plainError(fault.members?.status ?? 500, 'cannot read one of the ids'));
    return;
  }
  if (fault.retryAfterSeconds !== undefined) response.setHeader('retry-after', String(fault.retryAfterSeconds));
  send(response, plainError(429, 'Too Many Requests'));
}

function notFound({ host, path }: SimRequest): Reply {
  return host === 'gamma'
    ? json({ type: 'not found error', error: 'not found' }, 404)
    : plainError(404, `${path} not found`);
}

function requestOf(incoming: IncomingMessage, body: string): SimRequest | undefined {
  const url = new URL(incoming.url ?? '/', 'http://sim.invalid');
  const [, host, ...rest] = url.pathname.split('/');
  if (!isSimHost(host)) return undefined;
  const path = `/${rest.join('/')}`.replace(/(?<=.)\/$/, '');
  return { method: incoming.method ?? 'GET', host, path, query: url.searchParams, headers: incoming.headers, body };
}

function recordOf(request: SimRequest, hits: readonly FaultRequest[]): RequestRecord {
  const { host, method, path, query } = request;
  return { startedAtMs: Date.now(), host, method, path, query: query.toString(), faults: hits.map((hit) => hit.kind) };
}

async function bodyOf(incoming: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const PAGE =
  '<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>';
const DRIPS = 20;

/** Sends a correct answer with the faults applied. Resolves when all of it is sent, or the client disconnected. */
async function answerFaulty(
  response: ServerResponse,
  reply: Reply,
  hits: readonly FaultRequest[],
  closing: AbortSignal,
): Promise<void> {
  if (hits.some((hit) => hit.kind === 'html')) {
    send(response, { status: 200, body: PAGE }, 'text/html; charset=utf-8');
    return;
  }
  const bent = { ...reply, body: bend(reply.body, hits) };
  const cut = hits.find((hit) => hit.kind === 'truncate');
  const drip = hits.find((hit) => hit.kind === 'drip');
  if (cut !== undefined) truncate(response, bent, cut);
  else if (drip !== undefined) await dripOut(response, bent, drip.latencyMs ?? 0, closing);
  else send(response, bent);
}

/** Sends an answer in one piece. */
function send(response: ServerResponse, reply: Reply, contentType = 'application/json'): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': contentType,
    'content-length': Buffer.byteLength(reply.body),
  });
  response.end(reply.body);
}

function bend(text: string, hits: readonly FaultRequest[]): string {
  return hits.reduce((body, { kind, field, set }) => {
    if (kind === 'rename_field' && field !== undefined) return renameField(body, field.from, field.to);
    return kind === 'set_field' && set !== undefined ? setField(body, set.field, set.value, set.every) : body;
  }, text);
}

function truncate(response: ServerResponse, reply: Reply, { contentLength }: FaultRequest): void {
  const full = Buffer.from(reply.body);
  const half = full.subarray(0, Math.floor(full.length / 2));
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': 'application/json',
    'content-length': contentLength === 'full' ? full.length : half.length,
  });
  if (contentLength !== 'full') response.end(half);
  // The rest is never sent: the connection ends in the middle of the body.
  else response.write(half, () => response.destroy());
}

async function dripOut(response: ServerResponse, reply: Reply, totalMs: number, closing: AbortSignal): Promise<void> {
  const full = Buffer.from(reply.body);
  const pieceBytes = Math.max(1, Math.ceil(full.length / DRIPS));
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': 'application/json',
    'content-length': full.length,
  });
  for (let at = 0; at < full.length && !response.destroyed; at += pieceBytes) {
    await wait(totalMs / DRIPS, undefined, { signal: closing });
    if (!response.write(full.subarray(at, at + pieceBytes)))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}
