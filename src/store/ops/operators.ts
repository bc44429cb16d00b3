import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';

export const OPERATOR_ROLES = ['viewer', 'operator'] as const;
/** Viewers only read; operators also act. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** The names of the logins of OPS_PASSWORD and OPS_VIEWER_PASSWORD. No stored operator has one of them. */
export const CONFIGURED_NAMES: Readonly<Record<OperatorRole, string>> = { operator: 'ops', viewer: 'viewer' };

export function isConfiguredName(name: string): boolean {
  return Object.values(CONFIGURED_NAMES).includes(name);
}

/** An operator as commands list it. */
export interface ListedOperator {
  name: string;
  role: OperatorRole;
  createdAt: Date;
  passwordChangedAt: Date;
  /** Sessions that are not over. */
  sessions: number;
}

/** The stored login of an operator. */
interface OperatorLogin {
  role: OperatorRole;
  passwordHash: string;
}

/** A change of the operators. `passwordHash` is the stored form of a password (src/domain/values/password.ts). */
export type OperatorChange =
  | { action: 'add'; name: string; role: OperatorRole; passwordHash: string }
  | { action: 'password'; name: string; passwordHash: string }
  | { action: 'remove'; name: string };

const ADD = sql(
  'add_operator',
  `INSERT INTO ops_operator (name, role, password_hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1`,
);
const SET_PASSWORD = sql(
  'set_operator_password',
  `UPDATE ops_operator SET password_hash = $2, password_changed_at = now() WHERE name = $1 RETURNING 1`,
);
const REMOVE = sql('remove_operator', 'DELETE FROM ops_operator WHERE name = $1 RETURNING 1');
const END_SESSIONS = sql('end_sessions_of_operator', 'DELETE FROM ops_session WHERE actor = $1');

/**
 * Adds or removes an operator, or sets a password. The last two end the operator's sessions: `findSession` accepts none whose operator or
 * password differs, and the rows are deleted here. `record` stores the change in the audit trail, in the same transaction. False when the
 * name exists already (add) or is unknown.
 */
export function changeOperator(
  db: Database,
  change: OperatorChange,
  record: (tx: Tx) => Promise<void>,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isDone = (await apply(tx, change)).length === 1;
    if (!isDone) return false;
    await tx.query(END_SESSIONS, [change.name]);
    await record(tx);
    return true;
  });
}

function apply(tx: Tx, change: OperatorChange): Promise<unknown[]> {
  switch (change.action) {
    case 'add':
      return tx.query(ADD, [change.name, change.role, change.passwordHash]);
    case 'password':
      return tx.query(SET_PASSWORD, [change.name, change.passwordHash]);
    case 'remove':
      return tx.query(REMOVE, [change.name]);
  }
}

const FIND = sql('find_operator', 'SELECT role, password_hash FROM ops_operator WHERE name = $1');

/** The login of this name, or null. */
export async function findOperator(db: Queryable, name: string): Promise<OperatorLogin | null> {
  return (await db.query<OperatorLogin>(FIND, [name]))[0] ?? null;
}

const EXISTS = sql('any_operator', 'SELECT 1 FROM ops_operator LIMIT 1');

/** Whether any operator exists. */
export async function hasOperators(db: Queryable): Promise<boolean> {
  return (await db.query(EXISTS)).length > 0;
}

const LIST = sql(
  'list_operators',
  `SELECT o.name, o.role, o.created_at, o.password_changed_at,
     (SELECT count(*)::int FROM ops_session s WHERE s.actor = o.name AND s.expires_at > $1 AND s.last_seen_at > $2) AS sessions
   FROM ops_operator o ORDER BY o.name`,
);

/** All operators by name. A session that was last used before `idleSince` is over. */
export function listOperators(db: Queryable, now: Date, idleSince: Date): Promise<ListedOperator[]> {
  return db.query(LIST, [now.toISOString(), idleSince.toISOString()]);
}
