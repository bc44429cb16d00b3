import { type EntitySchema, LessThan } from 'typeorm';
import { ConsoleSessionEntity, type ConsoleSessionRow } from '../db/entities/console-session.ts';
import { OpsSessionEntity, type OpsSessionRow } from '../db/entities/ops-session.ts';
import { type Queryable, type Repositories, sql, type Tx } from '../db/tx.ts';
import type { OperatorRole } from '../ops/operators.ts';

/** A session expires after this long in any case. */
export const SESSION_MAX_MS = 12 * 3_600_000;
/** A session of an operator expires after this long without use. */
export const SESSION_IDLE_MS = 30 * 60_000;
/** The minimum interval between two writes of the last use of a session. */
const TOUCH_EVERY_MS = 60_000;

interface SessionRow {
  tokenHash: Buffer;
  createdAt: Date;
  expiresAt: Date;
  flash: string | null;
}

/** What the sessions of operators and those of the console have in common, for their tables. */
function sessionsIn<Row extends SessionRow, New extends object>(
  entity: EntitySchema<Row>,
  /** Deletes expired sessions. */
  deleteOver: (tx: Tx, nowMs: number) => Promise<unknown>,
  /** The further columns of a session that begins. */
  begun: (createdAt: Date) => Partial<Row> = () => ({}),
) {
  const tableOf = ({ em }: Repositories) => em.getRepository<SessionRow>(entity);
  return {
    /** Begins a session, and deletes expired ones. */
    async begin(tx: Tx, session: New, nowMs: number): Promise<void> {
      await deleteOver(tx, nowMs);
      const [createdAt, expiresAt] = [new Date(nowMs), new Date(nowMs + SESSION_MAX_MS)];
      await tableOf(tx).insert({ ...session, ...begun(createdAt), createdAt, expiresAt });
    },

    /** Sets the message that the session's next page shows once; null clears it. */
    async setFlash(db: Repositories, tokenHash: Buffer, flash: string | null): Promise<void> {
      await tableOf(db).update({ tokenHash }, { flash });
    },

    /** Ends one session, in all processes at once, because each request looks it up. */
    async end(db: Repositories, tokenHash: Buffer): Promise<void> {
      await tableOf(db).delete({ tokenHash });
    },
  };
}

/** A session with the present login of its operator. */
export interface StoredOperatorSession
  extends Pick<OpsSessionRow, 'role' | 'actor' | 'passwordFingerprint' | 'lastSeenAt' | 'flash'> {
  /** Null: no stored operator has this name. */
  operatorRole: OperatorRole | null;
  operatorPasswordHash: string | null;
}

/** An unexpired session in the list of sessions. */
export type ListedSession = Pick<
  OpsSessionRow,
  'tokenHash' | 'role' | 'actor' | 'address' | 'createdAt' | 'lastSeenAt'
>;

const DELETE_OVER = sql(
  'delete_ops_sessions_over',
  'DELETE FROM ops_session WHERE expires_at <= $1 OR last_seen_at <= $2',
);
const FIND = sql(
  'find_ops_session',
  `SELECT s.role, s.actor, s.password_fingerprint, s.last_seen_at, s.flash, o.role AS operator_role,
     o.password_hash AS operator_password_hash
   FROM ops_session s LEFT JOIN ops_operator o ON o.name = s.actor
   WHERE s.token_hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3`,
);
const LIST = sql(
  'list_ops_sessions',
  `SELECT token_hash, role, actor, address, created_at, last_seen_at FROM ops_session
   WHERE expires_at > $1 AND last_seen_at > $2 ORDER BY last_seen_at DESC LIMIT $3`,
);
const END_ALL = sql('end_ops_sessions', 'DELETE FROM ops_session RETURNING role');

const unexpiredAt = (nowMs: number) => [iso(nowMs), iso(nowMs - SESSION_IDLE_MS)];

