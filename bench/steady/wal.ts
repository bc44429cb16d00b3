import type { Observer } from './cluster.ts';

/** Write-ahead log of a table or of a kind of record, bytes; full-page images apart. */
export interface WalPart {
  readonly name: string;
  readonly bytes: number;
  readonly imageBytes: number;
  readonly records: number;
}

/** Transactions with a transaction id that write the same tables. */
export interface WritePart {
  /** The tables in the order of the alphabet; `-` without a logged one: notifications, and tables without a log. */
  readonly name: string;
  readonly transactions: number;
}

export interface WalParts {
  readonly tables: readonly WalPart[];
  readonly kinds: readonly WalPart[];
  readonly transactions: readonly WritePart[];
}

/**
 * A record counts for the relation of its first block without its page images, and each image for the relation of its block. Indexes and
 * values outside of a row have rows of their own. Commits and other records without a block belong to no table.
 */
const TABLES = `WITH block AS MATERIALIZED (
    SELECT start_lsn, reltablespace, relfilenode, record_length, block_fpi_length,
      row_number() OVER record AS number, sum(block_fpi_length) OVER (PARTITION BY start_lsn) AS images
    FROM pg_get_wal_block_info($1, $2, false) WHERE reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    WINDOW record AS (PARTITION BY start_lsn ORDER BY block_id)),
  relation AS (
    SELECT pg_filenode_relation(reltablespace, relfilenode) AS id,
      sum(CASE WHEN number = 1 THEN record_length - images ELSE 0 END)::float AS bytes,
      sum(block_fpi_length)::float AS images, count(*) FILTER (WHERE number = 1)::float AS records
    FROM block GROUP BY 1)
  SELECT coalesce(CASE WHEN n.nspname IN ('public', 'pg_toast') THEN '' ELSE n.nspname || '.' END
      || coalesce(p.relname, t.relname, 'outside') || CASE c.relkind WHEN 'i' THEN ' (indexes)' WHEN 't' THEN ' (toast)' ELSE '' END,
      'other relations') AS name,
    sum(bytes)::float AS bytes, sum(images)::float AS "imageBytes", sum(records)::float AS records
  FROM relation r LEFT JOIN pg_class c ON c.oid = r.id LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_index x ON x.indexrelid = c.oid
  LEFT JOIN pg_class t ON t.oid = CASE c.relkind WHEN 'i' THEN x.indrelid
    WHEN 't' THEN (SELECT o.oid FROM pg_class o WHERE o.reltoastrelid = c.oid) ELSE c.oid END
  LEFT JOIN pg_inherits h ON h.inhrelid = t.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
  GROUP BY 1 ORDER BY sum(bytes) + sum(images) DESC`;

const KINDS = `SELECT "resource_manager/record_type" AS name, record_size::float AS bytes, fpi_size::float AS "imageBytes", count::float AS records
  FROM pg_get_wal_stats($1, $2, true) WHERE count > 0 ORDER BY combined_size DESC`;

/** A table whose rows a transaction locks only has `(locks)`. */
const TRANSACTIONS = `WITH record AS MATERIALIZED (
    SELECT start_lsn, xid::text AS xid, record_type FROM pg_get_wal_records_info($1, $2) WHERE xid <> '0'::xid),
  block AS MATERIALIZED (
    SELECT start_lsn, pg_filenode_relation(reltablespace, relfilenode) AS id FROM pg_get_wal_block_info($1, $2, false)
    WHERE reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())),
  written AS (
    SELECT xid, CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || coalesce(p.relname, c.relname)
        || CASE WHEN bool_and(record_type = 'LOCK') THEN ' (locks)' ELSE '' END AS name
    FROM record JOIN block USING (start_lsn) JOIN pg_class c ON c.oid = block.id AND c.relkind = 'r'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_inherits h ON h.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
    GROUP BY xid, n.nspname, coalesce(p.relname, c.relname))
  SELECT name, count(*)::float AS transactions FROM (
    SELECT coalesce(string_agg(w.name, ', ' ORDER BY w.name), '-') AS name
    FROM (SELECT DISTINCT xid FROM record) r LEFT JOIN written w USING (xid) GROUP BY xid) t
  GROUP BY 1 ORDER BY 2 DESC, 1`;

/** The log between two places by table, kind and transaction; the reason when it cannot be read. */
export async function readWal({ query, missing }: Observer, from: string, to: string): Promise<WalParts | string> {
  const reason = missing.get('pg_walinspect');
  if (reason !== undefined) return reason;
  try {
    return {
      tables: await query<WalPart>(TABLES, [from, to]),
      kinds: await query<WalPart>(KINDS, [from, to]),
      transactions: await query<WritePart>(TRANSACTIONS, [from, to]),
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
