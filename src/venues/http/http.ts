import { setTimeout as sleep } from 'node:timers/promises';
import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleWhen,
  type IBackoff,
  noJitterGenerator,
} from 'cockatiel';
import { Pool } from 'undici';
import { asError } from '../../domain/values/errors.ts';
import { openStretchingDeadline } from '../../domain/values/signals.ts';
import { type LagMeter, type ProcessLag, processLag } from '../../observe/process-lag.ts';
import { mayBeOfMember, VenueError, type VenueErrorCode } from '../errors.ts';
import type { BreakerState, RequestEvent, VenueObserver } from '../observer.ts';
import { cachedForMs, parseAgeMs } from './age.ts';
import { type AnswerReader, type AnswerReading, createAnswerMemory } from './answer-memory.ts';
import { attemptJson } from './attempt.ts';
import { createHostConnections } from './host-connections.ts';
import { createMemoryLedger, type OpenLedger } from './rate-ledger.ts';
import { BudgetExceededError, budgetFailure, createRequestBudget } from './request-budget.ts';

export interface VenueHttpOptions {
  venue: string;
  /** Scheme, host and, behind a proxy, a path that goes before every request's own. */
  baseUrl: string;
  /** The rate budget of this host. Refusals slow it down to a tenth at most, and successes raise it again. */
  requestsPerSecond: number;
  /** Requests that may go out at once after a quiet time; the default is one second's worth. */
  burst?: number;
  /** Names the budget among those of the same host; the default is the venue. Clients with rates of their own differ in it. */
  budget?: string;
  /** Opens the ledger of the budget; the default is one in memory. */
  openLedger?: OpenLedger;
  connections?: number;
  /**
   * One deadline over connect, headers and body of an attempt; the wait for one of the `connections` comes before. This and the deadline of
   * a call do not count the time in which this process was late.
   */
  attemptTimeoutMs?: number;
  /** One deadline over all attempts of a call and the waits between them. */
  callTimeoutMs?: number;
  maxAttempts?: number;
  retryDelayMs?: number;
  maxBodyBytes?: number;
  /** Consecutive failed attempts that open the breaker. */
  breakerFailures?: number;
  /** How long the breaker stays open at first; doubles up to a minute while the venue stays down. */
  breakerOpenMs?: number;
  userAgent?: string;
  /** Sent with every request, such as an API key. Logs and errors do not contain them. */
  headers?: Readonly<Record<string, string>>;
  /** More headers of a request, such as its signature. `path` is the whole path without the query. */
  headersOf?(path: string): Readonly<Record<string, string>>;
  /** Raw records of repeated answers that are kept for `read`. 0: each answer is read. */
  maxKeptRows?: number;
  /** A failure that the venue reports in an answer of status 200. */
  failureIn?(json: unknown): VenueError | undefined;
  observer?: VenueObserver;
  /** The default is that of this process. */
  lag?: ProcessLag;
}

/** The options that a test or a shared ledger changes. */
export type VenueHttpSettings = Partial<Omit<VenueHttpOptions, 'venue' | 'baseUrl' | 'observer'>>;

interface VenueRequest {
  /** Fixed label for metrics. */
  route: string;
  path: string;
  query?: URLSearchParams;
  signal: AbortSignal;
  /** The request names several ids, any of which may break it: see `createMemberBatches`. */
  batch?: BatchRequest | undefined;
}

export interface BatchRequest {
  /** A part of a batch that failed: it has one attempt. */
  isPart: boolean;
}

/** A successful answer. */
export interface VenueAnswer extends AnswerFacts {
  json: unknown;
}

interface AnswerFacts {
  /** Lower-case names. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** How long the answer was in a cache (RFC 9111 section 5.1), milliseconds; 0 without an `Age` header. */
  ageMs: number;
  /** The longest time that the answer was in a cache: see `cachedForMs`. */
  cachedMs: number;
  /**
   * The venue made the answer at this moment or later, on the clock of `performance.now()`: the start of the request less the time in
   * caches. `observedAtMs` converts it to the time of a price.
   */
  observedAt: number;
}

interface Asked extends VenueRequest {
  /** The answer needs no JSON when its body has a known digest. */
  isKnown?(digest: string, observedAt: number): boolean;
}

