import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import { newId } from '../../src/domain/values/ids.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { ApiContext, ApiDeps, ApiState, Caller } from '../deps.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Most requests never log: their logger is made when it is asked for. */
class RequestState implements ApiState {
  readonly requestId: string;
  caller?: Caller;
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
 * Gives a request its id (the caller's, or one of ours) and logger, and reports it when it was answered: on `finish`,
 * because only then the status is final.
 */
export function requestContext(deps: Pick<ApiDeps, 'log' | 'onRequest'>): Middleware<ApiState> {
  return async (ctx, next) => {
    const startedAtMs = performance.now();
    const path = isPathTarget(ctx.req.url) ? ctx.path : '';
    const requestId = requestIdOf(ctx.get('X-Request-Id'));
    ctx.state = new RequestState(requestId, deps.log);
    ctx.set('X-Request-Id', requestId);
    reportRequest(deps, ctx.res, {
      startedAtMs,
      method: ctx.method,
      route: () => routeLabel(path, (ctx as Partial<ApiContext>)._matchedRoute),
      log: () => ctx.state.log,
      keyId: () => ctx.state.caller?.keyId,
    });
    await next();
  };
}

/** The caller's id of a request, when it is one, else one of ours. */
export function requestIdOf(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && REQUEST_ID.test(offered) ? offered : newId('req');
}

/** The known facts of a request. Facts from its handling are read at its end. */
interface Reported {
  /** By `performance.now()`. */
  startedAtMs: number;
  method: string;
  route(): string;
  log(): Logger;
  keyId(): string | undefined;
}

/** Counts a request and logs it when its answer is sent: only then the status is final. */
export function reportRequest(
  deps: Pick<ApiDeps, 'log' | 'onRequest'>,
  res: ServerResponse,
  { startedAtMs, method, route, log, keyId }: Reported,
): void {
  res.once('close', () => {
    const durationSeconds = (performance.now() - startedAtMs) / 1000;
    const sample = { method, route: route(), status: res.statusCode };
    deps.onRequest?.({ ...sample, durationSeconds });
    // While a dependency is away every request is a 503: readiness says so once, not each request.
    const level = sample.status >= 500 && sample.status !== 503 ? 'warn' : 'debug';
    if (!deps.log.isLevelEnabled(level)) return;
    const durationMs = Math.round(durationSeconds * 1000);
    log()[level]({ ...sample, durationMs, aborted: !res.writableFinished, keyId: keyId() }, 'request');
  });
}

/**
 * Whether the request line names a path. It may also name a whole URL, or an invalid one: then even asking Koa for
 * the path throws, so such a request must be refused before anything does (see text-guard.ts).
 */
export function isPathTarget(target: string | undefined): boolean {
  return target?.startsWith('/') ?? false;
}

/** The pattern of the matched route: metrics must not have a label value per path. */
function routeLabel(path: string, matched: ApiContext['_matchedRoute']): string {
  if (path === '/ops' || path.startsWith('/ops/')) return '/ops';
  return matched === undefined ? 'none' : String(matched);
}
