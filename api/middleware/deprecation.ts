import type { RouterMiddleware } from '@koa/router';
import type { ApiState } from '../context.ts';

/** The deprecation of a route (docs/api.md, "Deprecation"). */
export interface Deprecation {
  /** ISO 8601: the start of the deprecation, and the removal of the route. */
  since: string;
  sunset: string;
  /** The documentation of the replacement. */
  link: string;
}

/** Announces the deprecation in every answer of a route, failures included (RFC 9745, RFC 8594). */
export function deprecation({ since, sunset, link }: Deprecation): RouterMiddleware<ApiState> {
  const headers = {
    Deprecation: `@${Math.floor(Date.parse(since) / 1000)}`,
    Sunset: new Date(sunset).toUTCString(),
    Link: `<${link}>; rel="deprecation"; type="text/html"`,
  };
  return (ctx, next) => {
    ctx.set(headers);
    return next();
  };
}
