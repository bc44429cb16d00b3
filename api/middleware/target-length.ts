import type { Middleware } from 'koa';
import type { ApiState } from '../deps.ts';
import { ApiError } from '../errors.ts';

/** Path and query: a hundred market ids of the longest kind fit in. */
const MAX_TARGET_LENGTH = 8_192;

/** Refuses request targets that are longer than any of ours. */
export const targetLength: Middleware<ApiState> = (ctx, next) => {
  if ((ctx.req.url ?? '').length <= MAX_TARGET_LENGTH) return next();
  throw new ApiError('uri_too_long', `path and query may have at most ${MAX_TARGET_LENGTH} characters`);
};
