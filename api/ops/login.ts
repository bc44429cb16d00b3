import type Router from '@koa/router';
import { recordAction } from '../../src/store/ops/actions.ts';
import { beginSession, endAllSessions, endSession } from '../../src/store/ops/sessions.ts';
import type { ApiContext, ApiDeps, ApiState, OpsOptions } from '../deps.ts';
import type { OpsAssets } from './assets.ts';
import { inAuditedTransaction, requireOperator } from './audit.ts';
import { readForm } from './form-body.ts';
import { field } from './forms.ts';
import { html } from './html.ts';
import { page } from './layout.ts';
import { createLoginLimits } from './login-limits.ts';
import { hashSessionToken, newSessionToken, passwordFingerprint, roleOfPassword, sessionIdOf } from './operator.ts';
import { enterForm } from './ops-route.ts';
import { addressOf, cookieOf, findLiveSession, sessionOf } from './ops-session.ts';

const LOGIN_PATH = '/ops/login';
const START = '/ops';
const MAX_PASSWORD_LENGTH = 1_024;

type LoginDeps = Pick<ApiDeps, 'db' | 'now' | 'log'>;

/** The login page and its form. */
export function loginRoutes(router: Router<ApiState>, deps: LoginDeps, ops: OpsOptions, assets: OpsAssets): void {
  const limits = createLoginLimits();

  router.get(LOGIN_PATH, async (ctx) => {
    const next = nextPath(new URLSearchParams(ctx.querystring).get('next'));
    if ((await findLiveSession(ctx, deps, ops)) !== null) {
      ctx.redirect(next);
      ctx.status = 303;
      return;
    }
    sendLoginPage(ctx, assets, next);
  });

  router.post(LOGIN_PATH, async (ctx) => {
    const address = addressOf(ctx, ops);
    limits.check(address);
    const form = await readForm(ctx);
    const next = nextPath(form.get('next'));
    const role = roleOfPassword(ops.passwords, (form.get('password') ?? '').slice(0, MAX_PASSWORD_LENGTH));
    const from = { address, target: 'session', requestId: ctx.state.requestId };
    if (role === null) {
      const isFirst = limits.failed(address);
      // One entry per minute and address, so that guessing cannot fill the log.
      if (isFirst) {
        const unknown = { role: null, sessionId: null, action: 'login' } as const;
        await recordAction(deps.db, { ...from, ...unknown, status: 'refused', result: 'wrong password' }, deps.now());
      }
      sendLoginPage(ctx, assets, next, 'The password is wrong.');
      return;
    }
    const token = newSessionToken();
    const tokenHash = hashSessionToken(token);
    const fingerprint = passwordFingerprint(ops.sessionKey, ops.passwords, role);
    if (fingerprint === null) throw new TypeError('the role has a password but no fingerprint');
    await deps.db.transaction(async (tx) => {
      await beginSession(tx, { tokenHash, role, passwordFingerprint: fingerprint, address }, deps.now());
      const entry = { role, sessionId: sessionIdOf(tokenHash), action: 'login', status: 'done', result: '' } as const;
      await recordAction(tx, { ...from, ...entry }, deps.now());
    });
    setCookie(ctx, ops, token);
    ctx.redirect(next);
    ctx.status = 303;
  });
}

/** Logs out this session or all sessions. Needs a session. */
export function logoutRoutes(router: Router<ApiState>, deps: LoginDeps, ops: OpsOptions): void {
  router.post('/ops/logout', async (ctx) => {
    await enterForm(ctx);
    const { operator, tokenHash } = sessionOf(ctx);
    const entry = { action: 'logout', target: 'session', operator, requestId: ctx.state.requestId };
    await inAuditedTransaction(deps, entry, async (tx) => {
      await endSession(tx, tokenHash);
      return { result: '' };
    });
    leave(ctx, ops);
  });

  router.post('/ops/logout-everywhere', async (ctx) => {
    const { operator } = sessionOf(ctx);
    const entry = { action: 'logout.everywhere', target: 'every session', operator, requestId: ctx.state.requestId };
    await requireOperator(deps, entry);
    await enterForm(ctx);
    await inAuditedTransaction(deps, entry, async (tx) => {
      const count = await endAllSessions(tx);
      return { result: count === 1 ? 'Ended 1 session.' : `Ended ${count} sessions.` };
    });
    leave(ctx, ops);
  });
}

function sendLoginPage(ctx: ApiContext, assets: OpsAssets, next: string, problem?: string): void {
  ctx.status = problem === undefined ? 200 : 403;
  ctx.type = 'text/html; charset=utf-8';
  const body = html`<form method="post" action="${LOGIN_PATH}" class="login">
<input type="hidden" name="next" value="${next}">
${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
${field({ label: 'Password', name: 'password', type: 'password', isRequired: true, autocomplete: 'current-password' })}
<button type="submit" class="primary">Log in</button>
</form>`;
  ctx.body = page(assets, { title: 'Log in', body });
}

/** The target after the login: always a path of these pages, even if a link names another site. */
function nextPath(offered: string | null): string {
  if (offered === null || !/^\/ops(?:[/?]|$)/.test(offered) || !URL.canParse(offered, 'http://ops.invalid'))
    return START;
  const url = new URL(offered, 'http://ops.invalid');
  const isOurs = url.origin === 'http://ops.invalid' && /^\/ops(?:\/|$)/.test(url.pathname);
  return isOurs && url.pathname !== LOGIN_PATH ? url.pathname + url.search : START;
}

function setCookie(ctx: ApiContext, ops: OpsOptions, value: string, more = ''): void {
  const { name, attributes } = cookieOf(ops);
  ctx.append('Set-Cookie', `${name}=${value}; ${attributes}${more}`);
}

function leave(ctx: ApiContext, ops: OpsOptions): void {
  setCookie(ctx, ops, '', '; Max-Age=0');
  // Also clears the browser cache of the pages.
  ctx.set('Clear-Site-Data', '"cache"');
  ctx.redirect(LOGIN_PATH);
  ctx.status = 303;
}
