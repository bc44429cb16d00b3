import type { ParameterizedContext } from 'koa';
import { findSession, touchSession } from '../../src/store/ops/sessions.ts';
import { clientNetwork } from '../access/client-address.ts';
import type { ApiDeps, ApiState, OpsOptions } from '../deps.ts';
import {
  hashSessionToken,
  isSameText,
  isSessionToken,
  type LiveSession,
  passwordFingerprint,
  sessionIdOf,
} from './operator.ts';

type AnyContext = ParameterizedContext<ApiState>;

/** Where the browser keeps the token. With https the prefix binds the cookie to this host, and no plain page can set it. */
export function cookieOf(ops: Pick<OpsOptions, 'publicUrl'>): { name: string; attributes: string } {
  return ops.publicUrl?.startsWith('https:')
    ? { name: '__Host-oddswire_ops', attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict' }
    : { name: 'oddswire_ops', attributes: 'Path=/ops; HttpOnly; SameSite=Strict' };
}

/** Where a request comes from, as the audit log and the limits of logging in know it. */
export function addressOf(ctx: AnyContext, ops: Pick<OpsOptions, 'trustedProxies'>): string {
  return clientNetwork(ctx.req, ops.trustedProxies ?? []);
}

/**
 * The session of the request's cookie, or null. Each request looks it up: it may have ended in another process. A session
 * begun with a password that its role no longer has is invalid.
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
  const expected = passwordFingerprint(ops.sessionKey, ops.passwords, session.role);
  const isCurrent =
    expected !== null && isSameText(expected.toString('hex'), session.passwordFingerprint.toString('hex'));
  if (!isCurrent) return null;
  if (isUse(ctx)) await touchSession(deps.db, tokenHash, session, deps.now());
  const operator = { role: session.role, sessionId: sessionIdOf(tokenHash), address: addressOf(ctx, ops) };
  return { operator, token, tokenHash, flash: session.flash };
}

/** Whether a person sent the request. The refresh of an open page must not keep a session alive. */
function isUse(ctx: AnyContext): boolean {
  return ctx.method !== 'GET' || !(ctx.path.endsWith('.json') || ctx.path.startsWith('/ops/queues/api/'));
}

/** The session of a request behind the guard. */
export function sessionOf(ctx: AnyContext): LiveSession {
  const { ops } = ctx.state;
  if (!ops) throw new TypeError('this route is not behind the guard of the operator pages');
  return ops;
}
