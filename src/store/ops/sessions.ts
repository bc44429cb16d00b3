import { LessThan, type Repository } from 'typeorm';
import { OpsSessionEntity, type OpsSessionRow } from '../db/entities/ops-session.ts';
import { type Queryable, type Repositories, sql, type Tx } from '../db/tx.ts';
import type { OperatorRole } from './operators.ts';

/** A session expires after this long without use. */
export const SESSION_IDLE_MS = 30 * 60_000;
/** A session expires after this long in any case. */
export const SESSION_MAX_MS = 12 * 3_600_000;
/** The minimum interval between two writes of the last use of a session. */
const TOUCH_EVERY_MS = 60_000;

type NewOpsSession = Pick<OpsSessionRow, 'tokenHash' | 'role' | 'actor' | 'passwordFingerprint' | 'address'>;

/** A session with the present login of its operator. */
export interface OpsSession
  extends Pick<OpsSessionRow, 'role' | 'actor' | 'passwordFingerprint' | 'lastSeenAt' | 'flash'> {
  /** Null: no stored operator has this name. */
  operatorRole: OperatorRole | null;
  operatorPasswordHash: string | null;
}

const DELETE_OVER = sql(
  'delete_ops_sessions_over',
  'DELETE FROM ops_session WHERE expires_at <= $1 OR last_seen_at <= $2',
);

/** Begins a session, and deletes expired ones. */
export async function beginSession(tx: Tx, session: NewOpsSession, nowMs: number): Promise<void> {
  await tx.query(DELETE_OVER, [iso(nowMs), iso(nowMs - SESSION_IDLE_MS)]);
  const [createdAt, expiresAt] = [new Date(nowMs), new Date(nowMs + SESSION_MAX_MS)];
  await sessionsOf(tx).insert({ ...session, createdAt, lastSeenAt: createdAt, expiresAt });
}

const FIND = sql(
  'find_ops_session',
  `SELECT s.role, s.actor, s.password_fingerprint, s.last_seen_at, s.flash, o.role AS operator_role,
     o.password_hash AS operator_password_hash
   FROM ops_session s LEFT JOIN ops_operator o ON o.name = s.actor
   WHERE s.token_hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3`,
);

/** The session of this token that is not over, or null. Every request runs it, so one statement also reads the operator. */
export async function findSession(db: Queryable, tokenHash: Buffer, nowMs: number): Promise<OpsSession | null> {
  const [session] = await db.query<OpsSession>(FIND, [tokenHash, iso(nowMs), iso(nowMs - SESSION_IDLE_MS)]);
  return session ?? null;
}

/** Stores the last use of a session, at most once a minute. */
export async function touchSession(
  db: Repositories,
  tokenHash: Buffer,
  session: Pick<OpsSession, 'lastSeenAt'>,
  nowMs: number,
): Promise<void> {
  if (nowMs - session.lastSeenAt.getTime() < TOUCH_EVERY_MS) return;
  const lastSeenAt = new Date(nowMs);
  await sessionsOf(db).update({ tokenHash, lastSeenAt: LessThan(lastSeenAt) }, { lastSeenAt });
}

/** Sets the message that the session's next page shows once; null clears it. */
export async function setFlash(db: Repositories, tokenHash: Buffer, flash: string | null): Promise<void> {
  await sessionsOf(db).update({ tokenHash }, { flash });
}

const LIST = sql(
  'list_ops_sessions',
  `SELECT token_hash, role, actor, address, created_at, last_seen_at FROM ops_session
   WHERE expires_at > $1 AND last_seen_at > $2 ORDER BY last_seen_at DESC LIMIT $3`,
);

/** An unexpired session in the list of sessions. */
export type ListedSession = Pick<
  OpsSessionRow,
  'tokenHash' | 'role' | 'actor' | 'address' | 'createdAt' | 'lastSeenAt'
>;

/** The sessions that are not over, last used first. The list includes sessions of a former password, which are no longer accepted. */
export function listSessions(db: Queryable, limit: number, nowMs: number): Promise<ListedSession[]> {
  return db.query(LIST, [iso(nowMs), iso(nowMs - SESSION_IDLE_MS), limit]);
}

const END_ALL = sql('end_ops_sessions', 'DELETE FROM ops_session RETURNING role');

/** Ends one session, in all processes at once, because each request looks it up. */
export async function endSession(db: Repositories, tokenHash: Buffer): Promise<void> {
  await sessionsOf(db).delete({ tokenHash });
}

/** Ends every session of every role; returns their number. */
export async function endAllSessions(db: Queryable): Promise<number> {
  return (await db.query(END_ALL)).length;
}

function sessionsOf({ em }: Repositories): Repository<OpsSessionRow> {
  return em.getRepository(OpsSessionEntity);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
