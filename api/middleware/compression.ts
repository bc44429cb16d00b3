import { constants } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import compress from 'koa-compress';
import type { ApiState } from '../deps.ts';

/** Below this a body fits a packet anyway. */
const THRESHOLD_BYTES = 1024;
/** Of 11; beyond it the time grows faster than the bytes shrink. */
const BROTLI_QUALITY = 4;

/**
 * Compresses answers with brotli or gzip, as the client prefers, and says `Vary: Accept-Encoding` on all of them. The ETags
 * are weak, so they hold for every encoding. The operator pages are left alone: they stream files of their own.
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
    // The raw target: reading the path of an invalid one throws (see text-guard.ts).
    if (ctx.req.url?.startsWith('/ops')) return next();
    if (ctx.req.headers['accept-encoding'] !== undefined) return compressed(ctx, next);
    ctx.vary('Accept-Encoding');
    return next();
  };
}

/** A client may refuse every encoding, even none: it gets the plain text then, as RFC 9110 section 12.5.3 allows. */
function acceptsSomething(ctx: Context): boolean {
  return ctx.get('Accept-Encoding') === '' || ctx.acceptsEncodings('br', 'gzip', 'identity') !== false;
}
