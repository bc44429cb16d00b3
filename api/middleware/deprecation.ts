import type { RouterMiddleware } from '@koa/router';
import type { ApiState } from '../deps.ts';

/** How a route ends (docs/api.md, "Deprecation"). */
export interface Deprecation {
  /** When it was deprecated, and when it stops to answer; ISO 8601. */
  since: string;
  sunset: string;
  /** The documentation of the replacement. */
  link: string;
}

/** Says in every answer of a route, failures included, that it ends: RFC 9745 and RFC 8594. */
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
