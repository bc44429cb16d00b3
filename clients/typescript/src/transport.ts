import createFetchClient, { type Client } from 'openapi-fetch';
import { type DecimalType, quoteNumbers, type WithDecimals } from './decimals.ts';
import { apiErrorOf, OddswireApiError, OddswireConnectionError } from './errors.ts';
import { type components, KEY_OF_PATH, type paths } from './schema.ts';

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRY: Required<RetryOptions> = { retries: 2, maxDelayMs: 60_000 };
const FIRST_DELAY_MS = 250;
const NULL_BODY_STATUSES = new Set([204, 205, 304]);

export interface RetryOptions {
  /** Maximum number of retries. Default 2; 0 disables retries. */
  retries?: number;
  /** The longest wait before a retry. A longer `Retry-After` throws the error at once. Default 60,000. */
  maxDelayMs?: number;
}

export interface ClientOptions {
  /** The address of the API, such as `https://oddswire.example.com`. */
  baseUrl: string;
  /** Sent only to `baseUrl`, as `Authorization: Bearer` or `X-API-Key` depending on the route. */
  apiKey: string;
  /** Default: the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
  /** The limit of each attempt, including the body. Default 30,000. */
  timeoutMs?: number;
  /** `false` disables retries. */
  retry?: RetryOptions | false;
  /** Additional headers of every request. */
  headers?: Readonly<Record<string, string>>;
  /** Gets `meta.warnings` of an answer: parameters that the service ignores and a later release of it refuses. Default: nothing. */
  onWarning?: (warnings: readonly Warning[]) => void;
}

/** A parameter that the service ignores, and the nearest name. */
export type Warning = components['schemas']['ErrorDetail'];

/** Options of every call. */
export interface CallOptions {
  /** Ends the call with the reason of the signal, also between attempts. */
  signal?: AbortSignal | undefined;
  /** In place of the client's. */
  timeoutMs?: number;
  /** In place of the client's. */
  retry?: RetryOptions | false;
  /** Your id for the request, 1 to 128 of `A-Z a-z 0-9 . _ -`. The logs of the service and errors contain it. */
  requestId?: string;
}

/** Options of calls that create a resource or start an action. */
export interface WriteOptions extends CallOptions {
  /**
   * The service runs calls with the same key and input once within 24 hours. Default: a random UUID per call, which makes retries
   * safe. `false`: no key and no retries.
   */
  idempotencyKey?: string | false;
}

/** The kind of a call, which decides about retries. */
type Kind = 'read' | 'create' | 'replace' | 'delete';

/** The result of one attempt for openapi-fetch. */
type Attempt = {
  signal: AbortSignal;
  headers: Record<string, string>;
  fetch: (request: Request) => Promise<Response>;
};

type Failure = OddswireApiError | OddswireConnectionError;
type Answered<Body> = { data?: Body; error?: unknown; response: Response };

interface OpenRequest {
  /** The values of the path. */
  values?: Record<string, string>;
  query: URLSearchParams;
  headers: Record<string, string>;
  signal: AbortSignal;
}

/** Sends requests and checks their answers. Decimals in answers have the type `D`. */
export interface Transport<D extends DecimalType> {
  readonly http: Client<paths, 'application/json'>;
  /** Which type the decimals of answers have. */
  readonly decimals: 'number' | 'string';
  /**
   * Opens an answer that has no end. There is no time limit and no retry.
   * @throws OddswireApiError, OddswireConnectionError, or the reason of the signal.
   */
  open(path: keyof paths, request: OpenRequest): Promise<Response>;
  /**
   * Runs attempts until an answer or the last retry.
   * @throws OddswireApiError, OddswireConnectionError, or the reason of the caller's signal.
   */
  send<Body>(
    kind: Kind,
    options: WriteOptions | undefined,
    run: (attempt: Attempt) => Promise<Answered<Body>>,
  ): Promise<WithDecimals<Body, D>>;
}

