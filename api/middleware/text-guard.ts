import type { Middleware } from 'koa';
import { isStorableText } from '../../src/domain/values/text.ts';
import type { ApiState } from '../deps.ts';
import { type ErrorDetail, invalidRequest } from '../errors.ts';
import { isPathTarget } from './request-context.ts';

const UNSTORABLE = 'must not hold U+0000 or lone surrogates';
/** Text that is harmless without decoding. */
const PLAIN = /^[\x21-\x24\x26-\x7e]*$/;
/** UTF-8 bytes of a surrogate, as Node shows header bytes: one character each. */
const ENCODED_SURROGATE = /\xed[\xa0-\xbf][\x80-\xbf]/;

/**
 * Refuses text that Postgres cannot store before any route sees it: U+0000 and lone surrogates in path, query and headers,
 * and percent-encodings that are not UTF-8 (DESIGN section 4, "Text"). Bodies are looked at when they are read.
 */
export const textGuard: Middleware<ApiState> = async (ctx, next) => {
  if (!isPathTarget(ctx.req.url))
    throw invalidRequest([{ path: 'path', message: 'the request line must name a path' }]);
  const details: ErrorDetail[] = [];
  if (!PLAIN.test(ctx.req.url ?? '')) {
    const pathProblem = encodedTextProblem(ctx.path);
    if (pathProblem !== null) details.push({ path: 'path', message: pathProblem });
    // A plus is a space in a query, which no rule here is about.
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
    // Only a URIError can come: a lone `%`, or bytes that are not UTF-8, such as encoded surrogates.
    if (error instanceof URIError) return 'is not valid percent-encoded UTF-8';
    throw error;
  }
  return isStorableText(decoded) ? null : UNSTORABLE;
}
