import type Router from '@koa/router';
import { consoleSessions } from '../../../../src/store/accounts/sessions.ts';
import {
  beginSessionOfLink,
  findSignInLink,
  LINK_MINUTES,
  LINK_PATH,
} from '../../../../src/store/accounts/sign-in-links.ts';
import { recordAction } from '../../../../src/store/ops/actions.ts';
import { clientNetwork } from '../../../access/client-address.ts';
import type { ApiContext, ApiState } from '../../../context.ts';
import type { AuthDeps } from '../../../middleware/authenticate.ts';
import type { Assets } from '../../kit/assets.ts';
import { field } from '../../kit/forms.ts';
import { type Html, html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { enterForm, type PageContent, readForm } from '../../kit/router.ts';
import { hashSessionToken, newSessionToken } from '../../kit/session.ts';
import { consolePage } from '../layout.ts';
import type { ConsoleOptions, PublicMarket } from '../public-market.ts';
import { firstPage } from '../start/page.ts';
import { nextPath } from '../values.ts';
import { clearSessionCookies, consoleSessionOf, findConsoleSessionOf, setSessionCookie } from './session.ts';

type LinkDeps = Pick<PageDeps, 'db'> & Pick<AuthDeps, 'now' | 'failedKeys'>;
type SignInDeps = LinkDeps & Pick<AuthDeps, 'keys'>;

/** `/`: what oddswire is, the public market, and the sign-in. With a session it leads to the first page that the key may read. */
export function signInRoutes(
  router: Router<ApiState>,
  deps: SignInDeps,
  options: ConsoleOptions,
  { assets, market }: { assets: Assets; market: PublicMarket | undefined },
): void {
  async function sendStart(ctx: ApiContext, next: string | null, problem?: string): Promise<void> {
    const page = startPage(next, { market: await market?.part(ctx.state.requestId), problem });
    sendPage(ctx, problem === undefined ? 200 : 403, consolePage(assets, page));
  }

  router.get('/', async (ctx) => {
    const next = new URLSearchParams(ctx.querystring).get('next');
    const session = await findConsoleSessionOf(ctx, deps);
    if (session === null) return sendStart(ctx, next);
    ctx.redirect(nextPath(next) ?? (await firstPage(ctx, deps.db, session.caller)));
    ctx.status = 303;
  });

  // The address of the page after a failed sign-in.
  router.get('/sign-in', (ctx) => {
    ctx.redirect('/');
    ctx.status = 303;
  });

  router.post('/sign-in', async (ctx) => {
    const form = await readForm(ctx);
    const next = form.get('next');
    const key = (form.get('key') ?? '').trim();
    const found = await deps.keys.find(key, deps.now());
    if (found === null) {
      const limited = deps.failedKeys.count(ctx.req);
      if (limited) throw limited;
      return sendStart(ctx, next, 'The key is unknown, expired or revoked.');
    }
    const token = newSessionToken();
    const address = clientNetwork(ctx.req, options.trustedProxies ?? []);
    const session = { tokenHash: hashSessionToken(token), keyId: found.id, address };
    await deps.db.transaction((tx) => consoleSessions.begin(tx, session, deps.now()));
    setSessionCookie(ctx, token);
    ctx.redirect(nextPath(next) ?? (await firstPage(ctx, deps.db, found)));
    ctx.status = 303;
  });
}

/** Ends this session, or all sessions of the account. Needs a session. */
export function signOutRoutes(router: Router<ApiState>, deps: SignInDeps): void {
  router.post('/sign-out', async (ctx) => {
    const session = consoleSessionOf(ctx);
    await enterForm(ctx, session);
    await consoleSessions.end(deps.db, session.tokenHash);
    leave(ctx);
  });
  router.post('/sign-out-everywhere', async (ctx) => {
    const session = consoleSessionOf(ctx);
    await enterForm(ctx, session);
    await consoleSessions.endOf(deps.db, session.caller.accountId);
    leave(ctx);
  });
}

/** `/console/sign-in/{token}`: the page of a one-time link. Its button uses the link, so that a preview of the link does not. */
export function linkRoutes(router: Router<ApiState>, deps: LinkDeps, options: ConsoleOptions, assets: Assets): void {
  router.get(`${LINK_PATH}/:token`, async (ctx) => {
    const token = ctx.params['token'] ?? '';
    const link = await findSignInLink(deps.db, token, deps.now());
    if (link === null) return sendNoLink(ctx, assets);
    const body = html`<p class="lead">You sign in to the account <strong>${link.accountName}</strong>, with the scopes ${link.scopes.join(', ')}.</p>
<div class="card"><form method="post" action="${LINK_PATH}" class="login"><input type="hidden" name="token" value="${token}">
<button type="submit" class="primary">Sign in</button></form>
<p class="hint">The link works once. This browser keeps a session for 12 hours.</p></div>`;
    sendPage(ctx, 200, consolePage(assets, { title: 'Sign in', body }));
  });

  router.post(LINK_PATH, async (ctx) => {
    const form = await readForm(ctx);
    const address = clientNetwork(ctx.req, options.trustedProxies ?? []);
    const sessionToken = newSessionToken();
    const nowMs = deps.now();
    const used = await deps.db.transaction(async (tx) => {
      const session = { tokenHash: hashSessionToken(sessionToken), address };
      const link = await beginSessionOfLink(tx, { token: form.get('token') ?? '', session }, nowMs);
      if (link === null) return null;
      const { accountId, keyId, scopes, issuedBy } = link;
      const result = `signed in with a link of ${issuedBy}: ${scopes.join(', ')}`;
      const action = { action: 'key.create', target: keyId, status: 'done', result } as const;
      const by = { source: 'api', actor: keyId, accountId, address, requestId: ctx.state.requestId } as const;
      await recordAction(tx, { ...by, ...action }, nowMs);
      return link;
    });
    if (used === null) {
      const limited = deps.failedKeys.count(ctx.req);
      if (limited) throw limited;
      return sendNoLink(ctx, assets);
    }
    setSessionCookie(ctx, sessionToken);
    ctx.redirect(await firstPage(ctx, deps.db, used));
    ctx.status = 303;
  });
}

/** The answer to a used, expired or unknown link. */
function sendNoLink(ctx: ApiContext, assets: Assets): void {
  const body = html`<p class="lead">This link was used, has expired, or is not complete. A link works once and for ${LINK_MINUTES} minutes.</p>
<p>Ask the operator for another link, or <a href="/">sign in with a key</a>.</p>`;
  sendPage(ctx, 404, consolePage(assets, { title: 'The link does not work', body }));
}

function sendPage(ctx: ApiContext, status: number, page: string): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = page;
}

