import type { Middleware } from 'koa';
import type { ApiState } from '../context.ts';
import { ApiError } from '../errors.ts';

/** Path and query: 100 market ids of the longest kind fit. */
const MAX_TARGET_LENGTH = 8_192;

/** Rejects longer request targets. */
export const targetLength: Middleware<ApiState> = (ctx, next) => {
  if ((ctx.req.url ?? '').length <= MAX_TARGET_LENGTH) return next();
  throw new ApiError('uri_too_long', `path and query must have at most ${MAX_TARGET_LENGTH} characters`);
};
