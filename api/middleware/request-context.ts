import type { Middleware } from 'koa';
import { newId } from '../../src/domain/ids.ts';
import type { ApiContext, ApiDeps, ApiState } from '../deps.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
const NANOS_PER_SECOND = 1e9;

/**
 * Gives a request its id (the caller's, or one of ours) and logger, and reports it when it was answered: on `finish`,
 * because only then is the status what the client saw.
 */
export function requestContext(deps: Pick<ApiDeps, 'log' | 'onRequest'>): Middleware<ApiState> {
  return async (ctx, next) => {
    const startedAt = process.hrtime.bigint();
    const offered = ctx.get('X-Request-Id');
    const path = isPathTarget(ctx.req.url) ? ctx.path : '';
    const requestId = REQUEST_ID.test(offered) ? offered : newId('req');
    ctx.state.requestId = requestId;
    ctx.state.log = deps.log.child({ requestId });
    ctx.set('X-Request-Id', requestId);
    ctx.res.once('close', () => {
      const durationSeconds = Number(process.hrtime.bigint() - startedAt) / NANOS_PER_SECOND;
      const sample = {
        method: ctx.method,
        route: routeLabel(path, (ctx as Partial<ApiContext>)._matchedRoute),
        status: ctx.res.statusCode,
        durationSeconds,
      };
      deps.onRequest?.(sample);
      const line = { ...sample, aborted: !ctx.res.writableFinished, keyId: ctx.state.caller?.keyId };
      // While a dependency is away every request is a 503: readiness says so once, not each request.
      const isFault = sample.status >= 500 && sample.status !== 503;
      ctx.state.log[isFault ? 'warn' : 'debug'](line, 'request');
    });
    await next();
  };
}

/**
 * Whether the request line names a path. It may also name a whole URL, or something that is none: then even asking Koa for
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
