import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http';
import { duplexPair } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';

/** The answer of a route. `data` and `meta` are those of its envelope. */
export interface RouteAnswer {
  data: unknown;
  meta: Readonly<Record<string, unknown>>;
}

/** A route answered with an error. */
export class RouteError extends Error {
  override readonly name = 'RouteError';
  readonly code: string;
  readonly details: readonly { path: string; message: string }[];
  readonly requestId: string;

  constructor(fields: { code: string; message: string; details: RouteError['details']; requestId: string }) {
    super(fields.message);
    this.code = fields.code;
    this.details = fields.details;
    this.requestId = fields.requestId;
  }
}

/** Calls of the API's own routes for one request of a client. They throw RouteError. */
export interface RouteCalls {
  get(path: string, query?: Readonly<Record<string, string | number | undefined>>): Promise<RouteAnswer>;
  post(path: string, body: object): Promise<RouteAnswer>;
  delete(path: string): Promise<RouteAnswer>;
}

/** The request of the client, on whose behalf routes are called. */
interface Origin {
  request: IncomingMessage;
  requestId: string;
  key: string;
}

/**
 * Calls routes inside this process, through the whole app: a call has the same key, scopes, limits, input checks, log lines and audit rows
 * as the request of a client. The bytes pass through memory.
 */
export class InternalCalls {
  readonly #server: Server;

  constructor(listener: RequestListener) {
    this.#server = createServer({ requireHostHeader: false }, listener);
  }

  for(origin: Origin): RouteCalls {
    return {
      get: (path, query = {}) => this.#call(origin, 'GET', `${path}${queryText(query)}`),
      post: (path, body) => this.#call(origin, 'POST', path, JSON.stringify(body)),
      delete: (path) => this.#call(origin, 'DELETE', path),
    };
  }

  async #call(
    { request: from, requestId, key }: Origin,
    method: string,
    path: string,
    body?: string,
  ): Promise<RouteAnswer> {
    const [near, far] = duplexPair();
    // The limit of wrong keys counts per address.
    this.#server.emit('connection', Object.assign(far, { remoteAddress: from.socket.remoteAddress }));
    const headers: Record<string, string> = {
      Host: from.headers.host ?? 'localhost',
      'X-Request-Id': requestId,
      // Market routes take the one, routes of the account the other.
      Authorization: `Bearer ${key}`,
      'X-API-Key': key,
      Connection: 'close',
    };
    const forwarded = from.headers['x-forwarded-for'];
    if (typeof forwarded === 'string') headers['X-Forwarded-For'] = forwarded;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({ method, path, headers, createConnection: () => near as never }, resolve);
      sent.once('error', reject);
      sent.end(body);
    });
    return readAnswer(await textOf(answer), requestId);
  }
}

function queryText(query: Readonly<Record<string, string | number | undefined>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? '' : `?${given}`;
}

function readAnswer(text: string, requestId: string): RouteAnswer {
  const body = JSON.parse(text) as
    | { success: true; data: unknown; meta?: RouteAnswer['meta'] }
    | { success: false; error: { code: string; message: string; details?: RouteError['details'] } };
  if (body.success) return { data: body.data, meta: body.meta ?? {} };
  const { code, message, details = [] } = body.error;
  throw new RouteError({ code, message, details, requestId });
}
