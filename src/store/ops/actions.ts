import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';
import type { OperatorRole } from './operators.ts';

/** `started` without an end means that the process died or lost the database during the action. */
export type AuditStatus = 'started' | 'done' | 'refused' | 'failed';

/** Where an action came from: the operator pages, a request of an account, a command, or a process itself. */
export type ActionSource = 'pages' | 'api' | 'command' | 'process';

/** An action as the audit trail stores it. */
export interface AuditEntry {
  /** Default: the operator pages. */
  source?: ActionSource;
  /** The name of the operator, the id of the API key, or the user of the machine. */
  actor?: string | null;
  /** The account whose key made the request. */
  accountId?: bigint | null;
  /** Default: null, for an action without a login of the pages. */
  role?: OperatorRole | null;
  sessionId?: string | null;
  /** The network of a client or the name of a machine; empty for a request of an account. */
  address: string;
  /** A dotted name, such as `key.revoke`. */
  action: string;
  /** The object of the action. */
  target: string;
  status: AuditStatus;
  result: string;
  requestId: string;
}

/** A stored action. */
export interface AuditRow extends AuditEntry {
  pk: bigint;
  at: Date;
  source: ActionSource;
  actor: string | null;
  role: OperatorRole | null;
  sessionId: string | null;
  /** The name of the account whose key made the request. */
  account: string | null;
  /** The key of the row of the start, on the row of the end. */
  finishes: bigint | null;
}

/** Actions per statement. */
const BATCH = 1_000;
const MAX_TARGET = 300;
const MAX_RESULT = 500;

const INSERT = sql(
  'insert_audit_entry',
  `INSERT INTO audit_trail
     (at, role, session_id, address, action, target, status, result, request_id, source, actor, account_id)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING pk`,
);

/** Stores an action, in the transaction of the action where it has one. Returns its key. */
export async function recordAction(db: Queryable, entry: AuditEntry, nowMs: number): Promise<bigint> {
  const [row] = await db.query<{ pk: bigint }>(INSERT, [
    new Date(nowMs).toISOString(),
    entry.role ?? null,
    entry.sessionId ?? null,
    entry.address,
    entry.action,
    cut(entry.target, MAX_TARGET),
    entry.status,
    cut(entry.result, MAX_RESULT),
    entry.requestId,
    entry.source ?? 'pages',
    entry.actor ?? null,
    entry.accountId ?? null,
  ]);
  return row?.pk ?? 0n;
}

const FINISH = sql(
  'finish_audit_entry',
  `INSERT INTO audit_trail (at, role, session_id, address, action, target, status, result, request_id, source, actor, account_id,
     finishes)
   SELECT greatest(at, clock_timestamp()), role, session_id, address, action, target, $2, $3, request_id, source, actor, account_id, pk
   FROM audit_trail WHERE pk = $1`,
);

/** Stores the result of an action that was stored as `started`: a second row, because the trail is append-only. */
export async function finishAction(db: Queryable, pk: bigint, status: AuditStatus, result: string): Promise<void> {
  await db.query(FINISH, [pk, status, cut(result, MAX_RESULT)]);
}

const SELECT_ACTIONS = `SELECT t.pk, t.at, t.source, t.actor, t.account_id, a.name AS account, t.role, t.session_id, t.address, t.action,
    t.target, t.status, t.result, t.request_id, t.finishes
  FROM audit_trail t LEFT JOIN account a ON a.id = t.account_id`;

const LIST = sql(
  'list_audit_trail',
  `${SELECT_ACTIONS} WHERE ($1::bigint IS NULL OR t.pk < $1)
     AND NOT (t.status = 'started' AND EXISTS (SELECT FROM audit_trail f WHERE f.finishes = t.pk))
   ORDER BY t.pk DESC LIMIT $2`,
);

/** Actions, the latest first, without the starts of finished ones; `next` is the key to go on behind when more follow. */
export async function listActions(
  db: Queryable,
  limit: number,
  after?: bigint,
): Promise<{ actions: AuditRow[]; next?: bigint }> {
  const rows = await db.query<AuditRow>(LIST, [after ?? null, limit + 1]);
  const actions = rows.slice(0, limit);
  const last = actions.at(-1);
  return rows.length > limit && last ? { actions, next: last.pk } : { actions };
}

const EXPORT = sql(
  'export_audit_trail',
  `${SELECT_ACTIONS} WHERE t.pk > $1 AND t.at >= $2::timestamptz AND t.at < $3::timestamptz
     AND ($4::text IS NULL OR a.name = $4) ORDER BY t.pk LIMIT $5`,
);

/** All rows of a time range (epoch milliseconds), the oldest first, in pages; optionally of the keys of one account. */
export async function* exportActions(
  db: Queryable,
  { sinceMs, untilMs, account }: { sinceMs: number; untilMs: number; account?: string },
): AsyncGenerator<AuditRow[]> {
  let after = 0n;
  for (;;) {
    const range = [new Date(sinceMs).toISOString(), new Date(untilMs).toISOString()];
    const page = await db.query<AuditRow>(EXPORT, [after, ...range, account ?? null, BATCH]);
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < BATCH) return;
    after = last.pk;
  }
}

/** Runs with the rights of the role that migrates, because no other statement may delete rows; see migration 0016. */
const PRUNE = sql('prune_audit_trail', `SELECT prune_audit_trail($1, ${BATCH}) AS pruned`);

/**
 * Deletes actions from before `beforeMs` (epoch milliseconds), oldest first, and the oldest ones of an account with more than 100,000;
 * returns their number.
 */
export async function pruneActions(db: Queryable, beforeMs: number, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const [batch] = await db.query<{ pruned: number }>(PRUNE, [new Date(beforeMs).toISOString()]);
    pruned += batch?.pruned ?? 0;
    if ((batch?.pruned ?? 0) < BATCH) break;
  }
  return pruned;
}

function cut(text: string, length: number): string {
  return scrubText(text.slice(0, length));
}
