import { createHmac } from 'node:crypto';
import type Router from '@koa/router';
import { parseUrl } from '../../../../src/domain/values/parse-url.ts';
import { operatorSessions } from '../../../../src/store/accounts/sessions.ts';
import { recordAction } from '../../../../src/store/ops/actions.ts';
import type { ApiContext, ApiState } from '../../../context.ts';
import { ApiError } from '../../../errors.ts';
import type { Assets } from '../../kit/assets.ts';
import { field } from '../../kit/forms.ts';
import { html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { enterForm, readForm } from '../../kit/router.ts';
import { hashSessionToken, isSameText, newSessionToken } from '../../kit/session.ts';
import { inAuditedTransaction, requireOperator } from '../actions.ts';
import { page } from '../layout.ts';
import { type Credential, credentialsOf, matchCredential } from './credentials.ts';
import { createLoginTurns, type LoginLane } from './login-turns.ts';
import { addressOf, cookieOf, findLiveSession, type OpsOptions, sessionIdOf, sessionOf } from './session.ts';

const LOGIN_PATH = '/ops/login';
const START = '/ops';
const MAX_PASSWORD_LENGTH = 1_024;
const MAX_NAME_LENGTH = 64;
/** Wrong passwords per minute of one name from one address (or from one known browser), in all API processes together. */
const MAX_FAILURES = 10;
const YEAR_SECONDS = 31_536_000;

type LoginDeps = Pick<PageDeps, 'db' | 'now' | 'log' | 'limits'>;

/**
 * The login page and its form. A password is checked before its failures count, so the failures of others never refuse a correct one.
 * Turns bound the cost and the rate of checks. A browser with an earlier login of the same name has a turn of its own.
 */
export function loginRoutes(router: Router<ApiState>, deps: LoginDeps, ops: OpsOptions, assets: Assets): void {
  const turns = createLoginTurns();

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
    const form = await readForm(ctx);
    const next = nextPath(form.get('next'));
    const name = (form.get('name') ?? '').trim().toLowerCase().slice(0, MAX_NAME_LENGTH);
    const password = (form.get('password') ?? '').slice(0, MAX_PASSWORD_LENGTH);
    const credentials = await credentialsOf(deps.db, ops, name);
    const lane = laneOf(ctx, ops, name, credentials);
    const credential = await turns(lane, () => matchCredential(ops, credentials, password));
    if (credential === null) {
      await noteFailure(ctx, deps, ops, lane, credentials);
      sendLoginPage(ctx, assets, next, { problem: 'The name or the password is wrong.', name });
      return;
    }
    await enter(ctx, deps, ops, credential);
    ctx.redirect(next);
    ctx.status = 303;
  });
}

/** Begins a session of this operator. */
async function enter(ctx: ApiContext, deps: LoginDeps, ops: OpsOptions, credential: Credential): Promise<void> {
  const { name, role, fingerprint } = credential;
  const address = addressOf(ctx, ops);
  const token = newSessionToken();
  const tokenHash = hashSessionToken(token);
  await deps.db.transaction(async (tx) => {
    const session = { tokenHash, role, actor: name, passwordFingerprint: fingerprint, address };
    await operatorSessions.begin(tx, session, deps.now());
    const from = { actor: name, role, sessionId: sessionIdOf(tokenHash), address, requestId: ctx.state.requestId };
    await recordAction(tx, { ...from, action: 'login', target: 'session', status: 'done', result: '' }, deps.now());
  });
  setCookie(ctx, ops, token);
  const known = knownCookieOf(ops);
  const value = knownDeviceToken(ops.sessionKey, credential);
  ctx.append('Set-Cookie', `${known.name}=${value}; ${known.attributes}; Max-Age=${YEAR_SECONDS}`);
}

/** The lane of a known browser, or of the name and the address. */
function laneOf(ctx: ApiContext, ops: OpsOptions, name: string, credentials: readonly Credential[]): LoginLane {
  const offered = ctx.cookies.get(knownCookieOf(ops).name) ?? '';
  const known = credentials.find((credential) => isSameText(knownDeviceToken(ops.sessionKey, credential), offered));
  if (known) return { id: `known ${known.name}`, isKnown: true };
  return { id: `${addressOf(ctx, ops)} ${name}`, isKnown: false };
}

