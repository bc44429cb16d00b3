import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** A viewer looks; an operator also acts. */
const OPS_ROLES = ['viewer', 'operator'] as const;
export type OpsRole = (typeof OPS_ROLES)[number];

/** A session of the operator pages. */
export interface Operator {
  role: OpsRole;
  /** Names the session in the audit log; gives nothing of its token away. */
  sessionId: string;
  /** Where this request comes from. */
  address: string;
}

/** The session a request belongs to. */
export interface LiveSession {
  operator: Operator;
  token: string;
  tokenHash: Buffer;
  /** The message that the next page shows once. */
  flash: string | null;
}

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** A new session's token, as the cookie holds it. */
export function newSessionToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Whether a cookie can be a token of ours at all. */
export function isSessionToken(text: string | undefined): text is string {
  return text !== undefined && TOKEN.test(text);
}

/** The stored form of a token. */
export function hashSessionToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** The name of a session that people see: the beginning of the stored hash. */
export function sessionIdOf(tokenHash: Buffer): string {
  return tokenHash.toString('hex').slice(0, 10);
}

/** The token that every form of a session sends: made of the session's own, so that no other page can know it. */
export function csrfTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('oddswire ops form', 'utf8').digest('base64url');
}

/** Whether two texts are the same, in a time that does not depend on where they differ. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Passwords by role; a role without one cannot log in. */
export type OpsPasswords = Readonly<Partial<Record<OpsRole, string>>>;

/** The role whose password this is, or null. Every password is compared, whichever matches. */
export function roleOfPassword(passwords: OpsPasswords, offered: string): OpsRole | null {
  let found: OpsRole | null = null;
  for (const role of OPS_ROLES) {
    const password = passwords[role];
    if (password !== undefined && isSameText(password, offered)) found = role;
  }
  return found;
}

/**
 * Identifies the password that a session began with, without holding it: a session whose fingerprint differs from the one of its
 * role's password is over. Null: the role has no password.
 */
export function passwordFingerprint(key: Uint8Array, passwords: OpsPasswords, role: OpsRole): Buffer | null {
  const password = passwords[role];
  return password === undefined ? null : createHmac('sha256', key).update(`${role}:${password}`, 'utf8').digest();
}
