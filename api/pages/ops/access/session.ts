import type { Middleware, ParameterizedContext } from 'koa';
import type { Cidr } from '../../../../src/domain/webhooks/address-policy.ts';
import { operatorSessions } from '../../../../src/store/accounts/sessions.ts';
import { clientNetwork } from '../../../access/client-address.ts';
import type { ApiState } from '../../../context.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { csrfField, csrfTokenOf, hashSessionToken, isSessionToken, type OperatorSession } from '../../kit/session.ts';
import { leadToSignIn } from '../../kit/site.ts';
import { type OpsPasswords, operatorOfSession } from './credentials.ts';

type AnyContext = ParameterizedContext<ApiState>;

/** The configuration of the operator pages. */
export interface OpsOptions {
  /** The logins of the configuration; the others are stored (see credentials.ts). */
  passwords: OpsPasswords;
  /** The key of password fingerprints, at least 32 bytes. */
  sessionKey: Uint8Array;
  /** A guess at a password that is not stored is compared with this stored form, for its cost. */
  noPassword: string;
  /** The address of the pages for browsers, without a trailing slash. Absent: plain http at the requested address. */
  publicUrl?: string;
  /** The host names of the pages; see `opsHosts`. */
  hosts?: readonly string[];
  /** The operator's proxies: only their `X-Forwarded-For` counts. Default: no proxies. */
  trustedProxies?: readonly Cidr[];
  /** The queues to show. */
  queueNames: readonly string[];
}

/** The cookie of the token. With https the prefix binds the cookie to this host, and plain http pages cannot set it. */
export function cookieOf(ops: Pick<OpsOptions, 'publicUrl'>): { name: string; attributes: string } {
  return ops.publicUrl?.startsWith('https:')
    ? { name: '__Host-oddswire_ops', attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict' }
    : { name: 'oddswire_ops', attributes: 'Path=/ops; HttpOnly; SameSite=Strict' };
}

/** The client address for the audit log and the login limits. */
export function addressOf(ctx: AnyContext, ops: Pick<OpsOptions, 'trustedProxies'>): string {
  return clientNetwork(ctx.req, ops.trustedProxies ?? []);
}

/** The visible name of a session: the beginning of the stored hash. */
export function sessionIdOf(tokenHash: Buffer): string {
  return tokenHash.toString('hex').slice(0, 10);
}

/**
 * The session of the request's cookie, or null. Each request queries it, because it may have ended in another process. A session is
 * invalid when its operator was removed or has another password.
 */
export async function findLiveSession(
  ctx: AnyContext,
  deps: Pick<PageDeps, 'db' | 'now'>,
  ops: OpsOptions,
): Promise<OperatorSession | null> {
  const token = ctx.cookies.get(cookieOf(ops).name);
  if (!isSessionToken(token)) return null;
  const tokenHash = hashSessionToken(token);
  const session = await operatorSessions.find(deps.db, tokenHash, deps.now());
  if (session === null) return null;
  const current = operatorOfSession(ops, session);
  if (current === null) return null;
  if (isUse(ctx)) await operatorSessions.touch(deps.db, tokenHash, session, deps.now());
  const csrf = csrfTokenOf(token);
  return {
    operator: { ...current, sessionId: sessionIdOf(tokenHash), address: addressOf(ctx, ops) },
    tokenHash,
    csrf,
    hiddenFields: () => csrfField(csrf),
    mayAct: current.role === 'operator',
    flash: session.flash,
  };
}

/** Whether a person sent the request. The refresh of an open page must not extend a session. */
function isUse(ctx: AnyContext): boolean {
  return ctx.method !== 'GET' || !(ctx.path.endsWith('.json') || ctx.path.startsWith('/ops/queues/api/'));
}

/** The session of a request; undefined without a login. */
export function operatorOf(ctx: AnyContext): OperatorSession | undefined {
  return ctx.state.session as OperatorSession | undefined;
}

/** The session of a request behind the guard. */
export function sessionOf(ctx: AnyContext): OperatorSession {
  const session = operatorOf(ctx);
  if (!session) throw new TypeError('this route does not run behind opsGuard');
  return session;
}

/** Admits requests with a session, which it puts into the state. Redirects other requests to the login page. */
export function opsGuard(deps: Pick<PageDeps, 'db' | 'now'>, ops: OpsOptions): Middleware<ApiState> {
  return async (ctx, next) => {
    const session = await findLiveSession(ctx, deps, ops);
    if (session === null) {
      const realm = 'oddswire ops';
      return leadToSignIn(ctx, { signIn: '/ops/login', start: '/ops', realm, message: 'log in at /ops/login' });
    }
    ctx.state.session = session;
    await next();
  };
}