/** The client of one venue host. All calls throw VenueError only. */
export interface VenueHttp {
  readonly host: string;
  breakerState(): BreakerState;
  get(request: VenueRequest): Promise<VenueAnswer>;
  /** The body of `get`. */
  getJson(request: VenueRequest): Promise<unknown>;
  /** For reads that a venue serves by POST: the client retries them like GETs. */
  post(request: VenueRequest & { body: unknown }): Promise<VenueAnswer>;
  /** The body of `post`. */
  postJson(request: VenueRequest & { body: unknown }): Promise<unknown>;
  /**
   * The reading of the answer, by POST with a `body`, else by GET. An answer with the bytes of the last one to this request is not parsed:
   * its reading is the former one. A route has one reader.
   */
  read<R extends AnswerReading>(
    request: VenueRequest & { body?: unknown },
    reader: AnswerReader<R>,
  ): Promise<AnswerFacts & { reading: R }>;
  /** So many routes failed since the last success that the host is the cause, and not the ids of one request. */
  isFailing(): boolean;
  /** Counts failures against the host that it did not count yet, because an id of a batch could have caused them. */
  blame(failures: readonly VenueError[]): Promise<void>;
  close(): Promise<void>;
}

const MAX_BREAKER_OPEN_MS = 60_000;
/** Unrelated routes without a success between them. */
const ROUTES_OF_FAILING_HOST = 3;
const MAX_RETRY_DELAY_MS = 5_000;
const BREAKER_STATES: Record<CircuitState, BreakerState> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half_open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
};

/**
 * The only HTTP client of the adapters: pooled connections, a deadline, jittered retry on 408, 429, 5xx, network faults and unreadable
 * answers, `Retry-After`, a circuit breaker, and a rate budget that follows 429 answers. A 429 is retried within the call, when its turn
 * in the slower budget comes before the deadline, and does not count against the breaker: it is an answer of a healthy host. The client
 * has retries of its own, because the waits of cockatiel cannot be aborted and cannot be refused when they outlast the deadline.
 */
