import { randomUUID } from 'node:crypto';
import type { ParameterizedContext } from 'koa';
import { consoleSessions, SESSION_MAX_MS } from '../../../../src/store/accounts/sessions.ts';
import type { ApiState } from '../../../context.ts';
import { html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { type ConsoleSession, csrfField, csrfTokenOf, hashSessionToken, isSessionToken } from '../../kit/session.ts';

type AnyContext = ParameterizedContext<ApiState>;

/** With https the prefix binds the cookie to this host, and plain http pages cannot set it. */
const SECURE_COOKIE = '__Host-oddswire_console';
const PLAIN_COOKIE = 'oddswire_console';
const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Strict';

/** The session of the request's cookie, or null. Each request queries it, because its key may have been revoked. */
export async function findConsoleSessionOf(
  ctx: AnyContext,
  deps: Pick<PageDeps, 'db' | 'now'>,
): Promise<ConsoleSession | null> {
  const token = ctx.cookies.get(SECURE_COOKIE) ?? ctx.cookies.get(PLAIN_COOKIE);
  if (!isSessionToken(token)) return null;
  const tokenHash = hashSessionToken(token);
  const found = await consoleSessions.find(deps.db, tokenHash, deps.now());
  if (found === null) return null;
  const { accountId, keyId, scopes, coldReadsPerMinute, accountName, keyName, ratePerMinute, flash } = found;
  const caller = { accountId, keyId, scopes, coldReadsPerMinute };
  const csrf = csrfTokenOf(token);
  return {
    caller,
    accountName,
    keyName,
    ratePerMinute,
    tokenHash,
    csrf,
    // The field `once` makes a form that is sent twice one write.
    hiddenFields: () => html`${csrfField(csrf)}<input type="hidden" name="once" value="${randomUUID()}">`,
    mayAct: true,
    flash,
  };
}

/** The session of a request; undefined for a visitor. */
export function signedIn(ctx: AnyContext): ConsoleSession | undefined {
  return ctx.state.session as ConsoleSession | undefined;
}

/** The session of a request behind the guard. */
export function consoleSessionOf(ctx: AnyContext): ConsoleSession {
  const session = signedIn(ctx);
  if (!session) throw new TypeError('this route does not run behind the guard of the console');
  return session;
}

/**
 * Sets the cookie of a new session. The header `Origin` of the sign-in form names the scheme that the browser sees, also behind a proxy
 * that terminates TLS: with https the cookie is `Secure`.
 */
export function setSessionCookie(ctx: AnyContext, token: string): void {
  const more = `Max-Age=${SESSION_MAX_MS / 1_000}`;
  const isSecure = ctx.get('Origin').startsWith('https:');
  ctx.append(
    'Set-Cookie',
    isSecure
      ? `${SECURE_COOKIE}=${token}; ${ATTRIBUTES}; Secure; ${more}`
      : `${PLAIN_COOKIE}=${token}; ${ATTRIBUTES}; ${more}`,
  );
}

/** Deletes the cookies of a session, and the browser's cache of the pages. */
export function clearSessionCookies(ctx: AnyContext): void {
  ctx.append('Set-Cookie', `${SECURE_COOKIE}=; ${ATTRIBUTES}; Secure; Max-Age=0`);
  ctx.append('Set-Cookie', `${PLAIN_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`);
  ctx.set('Clear-Site-Data', '"cache"');
}
