import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { OperatorRole } from '../../../src/store/ops/operators.ts';
import { type Html, html } from './html.ts';

/** The session of a request: of an operator, or of a key in the console. */
export interface Session {
  tokenHash: Buffer;
  /** The token of every form of the session. */
  csrf: string;
  /** The hidden fields of the forms of actions. */
  hiddenFields(): Html;
  /** Whether the session may change anything. The pages of another one have no forms. */
  mayAct: boolean;
  /** The message that the next page shows once. */
  flash: string | null;
}

/** Viewers only read; operators also act. */
export interface Operator {
  name: string;
  role: OperatorRole;
  /** Names the session in the audit log without revealing its token. */
  sessionId: string;
  /** The client address of this request. */
  address: string;
}

export interface OperatorSession extends Session {
  operator: Operator;
}

/** A session of the console, without its key. */
export interface ConsoleSession extends Session {
  caller: {
    accountId: bigint;
    keyId: string;
    scopes: readonly string[];
    /** The account's own limit; null: the limit of the configuration. */
    coldReadsPerMinute: number | null;
  };
  accountName: string;
  keyName: string;
  /** The account's own limit of requests per minute; null: the default. */
  ratePerMinute: number | null;
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

/** The token in every form of a session, derived from the session token so that no other page can know it. */
export function csrfTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('oddswire ops form', 'utf8').digest('base64url');
}

/** The field of every form that `enterForm` checks. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">`;
}

/** Compares two texts in a time that does not depend on the first difference. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(a), digest(b));
}
