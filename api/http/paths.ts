import type { RouterMiddleware } from '@koa/router';
import type { ApiRouter, ApiState } from '../context.ts';
import { ApiError } from '../errors.ts';

/** The answer to one method of a path. */
export interface PathRoute {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `:name` for a parameter. */
  path: string;
  steps: readonly RouterMiddleware<ApiState>[];
}

/**
 * Registers routes so that the path decides before the method: of two paths that match a request, the one answers that first has a fixed
 * name where the other has a parameter. It answers 405 to the methods that only the other has, which would take its name for an id.
 */
export function registerPaths(router: ApiRouter, routes: readonly PathRoute[]): void {
  const paths = [...new Set(routes.map(({ path }) => path))].sort((a, b) => rankOf(a).localeCompare(rankOf(b)));
  for (const [place, path] of paths.entries()) {
    const own = routes.filter((route) => route.path === path);
    for (const { method, steps } of own) router[method](path, ...steps);
    const isShadowing = paths.slice(place + 1).some((later) => mayMatchOne(path, later));
    if (isShadowing) router.all(path, refuseMethod(own.map(({ method }) => method)));
  }
}

/** Orders paths: at the first difference a fixed name precedes a parameter. */
function rankOf(path: string): string {
  return segmentsOf(path)
    .map((segment) => (segment.startsWith(':') ? '1' : '0'))
    .join('');
}

/** Whether one request path matches both. */
function mayMatchOne(a: string, b: string): boolean {
  const [ofA, ofB] = [segmentsOf(a), segmentsOf(b)];
  return (
    ofA.length === ofB.length &&
    ofA.every((segment, place) => {
      const other = ofB[place] ?? '';
      return segment === other || segment.startsWith(':') || other.startsWith(':');
    })
  );
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1);
}

function refuseMethod(methods: readonly PathRoute['method'][]): RouterMiddleware<ApiState> {
  const allowed = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
  return () => {
    throw methodNotAllowed(allowed.sort());
  };
}

/** 405 for a path that accepts these methods only. */
export function methodNotAllowed(allowed: readonly string[]): ApiError {
  return new ApiError('method_not_allowed', `allowed methods: ${allowed.join(', ')}`, {
    headers: { Allow: allowed.join(', ') },
  });
}
