import { scrubText } from '../../domain/values/text.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import type { OperatorRole } from './operators.ts';

/** `started` without an end means that the process died or lost the database during the action. */
export const AUDIT_STATUSES = ['started', 'done', 'refused', 'failed'] as const;
export type AuditStatus = (typeof AUDIT_STATUSES)[number];

/** Where an action came from: the operator pages, a request of an account, a command, or a process itself. */
export const ACTION_SOURCES = ['pages', 'api', 'command', 'process'] as const;
type ActionSource = (typeof ACTION_SOURCES)[number];

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
  /** The name of the account whose key made the request, and of the key. */
  account: string | null;
  keyName: string | null;
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

const ACTION_COLUMNS = `t.pk, t.at, t.source, t.actor, t.account_id, a.name AS account, k.name AS key_name, t.role, t.session_id,
    t.address, t.action, t.target, t.status, t.result, t.request_id, t.finishes`;
const ACTION_NAMES = `LEFT JOIN account a ON a.id = t.account_id LEFT JOIN api_key k ON t.source = 'api' AND k.id = t.actor`;
const SELECT_ACTIONS = `SELECT ${ACTION_COLUMNS} FROM audit_trail t ${ACTION_NAMES}`;

/** The newest rows that one read searches. */
const MAX_SCANNED = 10_000;

export interface ActionFilter {
  source?: ActionSource;
  status?: AuditStatus;
  /** A name of an operator, an account or an API key, or the id of a key. */
  by?: string;
  /** An action, or its first part: `key` or `key.revoke`. */
  action?: string;
  /** A part of the target. */
  target?: string;
}

const LIST = sqlPlannedPerCall(
  'list_audit_trail',
  `WITH candidate AS MATERIALIZED (
     SELECT * FROM audit_trail t WHERE ($1::bigint IS NULL OR t.pk < $1) ORDER BY t.pk DESC LIMIT ${MAX_SCANNED}),
   page AS (
     SELECT ${ACTION_COLUMNS} FROM candidate t ${ACTION_NAMES}
     WHERE NOT (t.status = 'started' AND EXISTS (SELECT FROM audit_trail f WHERE f.finishes = t.pk))
       AND ($3::text IS NULL OR t.source = $3) AND ($4::text IS NULL OR t.status = $4)
       AND ($5::text IS NULL OR $5 IN (t.actor, a.name, k.name))
       AND ($6::text IS NULL OR t.action = $6 OR starts_with(t.action, $6 || '.'))
       AND ($7::text IS NULL OR strpos(lower(t.target), lower($7)) > 0)
     ORDER BY t.pk DESC LIMIT $2)
   SELECT p.*, s.* FROM (SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(at) AS last_at FROM candidate) s
   LEFT JOIN page p ON true ORDER BY p.pk DESC`,
);

/** Actions, the latest first, without the starts of finished ones; `next` is the key to go on behind when more may follow. */
export async function listActions(
  db: Queryable,
  limit: number,
  after?: bigint,
  { source, status, by, action, target }: ActionFilter = {},
): Promise<{ actions: AuditRow[]; next?: bigint; searchedSince?: Date }> {
  const filters = [source, status, by, action, target].map((value) => value ?? null);
  const rows = await db.query<(AuditRow | { pk: null }) & ScanExtent>(LIST, [after ?? null, limit + 1, ...filters]);
  const found = rows.flatMap((row) => {
    if (row.pk === null) return [];
    const { scanned: _scanned, lastPk: _lastPk, lastAt: _lastAt, ...entry } = row;
    return [entry];
  });
  const { items, ...place } = boundedPage(found, rows[0], { limit, maxScanned: MAX_SCANNED });
  return { actions: items, ...place };
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

/** Keys that the overview names. */
const MAX_NAMED = 3;
/** The keys of sign-in links end with their session. */
const LONG_LIVED = `k.expires_at - k.created_at > interval '2 days'`;

const EXPIRING = sql(
  'ops_expiring_keys',
  `SELECT k.id, k.name, a.name AS account, k.expires_at, count(*) OVER ()::int AS total
   FROM api_key k JOIN account a ON a.id = k.account_id
   WHERE k.revoked_at IS NULL AND k.expires_at > clock_timestamp() AND k.expires_at < clock_timestamp() + interval '3 days'
     AND k.last_used_at > clock_timestamp() - interval '7 days' AND ${LONG_LIVED}
     AND ($1::bigint IS NULL OR k.account_id = $1)
   ORDER BY k.expires_at LIMIT ${MAX_NAMED}`,
);

/** Keys of all accounts, or of one, that were used in the last seven days and expire within three days: the first ones, and their number. */
export interface ExpiringKeys {
  keys: readonly { id: string; name: string; account: string; expiresAt: Date }[];
  total: number;
}

export async function readExpiringKeys(db: Queryable, accountId?: bigint): Promise<ExpiringKeys> {
  const rows = await db.query<ExpiringKeys['keys'][number] & { total: number }>(EXPIRING, [accountId ?? null]);
  return { keys: rows.map(({ total: _, ...key }) => key), total: rows[0]?.total ?? 0 };
}

const UNFINISHED = sql(
  'ops_unfinished_actions',
  `SELECT t.at, t.action, t.target, count(*) OVER ()::int AS total
   FROM (SELECT pk, at, action, target, status FROM audit_trail ORDER BY pk DESC LIMIT ${MAX_SCANNED}) t
   WHERE t.status = 'started' AND t.at > clock_timestamp() - interval '1 day' AND t.at < clock_timestamp() - interval '10 minutes'
     AND NOT EXISTS (SELECT FROM audit_trail f WHERE f.finishes = t.pk)
   ORDER BY t.at LIMIT 1`,
);

/** Actions of the last day that began more than ten minutes ago and have no end: the oldest one, and their number. */
export interface UnfinishedActions {
  first: { at: Date; action: string; target: string } | null;
  total: number;
}

export async function readUnfinishedActions(db: Queryable): Promise<UnfinishedActions> {
  const [row] = await db.query<{ at: Date; action: string; target: string; total: number }>(UNFINISHED);
  if (row === undefined) return { first: null, total: 0 };
  const { total, ...first } = row;
  return { first, total };
}
