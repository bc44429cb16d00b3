import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { OperatorRole } from '../../../../src/store/ops/operators.ts';

/** Viewers only read; operators also act. */
export type OpsRole = OperatorRole;

/** A session of the operator pages. */
export interface Operator {
  name: string;
  role: OpsRole;
  /** Names the session in the audit log without revealing its token. */
  sessionId: string;
  /** The client address of this request. */
  address: string;
}

/** The session of a request. */
export interface LiveSession {
  operator: Operator;
  token: string;
  tokenHash: Buffer;
  /** The message that the next page shows once. */
  flash: string | null;
}

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The token of a new session, in the form of the cookie. */
export function newSessionToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Whether a cookie has the form of a session token. */
export function isSessionToken(text: string | undefined): text is string {
  return text !== undefined && TOKEN.test(text);
}

/** The stored form of a token. */
export function hashSessionToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** The visible name of a session: the beginning of the stored hash. */
export function sessionIdOf(tokenHash: Buffer): string {
  return tokenHash.toString('hex').slice(0, 10);
}

/** The token in every form of a session, derived from the session token so that no other page can know it. */
export function csrfTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('oddswire ops form', 'utf8').digest('base64url');
}

/** Compares two texts in a time that does not depend on the first difference. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(a), digest(b));
}