/**
 * Counts a wrong password, and records the first one of a minute, so that guessing cannot fill the audit log. An unknown name is not
 * recorded, because it may be a password in the wrong field. @throws ApiError `rate_limited` beyond the limit
 */
async function noteFailure(
  ctx: ApiContext,
  deps: LoginDeps,
  ops: OpsOptions,
  lane: LoginLane,
  credentials: readonly Credential[],
): Promise<void> {
  const { isAdmitted, remaining, resetSeconds } = deps.limits.takeFailure('failed_logins', lane.id, MAX_FAILURES);
  if (isAdmitted && remaining === MAX_FAILURES - 1) {
    const actor = credentials.length === 1 ? (credentials[0]?.name ?? null) : null;
    const from = { actor, address: addressOf(ctx, ops), requestId: ctx.state.requestId };
    const entry = { ...from, action: 'login', target: 'session', status: 'refused', result: 'wrong password' } as const;
    await recordAction(deps.db, entry, deps.now());
  }
  if (isAdmitted) return;
  throw new ApiError('rate_limited', 'the name or the password is wrong, and too many logins have failed', {
    headers: { 'Retry-After': String(resetSeconds) },
  });
}

/** Logs out this session or all sessions. Needs a session. */
export function logoutRoutes(router: Router<ApiState>, deps: LoginDeps, ops: OpsOptions): void {
  router.post('/ops/logout', async (ctx) => {
    const session = sessionOf(ctx);
    await enterForm(ctx, session);
    const { operator, tokenHash } = session;
    const entry = { action: 'logout', target: 'session', operator, requestId: ctx.state.requestId };
    await inAuditedTransaction(deps, entry, async (tx) => {
      await operatorSessions.end(tx, tokenHash);
      return { result: '' };
    });
    leave(ctx, ops);
  });

  router.post('/ops/logout-everywhere', async (ctx) => {
    const session = sessionOf(ctx);
    const { operator } = session;
    const entry = { action: 'logout.everywhere', target: 'every session', operator, requestId: ctx.state.requestId };
    await requireOperator(deps, entry);
    await enterForm(ctx, session);
    await inAuditedTransaction(deps, entry, async (tx) => {
      const count = await operatorSessions.endAll(tx);
      return { result: count === 1 ? 'Ended 1 session.' : `Ended ${count} sessions.` };
    });
    leave(ctx, ops);
  });
}

function sendLoginPage(
  ctx: ApiContext,
  assets: Assets,
  next: string,
  failed?: { problem: string; name: string },
): void {
  ctx.status = failed === undefined ? 200 : 403;
  ctx.type = 'text/html; charset=utf-8';
  const body = html`<form method="post" action="${LOGIN_PATH}" class="login">
<input type="hidden" name="next" value="${next}">
${failed && html`<p class="problem" role="alert">${failed.problem}</p>`}
${field({ label: 'Name', name: 'name', autocomplete: 'username', hint: 'Leave empty for the password of the configuration.', hasFocus: failed === undefined, ...(failed && { value: failed.name }) })}
${field({ label: 'Password', name: 'password', type: 'password', isRequired: true, hasFocus: failed !== undefined, autocomplete: 'current-password' })}
<button type="submit" class="primary">Log in</button>
</form>`;
  ctx.body = page(assets, { title: 'Log in', body });
}

/** The target after the login: always a path of these pages, even if a link names another site. */
function nextPath(offered: string | null): string {
  const url = offered !== null && /^\/ops(?:[/?]|$)/.test(offered) ? parseUrl(offered, 'http://ops.invalid') : null;
  if (!url) return START;
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

/** The value of a cookie that proves an earlier login with the same password. */
function knownDeviceToken(sessionKey: Uint8Array, { fingerprint }: Credential): string {
  return createHmac('sha256', sessionKey).update('known device').update(fingerprint).digest('base64url');
}

/** The cookie of a browser with an earlier login (see credentials.ts). Only the login page gets it. */
function knownCookieOf(ops: Pick<OpsOptions, 'publicUrl'>): { name: string; attributes: string } {
  const attributes = 'Path=/ops/login; HttpOnly; SameSite=Strict';
  return ops.publicUrl?.startsWith('https:')
    ? { name: '__Secure-oddswire_ops_known', attributes: `${attributes}; Secure` }
    : { name: 'oddswire_ops_known', attributes };
}
