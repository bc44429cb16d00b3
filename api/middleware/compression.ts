import { constants } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import compress from 'koa-compress';
import type { ApiState } from '../context.ts';

/** A smaller body fits into one packet. */
const THRESHOLD_BYTES = 1024;
/** Of 11. Above 4 the time grows faster than the size shrinks. */
const BROTLI_QUALITY = 4;

/**
 * Compresses answers with brotli or gzip, as the client prefers, and sends `Vary: Accept-Encoding` with all answers. The ETags are
 * weak, so one ETag is valid for every encoding. The operator pages are excluded, because they contain form tokens beside text of others,
 * and because they compress their own files; the queue dashboard is not.
 */
export function compression(): Middleware<ApiState> {
  const compressed = compress({
    threshold: (_type, _size, ctx) => (acceptsSomething(ctx) ? THRESHOLD_BYTES : Number.POSITIVE_INFINITY),
    br: { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } },
    gzip: {},
    deflate: false,
    zstd: false,
  });
  return (ctx, next) => {
    // The raw target, because `ctx.path` throws for an invalid target (see text-guard.ts).
    if (ctx.req.url?.startsWith('/ops') && !ctx.req.url.startsWith('/ops/queues')) return next();
    if (ctx.req.headers['accept-encoding'] !== undefined) return compressed(ctx, next);
    ctx.vary('Accept-Encoding');
    return next();
  };
}

/** A client that rejects every encoding, including identity, gets plain text (RFC 9110 section 12.5.3 allows this). */
function acceptsSomething(ctx: Context): boolean {
  return ctx.get('Accept-Encoding') === '' || ctx.acceptsEncodings('br', 'gzip', 'identity') !== false;
}