const PROMISES = [
  [
    'Markets',
    'The probability of each market as its venue quotes it, with history, book and trades. Prices are live, and each gap is shown.',
  ],
  ['Alerts', 'One event when a price crosses your target. No event is lost, and each has one id.'],
  ['Webhooks', 'Each event reaches your receiver with a signature. You see every attempt, and can send it again.'],
] as const;

function startPage(
  next: string | null,
  { market, problem }: { market: Html | undefined; problem: string | undefined },
): PageContent {
  const body = html`<p class="lead">oddswire reads prediction markets, keeps one history of all of them, and informs your programs when a
price moves. It places no orders.</p>
<div class="start${market && ' with-market'}">${market}
<section class="card" aria-labelledby="sign-in"><h2 id="sign-in">Sign in</h2>
<form method="post" action="/sign-in" class="login">
<input type="hidden" name="next" value="${nextPath(next) ?? ''}">
${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
${field({
  label: 'API key',
  name: 'key',
  type: 'password',
  isRequired: true,
  autocomplete: 'current-password',
  hint: 'The operator of this service issues keys. This browser keeps a session for 12 hours, not the key.',
})}
<button type="submit" class="primary">Sign in</button></form></section>
<section aria-labelledby="what"><h2 id="what">What you see here</h2>
<dl class="promises">${PROMISES.map(([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
<p><a class="button" href="/docs">Read the API</a></p></section>
</div>`;
  return { title: 'Prediction markets, live and complete', body, ...(market && { scripts: ['market.js'] }) };
}

function leave(ctx: ApiContext): void {
  clearSessionCookies(ctx);
  ctx.redirect('/');
  ctx.status = 303;
}
