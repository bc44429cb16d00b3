import type Router from '@koa/router';
import {
  beginConsoleSession,
  endConsoleSession,
  endConsoleSessionsOf,
} from '../../src/store/accounts/console-sessions.ts';
import { clientNetwork } from '../access/client-address.ts';
import type { ApiContext, ApiDeps, ApiState, ConsoleOptions } from '../deps.ts';
import type { OpsAssets } from '../ops/assets.ts';
import { readForm } from '../ops/form-body.ts';
import { field } from '../ops/forms.ts';
import { facts, html } from '../ops/html.ts';
import { hashSessionToken, newSessionToken } from '../ops/operator.ts';
import { type ConsoleRouter, enterForm } from './console-route.ts';
import { clearSessionCookies, consoleSessionOf, findConsoleSessionOf, setSessionCookie } from './console-session.ts';
import { consoleButton } from './forms.ts';
import { consolePage, startPath } from './layout.ts';

type SignInDeps = Pick<ApiDeps, 'db' | 'now' | 'keys' | 'failedKeys'>;

/** `/`: what oddswire is, and the sign-in. With a session it leads to the first page that the key may read. */
export function signInRoutes(
  router: Router<ApiState>,
  deps: SignInDeps,
  options: ConsoleOptions,
  assets: OpsAssets,
): void {
  router.get('/', async (ctx) => {
    const next = new URLSearchParams(ctx.querystring).get('next');
    const session = await findConsoleSessionOf(ctx, deps);
    if (session === null) return sendStart(ctx, assets, next);
    ctx.redirect(nextPath(next) ?? startPath(session.caller.scopes));
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
      return sendStart(ctx, assets, next, 'The key is unknown, expired or revoked.');
    }
    const token = newSessionToken();
    const address = clientNetwork(ctx.req, options.trustedProxies ?? []);
    const session = { tokenHash: hashSessionToken(token), keyId: found.id, address };
    await deps.db.transaction((tx) => beginConsoleSession(tx, session, deps.now()));
    setSessionCookie(ctx, token);
    ctx.redirect(nextPath(next) ?? startPath(found.scopes));
    ctx.status = 303;
  });
}

/** Ends this session, or all sessions of the account. Needs a session. */
export function signOutRoutes(router: Router<ApiState>, deps: SignInDeps): void {
  router.post('/sign-out', async (ctx) => {
    await enterForm(ctx);
    await endConsoleSession(deps.db, consoleSessionOf(ctx).tokenHash);
    leave(ctx);
  });
  router.post('/sign-out-everywhere', async (ctx) => {
    await enterForm(ctx);
    await endConsoleSessionsOf(deps.db, consoleSessionOf(ctx).caller.accountId);
    leave(ctx);
  });
}

/** /account: who is signed in, and the sign-out of all browsers. */
export function accountPage(router: ConsoleRouter): void {
  router.page({
    path: '/account',
    section: 'markets',
    async load(request) {
      const { accountName, keyName, caller } = request.session;
      return {
        title: 'Account',
        body: html`${facts([
          ['Account', accountName],
          ['Signed in with the key', keyName],
          ['Id of the key', html`<code>${caller.keyId}</code>`],
          ['Scopes', caller.scopes.join(', ')],
        ])}
<p class="lead">This browser keeps a session, not the key.
The session ends after 12 hours, and at once when the key is revoked or expires.</p>
${consoleButton(request, {
  action: '/sign-out-everywhere',
  label: 'Sign out everywhere',
  isDangerous: true,
  confirm: 'Every browser that is signed in to this account has to sign in again. Keys stay valid.',
})}`,
      };
    },
  });
}

const PROMISES = [
  [
    'Markets',
    'The probability of each market as its venue quotes it, with history, book and trades. Prices are live, and each gap is shown.',
  ],
  ['Alerts', 'One event when a price crosses your target. No event is lost, and each has one id.'],
  ['Webhooks', 'Each event reaches your receiver with a signature. You see every attempt, and can send it again.'],
] as const;

function sendStart(ctx: ApiContext, assets: OpsAssets, next: string | null, problem?: string): void {
  ctx.status = problem === undefined ? 200 : 403;
  ctx.type = 'text/html; charset=utf-8';
  const body = html`<p class="lead">oddswire reads prediction markets, keeps one history of all of them, and informs your programs when a
price moves. It places no orders.</p>
<div class="start">
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
  ctx.body = consolePage(assets, { title: 'Prediction markets, live and complete', body });
}

/** A path of the console, even if a link names another site. */
function nextPath(offered: string | null): string | undefined {
  const base = 'http://console.invalid';
  if (offered === null || !/^\/[a-z]/.test(offered) || !URL.canParse(offered, base)) return undefined;
  const url = new URL(offered, base);
  return url.origin === base && !url.pathname.startsWith('//') ? url.pathname + url.search : undefined;
}

function leave(ctx: ApiContext): void {
  clearSessionCookies(ctx);
  ctx.redirect('/');
  ctx.status = 303;
}
