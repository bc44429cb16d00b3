import type { Observer } from './cluster.ts';

/** Counters of a database, which only grow. */
interface Counters {
  readonly atMs: number;
  /** The next transaction id: transactions that write take one. */
  readonly transactionId: number;
  readonly commits: number;
  readonly rollbacks: number;
  /** The length of the write-ahead log, bytes, and the place of its end. */
  readonly walBytes: number;
  readonly lsn: string;
  readonly tables: ReadonlyMap<string, TableCounters>;
}

const TABLE_FIELDS = ['seqScans', 'indexScans', 'inserted', 'updated', 'hotUpdated', 'deleted'] as const;
export type TableCounters = Record<(typeof TABLE_FIELDS)[number], number>;

const SERVER = `SELECT xact_commit::float AS commits, xact_rollback::float AS rollbacks,
    pg_snapshot_xmax(pg_current_snapshot())::text::float AS "transactionId",
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS "walBytes", pg_current_wal_lsn()::text AS lsn
  FROM pg_stat_database WHERE datname = current_database()`;
/** Partitions count for their table, and tables outside of \`public\` have their schema. */
const TABLES = `SELECT CASE WHEN s.schemaname = 'public' THEN '' ELSE s.schemaname || '.' END || coalesce(p.relname, s.relname) AS name,
    sum(seq_scan)::float AS "seqScans", sum(coalesce(idx_scan, 0))::float AS "indexScans", sum(n_tup_ins)::float AS inserted,
    sum(n_tup_upd)::float AS updated, sum(n_tup_hot_upd)::float AS "hotUpdated", sum(n_tup_del)::float AS deleted
  FROM pg_stat_user_tables s LEFT JOIN pg_inherits i ON i.inhrelid = s.relid LEFT JOIN pg_class p ON p.oid = i.inhparent GROUP BY 1`;

export async function readCounters({ query }: Observer): Promise<Counters> {
  const [server] = await query<Omit<Counters, 'atMs' | 'tables'>>(SERVER);
  const tables = await query<TableCounters & { name: string }>(TABLES);
  if (server === undefined) throw new Error('no statistics of this database');
  return { ...server, atMs: performance.now(), tables: new Map(tables.map((row) => [row.name, row])) };
}

/** The work of a database between two readings, per second. */
export interface DatabaseRates {
  /** Transactions with a transaction id, which only writes take. */
  readonly writeTransactions: number;
  /** All transactions, also single reads. */
  readonly commits: number;
  readonly rollbacks: number;
  readonly walBytes: number;
  readonly tables: Readonly<Record<string, TableCounters>>;
}

export function ratesBetween(before: Counters, after: Counters): DatabaseRates {
  const seconds = (after.atMs - before.atMs) / 1_000;
  const tables = [...after.tables].map(([name, counters]): [string, TableCounters] => {
    const was = before.tables.get(name);
    const rates = TABLE_FIELDS.map((field) => [field, (counters[field] - (was?.[field] ?? 0)) / seconds]);
    return [name, Object.fromEntries(rates) as TableCounters];
  });
  return {
    writeTransactions: (after.transactionId - before.transactionId) / seconds,
    commits: (after.commits - before.commits) / seconds,
    rollbacks: (after.rollbacks - before.rollbacks) / seconds,
    walBytes: (after.walBytes - before.walBytes) / seconds,
    tables: Object.fromEntries(tables.filter(([, rates]) => TABLE_FIELDS.some((field) => rates[field] > 0))),
  };
}

/** Executions and time of one statement. */
export interface StatementCost {
  readonly text: string;
  readonly calls: number;
  /** The time of the executions, without the time of the plans. */
  readonly ms: number;
  /** A prepared statement with a plan for any values is not planned again. */
  readonly plans: number;
  readonly planMs: number;
  readonly rows: number;
  readonly walBytes: number;
}

const STATEMENTS = `SELECT regexp_replace(query, '\\s+', ' ', 'g') AS text, sum(calls)::float AS calls,
    sum(total_exec_time)::float AS ms, sum(plans)::float AS plans, sum(total_plan_time)::float AS "planMs", sum(rows)::float AS rows, sum(wal_bytes)::float AS "walBytes"
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
  JOIN pg_roles r ON r.oid = s.userid GROUP BY 1`;

/** Forgets the statements so far. */
export async function resetStatements({ query, missing }: Observer): Promise<void> {
  if (!missing.has('pg_stat_statements')) await query('SELECT pg_stat_statements_reset()');
}

/** The statements since the reset; undefined without the module. */
export async function readStatements({ query, missing }: Observer): Promise<StatementCost[] | undefined> {
  if (missing.has('pg_stat_statements')) return undefined;
  const all = await query<StatementCost>(STATEMENTS);
  return all.filter(({ text }) => !/pg_stat_|pg_current_snapshot/.test(text));
}

/** The names of the sessions by pid, and of the server's own processes. */
export async function sessionNames({ query }: Observer): Promise<Map<number, string>> {
  const rows = await query<{ pid: number; name: string }>(
    `SELECT pid, CASE backend_type WHEN 'client backend' THEN application_name ELSE backend_type END AS name FROM pg_stat_activity`,
  );
  return new Map(rows.map(({ pid, name }) => [pid, name || 'other sessions']));
}
