import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** `started` without an end means that the process died or lost the database during the action. */
export type OpsActionStatus = 'started' | 'done' | 'refused' | 'failed';

/** An action of an operator. */
export interface OpsActionEntry {
  /** Null without a login, for example after a wrong password. */
  role: 'viewer' | 'operator' | null;
  sessionId: string | null;
  address: string;
  /** A dotted name, such as `key.revoke`. */
  action: string;
  /** The object of the action. */
  target: string;
  status: OpsActionStatus;
  result: string;
  requestId: string;
}

/** A stored action. */
export interface OpsActionRow extends OpsActionEntry {
  pk: bigint;
  at: Date;
}

const MAX_TARGET = 300;
const MAX_RESULT = 500;

const INSERT = sql(
  'insert_ops_action',
  `INSERT INTO ops_action (at, role, session_id, address, action, target, status, result, request_id)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING pk`,
);

/** Stores an action, in the transaction of the action where it has one. Returns its key. */
export async function recordAction(db: Queryable, entry: OpsActionEntry, nowMs: number): Promise<bigint> {
  const [row] = await db.query<{ pk: bigint }>(INSERT, [
    new Date(nowMs).toISOString(),
    entry.role,
    entry.sessionId,
    entry.address,
    entry.action,
    cut(entry.target, MAX_TARGET),
    entry.status,
    cut(entry.result, MAX_RESULT),
    entry.requestId,
  ]);
  return row?.pk ?? 0n;
}

const FINISH = sql('finish_ops_action', 'UPDATE ops_action SET status = $2, result = $3 WHERE pk = $1');

/** Stores the result of an action that was stored as `started`. */
export async function finishAction(db: Queryable, pk: bigint, status: OpsActionStatus, result: string): Promise<void> {
  await db.query(FINISH, [pk, status, cut(result, MAX_RESULT)]);
}

const LIST = sql(
  'list_ops_actions',
  `SELECT pk, at, role, session_id, address, action, target, status, result, request_id FROM ops_action
   WHERE $1::bigint IS NULL OR pk < $1 ORDER BY pk DESC LIMIT $2`,
);

/** Actions, the latest first; `next` is the key to go on behind when more follow. */
export async function listActions(
  db: Queryable,
  limit: number,
  after?: bigint,
): Promise<{ actions: OpsActionRow[]; next?: bigint }> {
  const rows = await db.query<OpsActionRow>(LIST, [after ?? null, limit + 1]);
  const actions = rows.slice(0, limit);
  const last = actions.at(-1);
  return rows.length > limit && last ? { actions, next: last.pk } : { actions };
}

/** Actions per statement. */
const BATCH = 1_000;
/** Keys grow with time: old rows come first, and a page with a young row is the last one. */
const PRUNE = sql(
  'prune_ops_actions',
  `WITH page AS MATERIALIZED (SELECT pk, at FROM ops_action ORDER BY pk LIMIT ${BATCH})
   DELETE FROM ops_action a USING page WHERE a.pk = page.pk AND page.at < $1 RETURNING 1`,
);

/** Deletes actions from before `beforeMs` (epoch milliseconds), oldest first; returns their number. */
export async function pruneActions(db: Queryable, beforeMs: number, signal?: AbortSignal): Promise<number> {
  let pruned = 0;
  while (!signal?.aborted) {
    const batch = (await db.query(PRUNE, [new Date(beforeMs).toISOString()])).length;
    pruned += batch;
    if (batch < BATCH) break;
  }
  return pruned;
}

function cut(text: string, length: number): string {
  return scrubText(text.slice(0, length));
}
