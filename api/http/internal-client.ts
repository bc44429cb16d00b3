import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
} from 'node:http';
import { duplexPair } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { ApiError, type ErrorCode, type ErrorDetail } from '../errors.ts';
import { type InternalCall, markInternal } from '../middleware/request-context.ts';

/** On whose behalf a call is made: of the caller of a session, or of the key in `headers`. */
interface Origin extends InternalCall {
  requestId: string;
  headers?: Readonly<Record<string, string>>;
  /** The limit of wrong keys counts per address. */
  remoteAddress?: string | undefined;
}

interface InternalRequest {
  method: string;
  /** Path and query. */
  target: string;
  /** JSON. */
  body?: string | undefined;
  idempotencyKey?: string | undefined;
}

/** The answer of a route. `data` and `meta` are those of its envelope. */
export interface RouteAnswer<Data = unknown> {
  data: Data;
  meta: { next_cursor?: string | null; readonly [field: string]: unknown };
  /** The body of the answer. */
  text: string;
  headers: IncomingHttpHeaders;
}

/** Undefined fields are omitted. */
export type InternalQuery = Readonly<Record<string, string | number | undefined>>;

/** A path with its query. */
export function targetOf(path: string, query: InternalQuery = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? path : `${path}?${given}`;
}

/**
 * Calls routes of the API inside this process, through the whole app: a call has the same scopes, input checks, envelope and audit rows as
 * a request of a client. The bytes pass through memory.
 */
export class InternalClient {
  readonly #server: Server;

  constructor(listener: RequestListener) {
    this.#server = createServer({ requireHostHeader: false }, listener);
  }

  /** @throws ApiError as the route */
  async call<Data = unknown>(origin: Origin, { method, target, body, idempotencyKey }: InternalRequest) {
    const { requestId, remoteAddress, headers: own, ...call } = origin;
    const [near, far] = duplexPair();
    markInternal(far, call);
    this.#server.emit('connection', Object.assign(far, { remoteAddress }));
    const headers = {
      Host: 'localhost',
      ...own,
      'X-Request-Id': requestId,
      Connection: 'close',
      ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
      ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({ method, path: target, headers, createConnection: () => near as never }, resolve);
      sent.once('error', reject);
      sent.end(body);
    });
    return readAnswer<Data>(answer.headers, await textOf(answer));
  }
}

type Envelope<Data> =
  | { success: true; data: Data; meta?: RouteAnswer['meta'] }
  | { success: false; error: { code: ErrorCode; message: string; details?: ErrorDetail[] } };

function readAnswer<Data>(headers: IncomingHttpHeaders, text: string): RouteAnswer<Data> {
  const body = JSON.parse(text) as Envelope<Data>;
  if (body.success) return { data: body.data, meta: body.meta ?? {}, text, headers };
  const { code, message, details = [] } = body.error;
  const retryAfter = headers['retry-after'];
  throw new ApiError(code, message, {
    details,
    ...(retryAfter !== undefined && { headers: { 'Retry-After': retryAfter } }),
  });
}
