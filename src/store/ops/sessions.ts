import { type Queryable, sql } from '../db/tx.ts';

/** A session expires after this long without use. */
export const SESSION_IDLE_MS = 30 * 60_000;
/** A session expires after this long in any case. */
export const SESSION_MAX_MS = 12 * 3_600_000;
/** The minimum interval between two writes of the last use of a session. */
const TOUCH_EVERY_MS = 60_000;

interface NewOpsSession {
  tokenHash: Buffer;
  role: 'viewer' | 'operator';
  /** The fingerprint of the password at the login. */
  passwordFingerprint: Buffer;
  address: string;
}

interface OpsSession {
  role: 'viewer' | 'operator';
  passwordFingerprint: Buffer;
  lastSeenAt: Date;
  /** The result of the last action until a page has shown it. */
  flash: string | null;
}

const INSERT = sql(
  'insert_ops_session',
  `INSERT INTO ops_session (token_hash, role, password_fingerprint, address, created_at, last_seen_at, expires_at)
   VALUES ($1, $2, $3, $4, $5, $5, $6)`,
);
const DELETE_OVER = sql(
  'delete_ops_sessions_over',
  'DELETE FROM ops_session WHERE expires_at <= $1 OR last_seen_at <= $2',
);

/** Begins a session, and deletes expired ones. */
export async function beginSession(db: Queryable, session: NewOpsSession, nowMs: number): Promise<void> {
  const { tokenHash, role, passwordFingerprint, address } = session;
  await db.query(DELETE_OVER, [iso(nowMs), iso(nowMs - SESSION_IDLE_MS)]);
  await db.query(INSERT, [tokenHash, role, passwordFingerprint, address, iso(nowMs), iso(nowMs + SESSION_MAX_MS)]);
}

const FIND = sql(
  'find_ops_session',
  `SELECT role, password_fingerprint, last_seen_at, flash FROM ops_session
   WHERE token_hash = $1 AND expires_at > $2 AND last_seen_at > $3`,
);

/** The session of this token that is not over, or null. */
export async function findSession(db: Queryable, tokenHash: Buffer, nowMs: number): Promise<OpsSession | null> {
  const [session] = await db.query<OpsSession>(FIND, [tokenHash, iso(nowMs), iso(nowMs - SESSION_IDLE_MS)]);
  return session ?? null;
}

const TOUCH = sql(
  'touch_ops_session',
  'UPDATE ops_session SET last_seen_at = greatest(last_seen_at, $2) WHERE token_hash = $1',
);

/** Stores the last use of a session, at most once a minute. */
export async function touchSession(
  db: Queryable,
  tokenHash: Buffer,
  session: Pick<OpsSession, 'lastSeenAt'>,
  nowMs: number,
): Promise<void> {
  if (nowMs - session.lastSeenAt.getTime() >= TOUCH_EVERY_MS) await db.query(TOUCH, [tokenHash, iso(nowMs)]);
}

const SET_FLASH = sql('set_ops_flash', 'UPDATE ops_session SET flash = $2 WHERE token_hash = $1');

/** Sets the message that the session's next page shows once; null clears it. */
export async function setFlash(db: Queryable, tokenHash: Buffer, flash: string | null): Promise<void> {
  await db.query(SET_FLASH, [tokenHash, flash]);
}

const LIST = sql(
  'list_ops_sessions',
  `SELECT token_hash, role, address, created_at, last_seen_at FROM ops_session
   WHERE expires_at > $1 AND last_seen_at > $2 ORDER BY last_seen_at DESC LIMIT $3`,
);

/** An unexpired session in the list of sessions. */
export interface ListedSession {
  tokenHash: Buffer;
  role: OpsSession['role'];
  address: string;
  createdAt: Date;
  lastSeenAt: Date;
}

/** The sessions that are not over, last used first. The list includes sessions of a former password, which are no longer accepted. */
export function listSessions(db: Queryable, limit: number, nowMs: number): Promise<ListedSession[]> {
  return db.query(LIST, [iso(nowMs), iso(nowMs - SESSION_IDLE_MS), limit]);
}

const END = sql('end_ops_session', 'DELETE FROM ops_session WHERE token_hash = $1');
const END_ALL = sql('end_ops_sessions', 'DELETE FROM ops_session RETURNING role');

/** Ends one session, in all processes at once, because each request looks it up. */
export async function endSession(db: Queryable, tokenHash: Buffer): Promise<void> {
  await db.query(END, [tokenHash]);
}

/** Ends every session of every role; returns their number. */
export async function endAllSessions(db: Queryable): Promise<number> {
  return (await db.query(END_ALL)).length;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
