import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Viewers only read; operators also act. */
const OPS_ROLES = ['viewer', 'operator'] as const;
export type OpsRole = (typeof OPS_ROLES)[number];

/** A session of the operator pages. */
export interface Operator {
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

/** Passwords by role; a role without one cannot log in. */
export type OpsPasswords = Readonly<Partial<Record<OpsRole, string>>>;

/** The role with this password, or null. Compares every password, even after a match. */
export function roleOfPassword(passwords: OpsPasswords, offered: string): OpsRole | null {
  let found: OpsRole | null = null;
  for (const role of OPS_ROLES) {
    const password = passwords[role];
    if (password !== undefined && isSameText(password, offered)) found = role;
  }
  return found;
}

/**
 * Identifies the password of a login without storing it. A session ends when its fingerprint differs from the fingerprint of the
 * role's current password. Null: the role has no password.
 */
export function passwordFingerprint(key: Uint8Array, passwords: OpsPasswords, role: OpsRole): Buffer | null {
  const password = passwords[role];
  return password === undefined ? null : createHmac('sha256', key).update(`${role}:${password}`, 'utf8').digest();
}
