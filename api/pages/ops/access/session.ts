import type { ParameterizedContext } from 'koa';
import { findSession, touchSession } from '../../../../src/store/ops/sessions.ts';
import { clientNetwork } from '../../../access/client-address.ts';
import type { ApiDeps, ApiState, OpsOptions } from '../../../deps.ts';
import { operatorOfSession } from './credentials.ts';
import { hashSessionToken, isSessionToken, type LiveSession, sessionIdOf } from './operator.ts';

type AnyContext = ParameterizedContext<ApiState>;

/** The cookie of the token. With https the prefix binds the cookie to this host, and plain http pages cannot set it. */
export function cookieOf(ops: Pick<OpsOptions, 'publicUrl'>): { name: string; attributes: string } {
  return ops.publicUrl?.startsWith('https:')
    ? { name: '__Host-oddswire_ops', attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict' }
    : { name: 'oddswire_ops', attributes: 'Path=/ops; HttpOnly; SameSite=Strict' };
}

/** The cookie of a browser with an earlier login (see credentials.ts). Only the login page gets it. */
export function knownCookieOf(ops: Pick<OpsOptions, 'publicUrl'>): { name: string; attributes: string } {
  const attributes = 'Path=/ops/login; HttpOnly; SameSite=Strict';
  return ops.publicUrl?.startsWith('https:')
    ? { name: '__Secure-oddswire_ops_known', attributes: `${attributes}; Secure` }
    : { name: 'oddswire_ops_known', attributes };
}

/** The client address for the audit log and the login limits. */
export function addressOf(ctx: AnyContext, ops: Pick<OpsOptions, 'trustedProxies'>): string {
  return clientNetwork(ctx.req, ops.trustedProxies ?? []);
}

/**
 * The session of the request's cookie, or null. Each request queries it, because it may have ended in another process. A session is
 * invalid when its operator was removed or has another password.
 */
export async function findLiveSession(
  ctx: AnyContext,
  deps: Pick<ApiDeps, 'db' | 'now'>,
  ops: OpsOptions,
): Promise<LiveSession | null> {
  const token = ctx.cookies.get(cookieOf(ops).name);
  if (!isSessionToken(token)) return null;
  const tokenHash = hashSessionToken(token);
  const session = await findSession(deps.db, tokenHash, deps.now());
  if (session === null) return null;
  const current = operatorOfSession(ops, session);
  if (current === null) return null;
  if (isUse(ctx)) await touchSession(deps.db, tokenHash, session, deps.now());
  const operator = { ...current, sessionId: sessionIdOf(tokenHash), address: addressOf(ctx, ops) };
  return { operator, token, tokenHash, flash: session.flash };
}

/** Whether a person sent the request. The refresh of an open page must not extend a session. */
function isUse(ctx: AnyContext): boolean {
  return ctx.method !== 'GET' || !(ctx.path.endsWith('.json') || ctx.path.startsWith('/ops/queues/api/'));
}

/** The session of a request behind the guard. */
export function sessionOf(ctx: AnyContext): LiveSession {
  const { ops } = ctx.state;
  if (!ops) throw new TypeError('this route does not run behind opsGuard');
  return ops;
}