/** The sessions of the operator pages. */
export const operatorSessions = {
  ...sessionsIn<OpsSessionRow, Pick<OpsSessionRow, 'tokenHash' | 'role' | 'actor' | 'passwordFingerprint' | 'address'>>(
    OpsSessionEntity,
    (tx, nowMs) => tx.query(DELETE_OVER, unexpiredAt(nowMs)),
    (lastSeenAt) => ({ lastSeenAt }),
  ),

  /** The session of this token that is not over, or null. Every request runs it, so one statement also reads the operator. */
  async find(db: Queryable, tokenHash: Buffer, nowMs: number): Promise<StoredOperatorSession | null> {
    const [session] = await db.query<StoredOperatorSession>(FIND, [tokenHash, ...unexpiredAt(nowMs)]);
    return session ?? null;
  },

  /** Stores the last use of a session, at most once a minute. */
  async touch(
    { em }: Repositories,
    tokenHash: Buffer,
    session: Pick<StoredOperatorSession, 'lastSeenAt'>,
    nowMs: number,
  ): Promise<void> {
    if (nowMs - session.lastSeenAt.getTime() < TOUCH_EVERY_MS) return;
    const lastSeenAt = new Date(nowMs);
    await em.getRepository(OpsSessionEntity).update({ tokenHash, lastSeenAt: LessThan(lastSeenAt) }, { lastSeenAt });
  },

  /** The sessions that are not over, last used first. The list includes sessions of a former password, which are no longer accepted. */
  list(db: Queryable, limit: number, nowMs: number): Promise<ListedSession[]> {
    return db.query(LIST, [...unexpiredAt(nowMs), limit]);
  },

  /** Ends every session of every role; returns their number. */
  async endAll(db: Queryable): Promise<number> {
    return (await db.query(END_ALL)).length;
  },
};

/** A session of the console with the present state of its key. */
interface StoredConsoleSession {
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

const DELETE_CONSOLE_OVER = sql('delete_console_sessions_over', 'DELETE FROM console_session WHERE expires_at <= $1');
const VALID = 's.expires_at > $2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)';
const FIND_CONSOLE = sql(
  'find_console_session',
  `SELECT k.id AS key_id, k.name AS key_name, k.scopes, k.account_id, a.name AS account_name, a.rate_per_minute,
     a.cold_reads_per_minute, s.flash
   FROM console_session s JOIN api_key k ON k.id = s.key_id JOIN account a ON a.id = k.account_id
   WHERE s.token_hash = $1 AND ${VALID}`,
);
const FIND_VALID = sql(
  'find_valid_console_sessions',
  `SELECT s.token_hash FROM console_session s JOIN api_key k ON k.id = s.key_id
   WHERE s.token_hash = ANY ($1::bytea[]) AND ${VALID}`,
);
const END_OF_ACCOUNT = sql(
  'end_console_sessions_of_account',
  'DELETE FROM console_session s USING api_key k WHERE k.id = s.key_id AND k.account_id = $1 RETURNING s.key_id',
);

/** The sessions of the console. */
export const consoleSessions = {
  ...sessionsIn<ConsoleSessionRow, Pick<ConsoleSessionRow, 'tokenHash' | 'keyId' | 'address'>>(
    ConsoleSessionEntity,
    (tx, nowMs) => tx.query(DELETE_CONSOLE_OVER, [iso(nowMs)]),
  ),

  /** The session of this token, or null when it expired or its key is not valid any more. Every request runs it. */
  async find(db: Queryable, tokenHash: Buffer, nowMs: number): Promise<StoredConsoleSession | null> {
    const [session] = await db.query<StoredConsoleSession>(FIND_CONSOLE, [tokenHash, iso(nowMs)]);
    return session ?? null;
  },

  /** The tokens of this list that still belong to a session, as hex. */
  async findValid(db: Queryable, tokenHashes: readonly Buffer[], nowMs: number): Promise<Set<string>> {
    const rows = await db.query<{ tokenHash: Buffer }>(FIND_VALID, [tokenHashes, iso(nowMs)]);
    return new Set(rows.map(({ tokenHash }) => tokenHash.toString('hex')));
  },

  /** Ends every session of an account; returns their number. */
  async endOf(db: Queryable, accountId: bigint): Promise<number> {
    return (await db.query(END_OF_ACCOUNT, [accountId])).length;
  },
};

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
