import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiDeps, ApiState } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { methodNotAllowed } from '../../http/paths.ts';
import { logFailedRequest, toApiError } from '../../middleware/envelope.ts';
import { wantsHtml } from '../ops/access/guard.ts';
import { type Html, html } from './html.ts';

type Context = ParameterizedContext<ApiState>;

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

/** Shows a failure as a page in a browser. Scripts get the envelope of the API. `show` makes the page from its title and text. */
export function errorPages(
  deps: Pick<ApiDeps, 'log'>,
  show: (ctx: Context, title: string, text: (help: Html) => Html) => string,
): Middleware<ApiState> {
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
      ctx.body = show(ctx, TITLES[error.status] ?? 'Request failed', (help) =>
        errorText(error, help, ctx.state.requestId),
      );
    }
  };
}

/** The message contains a single detail, so only several of them need a list. */
function errorText({ message, details }: ApiError, help: Html, requestId: string): Html {
  return html`<p class="lead">${message}</p>
${details.length > 1 && html`<ul>${details.map(({ path, message: reason }) => html`<li>${path}: ${reason}</li>`)}</ul>`}
${help}
<p class="hint">Request <code>${requestId}</code></p>`;
}

/** The answer without a matching page: 405 when another method matches, else 404. */
export const pageNotFound: Middleware<ApiState> = (ctx) => {
  const { matched = [] } = ctx as { matched?: readonly { methods: readonly string[] }[] };
  const allowed = [...new Set(matched.flatMap(({ methods }) => methods))].sort();
  throw allowed.length === 0 ? new ApiError('not_found', 'the page does not exist') : methodNotAllowed(allowed);
};
