import type { Middleware } from 'koa';
import { isStorableText } from '../../src/domain/values/text.ts';
import { hostProblem } from '../access/host-header.ts';
import type { ApiState } from '../context.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../errors.ts';
import { isPathTarget } from './request-context.ts';

const UNSTORABLE = 'must not contain U+0000 or lone surrogates';
/** Text that needs no decoding for the check. */
const PLAIN = /^[\x21-\x24\x26-\x7e]*$/;
/** UTF-8 bytes of a surrogate. Node shows each header byte as one character. */
const ENCODED_SURROGATE = /\xed[\xa0-\xbf][\x80-\xbf]/;

/**
 * Rejects text that Postgres cannot store before any route runs: U+0000 and lone surrogates in path, query and headers, and
 * percent-encodings that are not UTF-8. `readJsonBody` checks bodies. Also rejects a request without a single Host header.
 */
export const textGuard: Middleware<ApiState> = async (ctx, next) => {
  if (!isPathTarget(ctx.req.url))
    throw invalidRequest([{ path: 'path', message: 'the request line must name a path' }]);
  const details: ErrorDetail[] = [];
  const host = hostProblem(ctx.req);
  if (host !== null) details.push({ path: 'headers.host', message: host });
  if (!PLAIN.test(ctx.req.url ?? '')) {
    const pathProblem = encodedTextProblem(ctx.path);
    if (pathProblem !== null) details.push({ path: 'path', message: pathProblem });
    // A plus means a space in a query. The check ignores this, because no rule concerns spaces.
    const queryProblem = encodedTextProblem(ctx.querystring);
    if (queryProblem !== null) details.push({ path: 'query', message: queryProblem });
  }
  for (const name in ctx.headers) {
    const text = String(ctx.headers[name]);
    if (text.includes('\0') || ENCODED_SURROGATE.test(text)) {
      details.push({ path: `headers.${name}`, message: UNSTORABLE });
    }
  }
  if (details.length > 0) throw invalidRequest(details);
  await next();
};

function encodedTextProblem(encoded: string): string | null {
  if (encoded === '') return null;
  if (ENCODED_SURROGATE.test(encoded)) return UNSTORABLE;
  let decoded: string;
  try {
    decoded = decodeURIComponent(encoded);
  } catch (error) {
    // A URIError means a lone `%`, or bytes that are not UTF-8, such as encoded surrogates.
    if (error instanceof URIError) return 'is not valid percent-encoded UTF-8';
    throw error;
  }
  return isStorableText(decoded) ? null : UNSTORABLE;
}

/** Path and query: 100 market ids of the longest kind fit. */
const MAX_TARGET_LENGTH = 8_192;

/** Rejects longer request targets. */
export const targetLength: Middleware<ApiState> = (ctx, next) => {
  if ((ctx.req.url ?? '').length <= MAX_TARGET_LENGTH) return next();
  throw new ApiError('uri_too_long', `path and query must have at most ${MAX_TARGET_LENGTH} characters`);
};
