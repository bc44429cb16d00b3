import type { Middleware, ParameterizedContext } from 'koa';
import { parseUrl } from '../../../src/domain/values/parse-url.ts';
import type { ApiState } from '../../context.ts';
import { ApiError } from '../../errors.ts';
import { methodNotAllowed } from '../../http/paths.ts';
import { logFailedRequest, toApiError } from '../../middleware/envelope.ts';
import type { Assets } from './assets.ts';
import { type Html, html } from './html.ts';
import type { PageDeps } from './page-deps.ts';

type Context = ParameterizedContext<ApiState>;

interface Site {
  /** Whether a path belongs to these pages. */
  has(path: string): boolean;
  assets: Assets;
  /** The page of a failure, from its title and its text around the advice. */
  errorPage(ctx: Context, title: string, text: (advice: Html) => Html): string;
  /** Named in the refusal of another origin. */
  name: string;
  /** The address of the pages for browsers. Absent: that of the request. */
  publicUrl?: string | undefined;
  /** Runs before the headers and the files of the pages. */
  admit?: Middleware<ApiState>;
  /** In their order. The guard divides the routes for everyone from those with a session. */
  layers: readonly Middleware<ApiState>[];
}

/** A group of pages: its failures are pages, its headers block third parties, and only its own pages may change anything. */
export function createSite(deps: Pick<PageDeps, 'log'>, site: Site): Middleware<ApiState> {
  const { assets, admit } = site;
  const first = [errorPages(deps, site), ...(admit ? [admit] : []), headers(site), sendAssets(assets)];
  const layers = [...first, ...site.layers, notFound];
  return (ctx, next) => {
    if (!site.has(ctx.path)) return next();
    return layers.reduceRight<() => Promise<unknown>>((inner, layer) => async () => layer(ctx, inner), next)();
  };
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Not logged in',
  403: 'Not allowed',
  404: 'Not found',
  421: 'Unknown host',
  429: 'Too many attempts',
  500: 'Server error',
  503: 'Not available',
};

/** Shows a failure as a page in a browser. Scripts get the envelope of the API. */
function errorPages(deps: Pick<PageDeps, 'log'>, { errorPage }: Pick<Site, 'errorPage'>): Middleware<ApiState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = toApiError(thrown);
      if (!wantsHtml(ctx)) throw error;
      if (error.status === 500) logFailedRequest(deps, ctx, thrown);
      ctx.set(error.headers);
      ctx.status = error.status;
      ctx.type = 'text/html; charset=utf-8';
      ctx.body = errorPage(ctx, TITLES[error.status] ?? 'Request failed', (advice) =>
        errorText(error, advice, ctx.state.requestId),
      );
    }
  };
}

/** The message contains a single detail, so only several of them need a list. */
function errorText({ message, details }: ApiError, advice: Html, requestId: string): Html {
  return html`<p class="lead">${message}</p>
${details.length > 1 && html`<ul>${details.map(({ path, message: reason }) => html`<li>${path}: ${reason}</li>`)}</ul>`}
${advice}
<p class="hint">Request <code>${requestId}</code></p>`;
}

const QUEUES_PATH = '/ops/queues';

/** The pages load only their own files. The chart and editor libraries of the queue dashboard create styles at run time. */
function contentSecurityPolicy(path: string): string {
  const isDashboard = path === QUEUES_PATH || path.startsWith(`${QUEUES_PATH}/`);
  return [
    "default-src 'none'",
    "script-src 'self'",
    isDashboard ? "style-src 'self' 'unsafe-inline'" : "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    isDashboard ? "base-uri 'self'" : "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Sets headers that block third parties, and accepts writes only from the pages themselves. The check of the origin supplements
 * the SameSite cookie.
 */
function headers({ publicUrl, name }: Pick<Site, 'publicUrl' | 'name'>): Middleware<ApiState> {
  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', contentSecurityPolicy(ctx.path));
    // Without a referrer, browsers send `Origin: null` with forms.
    ctx.set('Referrer-Policy', 'same-origin');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('X-Frame-Options', 'DENY');
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin');
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin');
    ctx.set('Cache-Control', 'no-store');
    if (!isRead(ctx) && !isSameOrigin(ctx, publicUrl)) {
      throw new ApiError('cross_origin', `the server accepts changes only from ${name}`);
    }
    await next();
  };
}

/**
 * Whether the headers name this origin as the source of the request. Without both headers the client is not a current browser, and
 * the request is rejected.
 */
function isSameOrigin(ctx: Context, publicUrl: string | undefined): boolean {
  const fetchSite = ctx.get('Sec-Fetch-Site');
  const origin = ctx.get('Origin');
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  if (origin === '') return fetchSite === 'same-origin';
  const parsed = parseUrl(origin);
  if (!parsed) return false;
  return publicUrl === undefined ? parsed.host === ctx.host : parsed.origin === new URL(publicUrl).origin;
}

function sendAssets(assets: Assets): Middleware<ApiState> {
  return async (ctx, next) => {
    if (!assets.has(ctx.path)) return next();
    if (!isRead(ctx)) throw methodNotAllowed(['GET', 'HEAD']);
    assets.send(ctx);
  };
}

/**
 * Leads a request without a session to the page `signIn`, which gets the requested address as `next` unless it is `start`.
 * @throws ApiError `unauthorized` for scripts
 */
export function leadToSignIn(
  ctx: Context,
  { signIn, start, realm, message }: { signIn: string; start?: string; realm: string; message: string },
): void {
  if (!isRead(ctx) || !wantsHtml(ctx)) {
    throw new ApiError('unauthorized', message, { headers: { 'WWW-Authenticate': `Session realm="${realm}"` } });
  }
  ctx.status = 303;
  ctx.redirect(ctx.path === start ? signIn : `${signIn}?${new URLSearchParams({ next: ctx.url }).toString()}`);
}

/** Whether a browser requests a page. Scripts do not accept `text/html`. */
function wantsHtml(ctx: Context): boolean {
  return ctx.get('Accept').includes('text/html');
}

function isRead(ctx: Context): boolean {
  return ctx.method === 'GET' || ctx.method === 'HEAD';
}

/** The answer without a matching page: 405 when another method matches, else 404. */
const notFound: Middleware<ApiState> = (ctx) => {
  const { matched = [] } = ctx as { matched?: readonly { methods: readonly string[] }[] };
  const allowed = [...new Set(matched.flatMap(({ methods }) => methods))].sort();
  throw allowed.length === 0 ? new ApiError('not_found', 'the page does not exist') : methodNotAllowed(allowed);
};
