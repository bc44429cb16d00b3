import { type Database, sql } from '../../src/store/db/tx.ts';

/** The tables that a sweep of prices writes. One that does not exist has no rows. */
export const SWEPT_TABLES = ['latest_price', 'price_history', 'observation', 'price_check'] as const;
export type SweptTable = (typeof SWEPT_TABLES)[number];

const ROWS = sql(
  'bench_rows_written',
  `SELECT coalesce(p.relname, s.relname) AS table, sum(s.n_tup_ins + s.n_tup_upd)::float AS rows
   FROM pg_stat_user_tables s LEFT JOIN pg_inherits i ON i.inhrelid = s.relid LEFT JOIN pg_class p ON p.oid = i.inhparent
   GROUP BY 1`,
);

/** Rows inserted and updated since the creation of the database; partitions count for their table. */
export async function rowsWritten(db: Database): Promise<Record<SweptTable, number>> {
  const rows = new Map((await db.query<{ table: string; rows: number }>(ROWS)).map((row) => [row.table, row.rows]));
  const of = (table: SweptTable) => rows.get(table) ?? 0;
  return {
    latest_price: of('latest_price'),
    price_history: of('price_history'),
    observation: of('observation'),
    price_check: of('price_check'),
  };
}

const WAL = sql('bench_wal', `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS bytes`);

/** The length of the write-ahead log. */
export async function walBytes(db: Database): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(WAL);
  return row?.bytes ?? Number.NaN;
}
