import type { Repository } from 'typeorm';
import { ConsoleSessionEntity, type ConsoleSessionRow } from '../db/entities/console-session.ts';
import { type Queryable, type Repositories, sql, type Tx } from '../db/tx.ts';

/** A sign-in expires after this long. */
export const CONSOLE_SESSION_MS = 12 * 3_600_000;

/** A session of the console with the present state of its key. */
export interface ConsoleSession {
  keyId: string;
  keyName: string;
  scopes: readonly string[];
  accountId: bigint;
  accountName: string;
  /** Limits of the account, null for the default of the configuration. */
  ratePerMinute: number | null;
  coldReadsPerMinute: number | null;
  flash: string | null;
}

const DELETE_OVER = sql('delete_console_sessions_over', 'DELETE FROM console_session WHERE expires_at <= $1');

/** Begins a session, and deletes expired ones. */
export async function beginConsoleSession(
  tx: Tx,
  session: Pick<ConsoleSessionRow, 'tokenHash' | 'keyId' | 'address'>,
  nowMs: number,
): Promise<void> {
  await tx.query(DELETE_OVER, [iso(nowMs)]);
  const [createdAt, expiresAt] = [new Date(nowMs), new Date(nowMs + CONSOLE_SESSION_MS)];
  await sessionsOf(tx).insert({ ...session, createdAt, expiresAt });
}

const VALID = 's.expires_at > $2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)';

const FIND = sql(
  'find_console_session',
  `SELECT k.id AS key_id, k.name AS key_name, k.scopes, k.account_id, a.name AS account_name, a.rate_per_minute,
     a.cold_reads_per_minute, s.flash
   FROM console_session s JOIN api_key k ON k.id = s.key_id JOIN account a ON a.id = k.account_id
   WHERE s.token_hash = $1 AND ${VALID}`,
);

/** The session of this token, or null when it expired or its key is not valid any more. Every request runs it. */
export async function findConsoleSession(
  db: Queryable,
  tokenHash: Buffer,
  nowMs: number,
): Promise<ConsoleSession | null> {
  const [session] = await db.query<ConsoleSession>(FIND, [tokenHash, iso(nowMs)]);
  return session ?? null;
}

const FIND_VALID = sql(
  'find_valid_console_sessions',
  `SELECT s.token_hash FROM console_session s JOIN api_key k ON k.id = s.key_id
   WHERE s.token_hash = ANY ($1::bytea[]) AND ${VALID}`,
);

/** The tokens of this list that still belong to a session, as hex. */
export async function findValidConsoleSessions(
  db: Queryable,
  tokenHashes: readonly Buffer[],
  nowMs: number,
): Promise<Set<string>> {
  const rows = await db.query<{ tokenHash: Buffer }>(FIND_VALID, [tokenHashes, iso(nowMs)]);
  return new Set(rows.map(({ tokenHash }) => tokenHash.toString('hex')));
}

/** Sets the message that the session's next page shows once; null clears it. */
export async function setConsoleFlash(db: Repositories, tokenHash: Buffer, flash: string | null): Promise<void> {
  await sessionsOf(db).update({ tokenHash }, { flash });
}

/** Ends one session, in all processes at once, because each request looks it up. */
export async function endConsoleSession(db: Repositories, tokenHash: Buffer): Promise<void> {
  await sessionsOf(db).delete({ tokenHash });
}

const END_OF_ACCOUNT = sql(
  'end_console_sessions_of_account',
  'DELETE FROM console_session s USING api_key k WHERE k.id = s.key_id AND k.account_id = $1 RETURNING s.key_id',
);

/** Ends every session of an account; returns their number. */
export async function endConsoleSessionsOf(db: Queryable, accountId: bigint): Promise<number> {
  return (await db.query(END_OF_ACCOUNT, [accountId])).length;
}

function sessionsOf({ em }: Repositories): Repository<ConsoleSessionRow> {
  return em.getRepository(ConsoleSessionEntity);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