/** @throws TypeError for an invalid address or key. */
export function createTransport<D extends DecimalType>(
  options: ClientOptions,
  decimals: 'number' | 'string',
): Transport<D> {
  const { apiKey, timeoutMs: defaultTimeoutMs = DEFAULT_TIMEOUT_MS, retry: defaultRetry } = options;
  const baseFetch = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError('apiKey must be printable ASCII without spaces');
  const baseUrl = checkedBaseUrl(options.baseUrl);
  const keyHeaders = (path: keyof paths): Record<string, string> => {
    const key = KEY_OF_PATH[path];
    return key === 'bearer' ? { Authorization: `Bearer ${apiKey}` } : key === 'apiKey' ? { 'X-API-Key': apiKey } : {};
  };
  const http = createFetchClient<paths, 'application/json'>({
    baseUrl,
    headers: { Accept: 'application/json', ...options.headers },
    // A redirect would carry the key to another address.
    redirect: 'error',
    pathSerializer: fillPath,
  });
  http.use({
    onRequest({ request, schemaPath }) {
      for (const [name, value] of Object.entries(keyHeaders(schemaPath as keyof paths)))
        request.headers.set(name, value);
    },
    async onResponse({ response, schemaPath }) {
      if (decimals !== 'string' || !response.ok || KEY_OF_PATH[schemaPath as keyof paths] !== 'bearer')
        return undefined;
      const { status, headers } = response;
      return new Response(quoteNumbers(await response.text(), 'decimals'), { status, headers });
    },
  });

  async function attemptOnce<Body>(
    call: CallOptions,
    headers: Record<string, string>,
    run: (attempt: Attempt) => Promise<Answered<Body>>,
  ): Promise<Answered<Body>> {
    const { timeoutMs = defaultTimeoutMs, signal } = call;
    const deadline = startDeadline(signal, timeoutMs);
    let answer: Response | undefined;
    try {
      const fetch = async (request: Request) => {
        try {
          answer = await readWhole(await keeping(request, baseFetch), deadline.signal);
          return answer;
        } catch (error) {
          if (signal?.aborted) throw signal.reason;
          if (deadline.signal.aborted) {
            throw new OddswireConnectionError('timeout', `no answer within ${timeoutMs} ms`, error);
          }
          throw new OddswireConnectionError('connection_failed', `no answer: ${String(error)}`, error);
        }
      };
      return await run({ signal: deadline.signal, headers, fetch });
    } catch (error) {
      // A success that is not JSON comes from a proxy and not from the service.
      if (answer && error instanceof SyntaxError) throw apiErrorOf(answer, undefined, Date.now());
      throw error;
    } finally {
      deadline.end();
    }
  }

  return {
    http,
    decimals,
    async open(path, { values = {}, query, headers, signal }) {
      const place = fillPath(path, values).slice(1);
      const url = new URL(
        `${place}${query.size === 0 ? '' : `?${query}`}`,
        baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`,
      );
      const all = { ...options.headers, ...headers, ...keyHeaders(path) };
      const request = new Request(url, { headers: all, signal, redirect: 'error' });
      let response: Response;
      try {
        response = await keeping(request, baseFetch);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw new OddswireConnectionError('connection_failed', `no answer: ${String(error)}`, error);
      }
      if (response.ok) return response;
      const text = await response.text().catch(() => '');
      throw apiErrorOf(response, parsedOrText(text), Date.now());
    },
    async send<Body>(
      kind: Kind,
      call: WriteOptions = {},
      run: (attempt: Attempt) => Promise<Answered<Body>>,
    ): Promise<WithDecimals<Body, D>> {
      const retry = call.retry ?? defaultRetry ?? DEFAULT_RETRY;
      const { retries, maxDelayMs } = { ...DEFAULT_RETRY, ...(retry === false ? { retries: 0 } : retry) };
      const headers: Record<string, string> = {};
      if (call.requestId !== undefined) headers['X-Request-Id'] = call.requestId;
      if (kind === 'create' && call.idempotencyKey !== false) {
        headers['Idempotency-Key'] = call.idempotencyKey ?? globalThis.crypto.randomUUID();
      }
      for (let repetition = 0; ; repetition += 1) {
        call.signal?.throwIfAborted();
        let failure: Failure;
        try {
          const { data, error, response } = await attemptOnce(call, headers, run);
          // `onResponse` has converted the decimals to `D`.
          if (response.ok && data !== undefined) {
            const { warnings } = (data as { meta?: { warnings?: Warning[] } }).meta ?? {};
            if (warnings) options.onWarning?.(warnings);
            return data as WithDecimals<Body, D>;
          }
          failure = apiErrorOf(response, error, Date.now());
        } catch (error) {
          if (!(error instanceof OddswireConnectionError)) throw error;
          failure = error;
        }
        if (repetition >= retries || !mayRepeat(kind, call, failure)) throw failure;
        const delayMs = delayBefore(repetition, failure);
        if (delayMs > maxDelayMs) throw failure;
        await pause(delayMs, call.signal);
      }
    },
  };
}

const inFlight = new Set<Request>();

/**
 * Keeps a request until its answer begins: its signal does not outlive it, so a garbage collection would disable the time limit.
 */
async function keeping(request: Request, send: (request: Request) => Promise<Response>): Promise<Response> {
  inFlight.add(request);
  try {
    return await send(request);
  } finally {
    inFlight.delete(request);
  }
}

/**
 * The pieces of a body. The signal ends the read itself, because the signal of the request may be collected.
 * @throws OddswireConnectionError, or the reason of the signal.
 */
export async function* piecesOf(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const end = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener('abort', end, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await reader.read().catch((error: unknown) => {
        signal.throwIfAborted();
        throw new OddswireConnectionError('connection_failed', `the answer broke: ${String(error)}`, error);
      });
      signal.throwIfAborted();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}

/** A call that timed out is not retried; a request that was rejected before any effect can always be retried. */
function mayRepeat(kind: Kind, call: WriteOptions, failure: Failure): boolean {
  if (!failure.retryable || failure.code === 'timeout') return false;
  if (kind === 'create') return call.idempotencyKey !== false;
  // The retry of a successful deletion would get 404.
  return kind !== 'delete' || (failure instanceof OddswireApiError && failure.status === 429);
}

/** Milliseconds: `Retry-After`, or a delay that doubles each time and is reduced by up to half at random. */
function delayBefore(repetition: number, failure: Failure): number {
  if (failure instanceof OddswireApiError && failure.retryAfterSeconds !== undefined) {
    return failure.retryAfterSeconds * 1_000;
  }
  return FIRST_DELAY_MS * 2 ** repetition * (1 - Math.random() / 2);
}

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The response with its whole body, so that a broken connection fails here. */
async function readWhole(response: Response, signal: AbortSignal): Promise<Response> {
  const { status, statusText, headers } = response;
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of piecesOf(response, signal)) text += decoder.decode(piece, { stream: true });
  text += decoder.decode();
  const kept = new Headers(headers);
  // These headers describe the received bytes.
  kept.delete('content-length');
  kept.delete('content-encoding');
  return new Response(NULL_BODY_STATUSES.has(status) ? null : text, { status, statusText, headers: kept });
}

/** Aborts after a time, or with the caller's signal. `AbortSignal.any` may be collected early on Node 20. */
function startDeadline(signal: AbortSignal | undefined, timeoutMs: number): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const forward = () => controller.abort(signal?.reason);
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  if (signal?.aborted) forward();
  else signal?.addEventListener('abort', forward, { once: true });
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
    },
  };
}

export function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, delayMs);
    if (signal?.aborted) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}

function checkedBaseUrl(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (!/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '' || url.username !== '') {
    throw new TypeError('baseUrl must be an http or https address without user, query and fragment');
  }
  return url.href;
}

/** @throws RangeError for a value that would change the route. */
function fillPath(path: string, values: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_match, name: string) => {
    const value = String(values[name] ?? '');
    if (value === '' || value === '.' || value === '..') throw new RangeError(`${name} must be an id, not '${value}'`);
    return encodeURIComponent(value);
  });
}