export function createVenueHttp(options: VenueHttpOptions): VenueHttp {
  const { venue, observer, lag = processLag() } = options;
  const url = new URL(options.baseUrl);
  const basePath = url.pathname.replace(/\/+$/, '');
  const attemptTimeoutMs = options.attemptTimeoutMs ?? 8_000;
  const callTimeoutMs = options.callTimeoutMs ?? 25_000;
  const maxAttempts = options.maxAttempts ?? 3;
  const keys = [...Object.values(options.headers ?? {}), ...keysOfUrl(url)];
  const { requestsPerSecond: perSecond, openLedger = createMemoryLedger } = options;
  const burst = options.burst ?? Math.max(1, Math.round(perSecond));
  const key = `${url.host}#${options.budget ?? venue}`;
  const budget = createRequestBudget(openLedger({ venue, host: url.host, key, perSecond, burst }), perSecond, burst);
  const connections = options.connections ?? 8;
  const free = createHostConnections(connections);
  const pool = new Pool(url.origin, {
    connections,
    connect: { timeout: attemptTimeoutMs },
    // The deadline's signal covers both. The timers of undici would add a second, different error.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const failingRoutes = new Set<string>();
  /** Failures of batches, which the breaker does not count unless they are blamed on the host. */
  const held = new WeakSet<Error>();
  /** The latest fault of the venue: the cause of an open breaker. */
  let fault: VenueError | undefined;
  /** The refusal since the latest success: the cause of a budget that is used up. */
  let refusal: VenueError | undefined;
  // A test call without an answer never proves a recovery.
  const isFault = (error: Error) =>
    (isVenueFault(error) && !held.has(error)) || (breaker.state === CircuitState.HalfOpen && !hasAnswer(error));
  const breaker: CircuitBreakerPolicy = circuitBreaker(handleWhen(isFault), {
    halfOpenAfter: new ExponentialBackoff({
      initialDelay: options.breakerOpenMs ?? 10_000,
      maxDelay: Math.max(MAX_BREAKER_OPEN_MS, options.breakerOpenMs ?? 0),
      generator: noJitterGenerator,
    }),
    breaker: new ConsecutiveBreaker(options.breakerFailures ?? 5),
  });
  breaker.onStateChange((state) => observer?.onBreaker?.({ venue, host: url.host, state: BREAKER_STATES[state] }));

  const memory = createAnswerMemory(options.maxKeptRows);

  async function attempt(
    request: Asked,
    body: string | undefined,
    signal: AbortSignal,
    takenAt: number,
  ): Promise<VenueAnswer & { digest?: string }> {
    const query = request.query?.toString();
    const started = performance.now();
    const report = (outcome: RequestEvent['outcome'], statusCode?: number, ageMs?: number) =>
      observer?.onRequest?.({
        venue,
        host: url.host,
        route: request.route,
        outcome,
        durationMs: performance.now() - started,
        ...(statusCode !== undefined && { statusCode }),
        ...(ageMs !== undefined && { ageMs }),
      });
    const deadline = openStretchingDeadline([signal], attemptTimeoutMs, lag.begin());
    try {
      const result = await attemptJson(pool, {
        venue,
        method: body === undefined ? 'GET' : 'POST',
        target: `${basePath}${request.path}${query ? `?${query}` : ''}`,
        headers: {
          accept: 'application/json',
          'accept-encoding': 'gzip',
          'user-agent': options.userAgent ?? 'oddswire',
          ...options.headers,
          ...options.headersOf?.(`${basePath}${request.path}`),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body }),
        maxBodyBytes: options.maxBodyBytes ?? 32 * 1024 * 1024,
        signal: deadline.signal,
        ...(request.isKnown && {
          isKnown: (digest, { age }) => request.isKnown?.(digest, started - cachedForMs(parseAgeMs(age))) ?? false,
        }),
      });
      const failure = options.failureIn?.(result.json);
      if (failure) throw failure;
      refusal = undefined;
      budget.succeeded(takenAt);
      failingRoutes.clear();
      const ageMs = parseAgeMs(result.headers.age);
      report('ok', result.statusCode, ageMs);
      const cachedMs = cachedForMs(ageMs);
      const observedAt = started - cachedMs;
      const { statusCode: _, ...rest } = result;
      return { ...rest, ageMs: ageMs ?? 0, cachedMs, observedAt };
    } catch (thrown) {
      const error = toVenueError(venue, thrown, request.signal, deadline);
      // Some venues repeat the key that they refuse.
      for (const key of keys) error.message = error.message.replaceAll(key, '[redacted]');
      error.request ??= request.path === '' ? request.route : `${body === undefined ? 'GET' : 'POST'} ${request.path}`;
      report(error.code as VenueErrorCode, error.statusCode);
      if (isVenueFault(error)) {
        fault = error;
        failingRoutes.add(request.route);
      }
      if (error.code === 'rate_limited') refusal = error;
      if (error.code === 'rate_limited' && !error.keepsRate) await budget.limited(takenAt);
      if (error.retryAfterMs) await budget.pause(error.retryAfterMs);
      throw error;
    } finally {
      deadline.close();
    }
  }

  /** A turn of the budget, then a connection: the deadline of an attempt begins after both, and neither wait is a fault of the venue. */
  async function turn(signal: AbortSignal, maxWaitMs: number): Promise<{ takenAt: number; release: () => void }> {
    const askedAtMs = performance.now();
    const reportTurn = (isRefused: boolean) =>
      observer?.onTurn?.({ venue, host: url.host, waitedMs: performance.now() - askedAtMs, isRefused });
    try {
      const takenAt = await budget.acquire(signal, maxWaitMs);
      const release = await free.acquire(signal);
      reportTurn(false);
      return { takenAt, release };
    } catch (error) {
      if (error instanceof BudgetExceededError) reportTurn(true);
      throw error;
    }
  }

  async function guarded(request: Asked, body: string | undefined, call: CallDeadline) {
    // While one call tests whether the venue has recovered, the others fail at once instead of queueing behind it.
    if (breaker.state === CircuitState.HalfOpen) throw circuitOpen(venue, fault);
    // The one call that tests an open breaker decides about the host, even a batch.
    const isHeld = request.batch !== undefined && breaker.state === CircuitState.Closed;
    try {
      return await breaker.execute(async () => {
        const { takenAt, release } = await turn(call.signal, call.remainingMs());
        try {
          return await attempt(request, body, call.signal, takenAt);
        } catch (error) {
          if (isHeld && error instanceof VenueError && mayBeOfMember(error)) held.add(error);
          throw error;
        } finally {
          release();
        }
      });
    } catch (thrown) {
      if (thrown instanceof BrokenCircuitError) throw circuitOpen(venue, fault);
      const error = toVenueError(venue, thrown, request.signal, call);
      if (refusal && thrown instanceof BudgetExceededError) error.message = `${refusal.message}; ${error.message}`;
      throw error;
    }
  }

  function post(request: VenueRequest & { body: unknown }): Promise<VenueAnswer> {
    return call(request, JSON.stringify(request.body));
  }

  async function call(request: Asked, body?: string): Promise<VenueAnswer & { digest?: string }> {
    const deadline = openStretchingDeadline([request.signal], callTimeoutMs, lag.begin());
    const attempts = request.batch?.isPart ? 1 : maxAttempts;
    let backoff: IBackoff<unknown> | undefined;
    /** The reason of the current retry. */
    let before: VenueError | undefined;
    try {
      for (let tries = 1; ; tries += 1) {
        try {
          return await guarded(request, body, deadline);
        } catch (thrown) {
          const error = toVenueError(venue, thrown, request.signal, deadline);
          if (!isWorthRetrying(error) || tries >= attempts) throw error;
          backoff = backoff ? backoff.next(undefined) : firstBackoff(options.retryDelayMs ?? 250);
          const waitMs = Math.max(error.retryAfterMs ?? 0, backoff.duration);
          if (waitMs >= deadline.remainingMs()) throw error;
          before = error;
          await sleep(waitMs, undefined, { signal: deadline.signal });
        }
      }
    } catch (thrown) {
      // The end of the call, while its retry waited or just began, would hide the reason of the retry.
      if (deadline.signal.aborted && !request.signal.aborted && before) throw before;
      throw toVenueError(venue, thrown, request.signal, deadline);
    } finally {
      deadline.close();
    }
  }

  return {
    host: url.host,
    breakerState: () => BREAKER_STATES[breaker.state],
    get: (request) => call(request),
    getJson: async (request) => (await call(request)).json,
    post,
    postJson: async (request) => (await post(request)).json,
    async read({ body, ...request }, reader) {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const { route, path, query } = request;
      const last = memory.last([route, path, String(query ?? ''), text ?? ''], reader);
      const answer = await call({ ...request, isKnown: last.isKnown }, text);
      return { ...answer, reading: last.readingOf(answer) };
    },
    isFailing: () => failingRoutes.size >= ROUTES_OF_FAILING_HOST,
    async blame(failures) {
      for (const failure of failures) {
        if (!held.delete(failure) || breaker.state !== CircuitState.Closed) continue;
        await breaker.execute(() => Promise.reject(failure)).catch(() => undefined);
      }
    },
    close: () => pool.destroy(),
  };
}

/** Parts of a node's address that may be its key: long parts of the path, and values of the query. */
function keysOfUrl({ pathname, searchParams }: URL): string[] {
  return [...pathname.split('/').filter((part) => part.length >= 16), ...searchParams.values()].filter(
    (key) => key.length >= 8,
  );
}

function firstBackoff(initialDelay: number): IBackoff<unknown> {
  return new ExponentialBackoff({ initialDelay, maxDelay: MAX_RETRY_DELAY_MS }).next();
}

/** Whether an error counts against the venue's health; a 404 or a 429 is an answer of a healthy venue. */
function isVenueFault(error: Error): boolean {
  if (!(error instanceof VenueError)) return false;
  if (error.code === 'http_status') return (error.statusCode ?? 0) >= 500;
  return error.code === 'timeout' || error.code === 'network' || error.code === 'invalid_payload';
}

function isWorthRetrying(error: VenueError): boolean {
  return error.retryable && error.code !== 'circuit_open' && error.code !== 'aborted';
}

/** Whether the host sent an answer of any status. */
function hasAnswer(error: Error): boolean {
  return error instanceof VenueError && error.statusCode !== undefined;
}

/** The cause comes first: the open breaker is its consequence. */
function circuitOpen(venue: string, fault: VenueError | undefined): VenueError {
  const why = fault === undefined ? '' : `${fault.message}; `;
  return new VenueError(venue, 'circuit_open', `${why}the circuit breaker is open`, { retryable: true, cause: fault });
}

/** The deadline of an attempt or of a call. */
interface CallDeadline {
  readonly signal: AbortSignal;
  readonly lag: LagMeter;
  remainingMs(): number;
}

const CONNECT_TIMEOUTS: ReadonlySet<unknown> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']);

function toVenueError(venue: string, thrown: unknown, caller: AbortSignal, { signal, lag }: CallDeadline): VenueError {
  if (thrown instanceof VenueError) return thrown;
  const ofBudget = budgetFailure(venue, thrown);
  if (ofBudget) return ofBudget;
  if (caller.aborted) {
    const { reason } = caller;
    const why = reason instanceof Error && reason.name !== 'AbortError' ? `: ${reason.message}` : '';
    return new VenueError(venue, 'aborted', `the call was aborted${why}`, { retryable: true, cause: thrown });
  }
  const cause = asError(thrown);
  const code = (cause as { code?: unknown }).code;
  if ((signal.aborted || CONNECT_TIMEOUTS.has(code)) && lag.wasLate()) {
    const late = `this process was late by ${Math.round(lag.lateMs())} ms, and no answer was read in time`;
    return new VenueError(venue, 'process_late', late, { retryable: true, cause: thrown });
  }
  if (signal.aborted) {
    return new VenueError(venue, 'timeout', asError(signal.reason).message, { retryable: true, cause: thrown });
  }
  const message = typeof code === 'string' ? `${code}: ${cause.message}` : cause.message;
  return new VenueError(venue, 'network', message, { retryable: true, cause });
}
