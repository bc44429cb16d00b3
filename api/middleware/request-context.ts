import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Middleware, ParameterizedContext } from 'koa';
import { newId } from '../../src/domain/values/ids.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { ApiContext, ApiState, Caller } from '../context.ts';
import type { ErrorDetail } from '../errors.ts';
import type { AnswerDeps } from '../http/deps.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** One answered request, for metrics. `route` is the pattern, never the path. */
export interface RequestSample {
  method: string;
  route: string;
  status: number;
  durationSeconds: number;
}

export interface ReportDeps {
  log: Logger;
  onRequest?: (sample: RequestSample) => void;
}

/** What distinguishes a call inside this process from a request of a client; see http/internal-client.ts. */
export interface InternalCall {
  /** The caller of a session: its page counts in the limits, the metrics and the log, so the call does not. */
  caller?: Caller;
  /** The dependencies of the answer in place of those of the app: the format of decimals, caches, the wait for a venue. */
  deps: AnswerDeps;
}

/** A symbol on the connection, which no client can send, in place of a header. */
const INTERNAL = Symbol('internal call');

export function markInternal(connection: Duplex, call: InternalCall): void {
  Object.assign(connection, { [INTERNAL]: call });
}

export function internalCallOf({ socket }: IncomingMessage): InternalCall | undefined {
  return (socket as { [INTERNAL]?: InternalCall })[INTERNAL];
}

/** Creates the logger at first use, because most requests never log. */
class RequestState implements ApiState {
  readonly requestId: string;
  caller?: Caller;
  warnings?: readonly ErrorDetail[];
  readonly #parent: Logger;
  #log: Logger | undefined;

  constructor(requestId: string, parent: Logger) {
    this.requestId = requestId;
    this.#parent = parent;
  }

  get log(): Logger {
    this.#log ??= this.#parent.child({ requestId: this.requestId });
    return this.#log;
  }
}

/**
 * Sets the id of a request (the caller's or a new one) and its logger, and reports the request when its response closes.
 */
export function requestContext(deps: ReportDeps): Middleware<ApiState> {
  return async (ctx, next) => {
    const startedAtMs = performance.now();
    const requestId = requestIdOf(ctx.get('X-Request-Id'));
    ctx.state = new RequestState(requestId, deps.log);
    ctx.set('X-Request-Id', requestId);
    if (internalCallOf(ctx.req)?.caller === undefined) {
      reportRequest(deps, ctx.res, {
        startedAtMs,
        method: ctx.method,
        requestId,
        route: () => routeOf(ctx),
        keyId: () => ctx.state.caller?.keyId,
      });
    }
    await next();
  };
}

/** The request id of the caller if it is valid, otherwise a new id. */
export function requestIdOf(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && REQUEST_ID.test(offered) ? offered : newId('req');
}

/** The facts of a request. The functions are called when the response closes. */
interface Reported {
  /** `performance.now()` at the start. */
  startedAtMs: number;
  method: string;
  requestId: string;
  route(): string;
  keyId(): string | undefined;
}

/** Counts and logs a request when its response closes, because only then the status is final. */
export function reportRequest(
  deps: ReportDeps,
  res: ServerResponse,
  { startedAtMs, method, requestId, route, keyId }: Reported,
): void {
  res.once('close', () => {
    const durationSeconds = (performance.now() - startedAtMs) / 1000;
    const sample = { method, route: route(), status: res.statusCode };
    deps.onRequest?.({ ...sample, durationSeconds });
    // While a dependency is unavailable every request is a 503. Readiness logs this once, so the requests do not.
    const level = sample.status >= 500 && sample.status !== 503 ? 'warn' : 'debug';
    if (!deps.log.isLevelEnabled(level)) return;
    const durationMs = Math.round(durationSeconds * 1000);
    const fields = { requestId, ...sample, durationMs, aborted: !res.writableFinished, keyId: keyId() };
    if (level === 'debug') deps.log.debug(fields, 'request');
    else logLimited(deps.log, { level, fields, message: 'request', kind: `${sample.route} ${sample.status}` });
  });
}

/**
 * Whether the request line names a path. It may also name a whole URL, or an invalid one, for which `ctx.path` throws. Such a
 * request must be rejected first (see text-guard.ts).
 */
export function isPathTarget(target: string | undefined): boolean {
  return target?.startsWith('/') ?? false;
}

/** The pattern of the matched route, because metrics must not have one label value per path. */
export function routeOf(ctx: ParameterizedContext<ApiState>): string {
  const path = isPathTarget(ctx.req.url) ? ctx.path : '';
  if (path === '/ops' || path.startsWith('/ops/')) return '/ops';
  const { _matchedRoute: matched } = ctx as Partial<ApiContext>;
  return matched === undefined ? 'none' : String(matched);
}
