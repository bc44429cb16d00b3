import { createHash, randomBytes } from 'node:crypto';
import type { Scope } from '../../domain/values/api-key.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { addApiKey, ensureAccount } from './accounts.ts';
import { consoleSessions, SESSION_MAX_MS } from './sessions.ts';

/** The path of a link, without its token. */
export const LINK_PATH = '/console/sign-in';
/** A link works for this long. */
export const LINK_MINUTES = 15;
const LINK_MS = LINK_MINUTES * 60_000;

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const MAX_ISSUER_LENGTH = 80;

/** A link before its use. */
interface SignInLink {
  accountId: bigint;
  accountName: string;
  scopes: Scope[];
  issuedBy: string;
}

interface LinkRequest {
  /** Created when absent. */
  accountName: string;
  scopes: readonly Scope[];
  /** The operator, or the user of the machine. */
  issuedBy: string;
}

const PRUNE = sql('delete_sign_in_links_over', 'DELETE FROM sign_in_link WHERE expires_at <= $1 RETURNING 1');
const INSERT = sql(
  'insert_sign_in_link',
  `INSERT INTO sign_in_link (token_hash, account_id, scopes, issued_by, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
);

/** Makes a link that signs one person in. Only this result contains the token. */
export async function issueSignInLink(
  tx: Tx,
  { accountName, scopes, issuedBy }: LinkRequest,
  nowMs: number,
): Promise<{ token: string; expiresAt: Date }> {
  const token = randomBytes(32).toString('base64url');
  const accountId = await ensureAccount(tx, accountName);
  await tx.query(INSERT, [hashOf(token), accountId, scopes, issuedBy, iso(nowMs), iso(nowMs + LINK_MS)]);
  return { token, expiresAt: new Date(nowMs + LINK_MS) };
}

const FIND = sql(
  'find_sign_in_link',
  `SELECT l.account_id, a.name AS account_name, l.scopes, l.issued_by FROM sign_in_link l JOIN account a ON a.id = l.account_id
   WHERE l.token_hash = $1 AND l.expires_at > $2`,
);

/** The link of a token, or null when it is unknown, used or expired. Does not use it. */
export async function findSignInLink(db: Queryable, token: string, nowMs: number): Promise<SignInLink | null> {
  if (!TOKEN.test(token)) return null;
  const [link] = await db.query<SignInLink>(FIND, [hashOf(token), iso(nowMs)]);
  return link ?? null;
}

/** Of two concurrent uses, the second waits for the first and then finds no row. */
const USE = sql(
  'use_sign_in_link',
  `DELETE FROM sign_in_link l USING account a WHERE a.id = l.account_id AND l.token_hash = $1 AND l.expires_at > $2
   RETURNING l.account_id, a.name AS account_name, l.scopes, l.issued_by`,
);

/**
 * Uses a link: begins a session with a key of its own, which has the scopes of the link, whose text nobody gets, and which ends with the
 * session. Null when the link is unknown, used or expired.
 */
export async function beginSessionOfLink(
  tx: Tx,
  { token, session }: { token: string; session: { tokenHash: Buffer; address: string } },
  nowMs: number,
): Promise<(SignInLink & { keyId: string }) | null> {
  if (!TOKEN.test(token)) return null;
  const [link] = await tx.query<SignInLink>(USE, [hashOf(token), iso(nowMs)]);
  if (!link) return null;
  const { id: keyId } = await addApiKey(tx, link.accountId, {
    name: `sign-in link (${link.issuedBy.slice(0, MAX_ISSUER_LENGTH)})`,
    scopes: link.scopes,
    expiresAt: new Date(nowMs + SESSION_MAX_MS),
  });
  await consoleSessions.begin(tx, { ...session, keyId }, nowMs);
  return { ...link, keyId };
}

/** Deletes expired links; returns their number. */
export async function pruneSignInLinks(db: Queryable, nowMs: number): Promise<number> {
  return (await db.query(PRUNE, [iso(nowMs)])).length;
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
