import type { ArchiveDay } from '../domain/archive/file.ts';
import {
  ARCHIVE_KINDS,
  type ArchiveKind,
  type ColumnType,
  fileColumns,
  SCHEMA_VERSION,
} from '../domain/archive/kinds.ts';
import { SCHEMA_KEY } from '../domain/archive/schema.ts';

/** Rows of a group: small enough that one market of one day costs a few milliseconds, large enough to compress. */
const ROW_GROUP = 20_480;
/** A row of a book or of a market can be long; a longer one fails the day. DuckDB reads with a buffer of sixteen such rows. */
const MAX_LINE_BYTES = 4_000_000;

/** A text in a statement of DuckDB. */
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The value of a column from the text that Postgres renders. */
const FROM_TEXT: Record<ColumnType, (name: string) => string> = {
  text: (name) => name,
  json: (name) => name,
  decimal: decimalFromText,
  time: (name) => `make_timestamptz(CAST(replace(${name}, '.', '') AS BIGINT))`,
  integer: (name) => `CAST(${name} AS INTEGER)`,
  boolean: (name) => `CAST(${name} AS BOOLEAN)`,
};

/**
 * DuckDB needs microseconds for each cast of a text to DECIMAL(38, 18). A text with at most nine digits on each side of its point becomes a
 * decimal of 64 bits first; of others all digits become an integer, which is scaled.
 */
function decimalFromText(name: string): string {
  const behind = `CASE WHEN strpos(${name}, '.') = 0 THEN 0 ELSE strlen(${name}) - strpos(${name}, '.') END`;
  const digits = `replace(${name}, '.', '') || substr('000000000000000000', 1 + ${behind})`;
  return `CASE WHEN strlen(${name}) <= 9 OR (strpos(${name}, '.') BETWEEN 1 AND 10 AND ${behind} <= 9)
    THEN CAST(CAST(${name} AS DECIMAL(18, 9)) AS DECIMAL(38, 18))
    ELSE CAST(CAST(CAST(${digits} AS HUGEINT) AS DECIMAL(38, 0)) * CAST('0.000000000000000001' AS DECIMAL(18, 18)) AS DECIMAL(38, 18)) END`;
}

/** The text of a value in a file, as the checksum reads it. */
const TO_TEXT: Record<ColumnType, (name: string) => string> = {
  text: (name) => name,
  json: (name) => name,
  decimal: (name) => `CAST(${name} AS VARCHAR)`,
  time: (name) => `CAST(epoch_us(${name}) AS VARCHAR)`,
  integer: (name) => `CAST(${name} AS VARCHAR)`,
  boolean: (name) => `CAST(${name} AS VARCHAR)`,
};

/** SQL of DuckDB that makes the file of a day from the sorted CSV of `copyDay`, whose order it keeps: it needs little memory for that. */
export function writeSql(day: ArchiveDay, csvPath: string, parquetPath: string): string {
  return copyToFile(day, csvSql(day.kind, csvPath), parquetPath);
}

/** SQL of the rows of a CSV of `fileColumns`. */
export function csvSql(kind: ArchiveKind, csvPath: string): string {
  const columns = fileColumns(kind);
  const types = columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`).join(', ');
  const values = columns.map(({ name, type }) => `${FROM_TEXT[type](`"${name}"`)} AS "${name}"`).join(', ');
  return `SELECT ${values} FROM read_csv(${literal(csvPath)}, header = false, columns = {${types}}, delim = ',', quote = '"', escape = '"',
      nullstr = '', allow_quoted_nulls = false, auto_detect = false, parallel = false, max_line_size = ${MAX_LINE_BYTES})`;
}

function copyToFile({ kind, venue, date }: ArchiveDay, rows: string, parquetPath: string): string {
  return `COPY (${rows}) TO ${literal(parquetPath)} (${parquetOptions({ kind, venue, date })})`;
}

/** SQL that makes the file of a day from the rows that stay of its present one, if it has one, and from a table of others. */
export function mergedFileSql(day: ArchiveDay, kept: string | null, table: string, parquetPath: string): string {
  const order = ARCHIVE_KINDS[day.kind].order.map((name) => `${name} NULLS FIRST`).join(', ');
  const before = kept === null ? '' : `${kept} UNION ALL BY NAME `;
  return copyToFile(day, `${before}SELECT * FROM ${table} ORDER BY ${order}`, parquetPath);
}

/** How a file is written; `facts` stand in its metadata, beside the version of the schema. */
export function parquetOptions(facts: Readonly<Record<string, string>>): string {
  const metadata = Object.entries({ [SCHEMA_KEY]: String(SCHEMA_VERSION), ...facts });
  return `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${ROW_GROUP},
    KV_METADATA {${metadata.map(([name, value]) => `${literal(name)}: ${literal(value)}`).join(', ')}}`;
}

/** Steps that reverse the bytes of 64 bits: the distance, and the bits that move up. */
const REVERSE = [
  [8, '0x00FF00FF00FF00FF'],
  [16, '0x0000FFFF0000FFFF'],
  [32, '0x00000000FFFFFFFF'],
] as const;

/** SQL of the rows of files: without this option DuckDB would add columns for the names of their folders. */
export function rowsOf(...paths: readonly string[]): string {
  return `read_parquet([${paths.map(literal).join(', ')}], hive_partitioning = false)`;
}

/** SQL of DuckDB of the number of rows of a file and of its checksum, which `RowSum` states. */
export function checksumSql(kind: ArchiveKind, parquetPath: string): string {
  return summarySql(kind, `${rowsOf(parquetPath)}`);
}

/** The same of any rows with the columns of a kind. */
export function summarySql(kind: ArchiveKind, rows: string): string {
  const columns = fileColumns(kind);
  const values = columns.map(({ name, type }) => `${TO_TEXT[type](`"${name}"`)} AS "${name}"`).join(', ');
  const text = columns.map(({ name }) => `coalesce(CAST(strlen("${name}") AS VARCHAR) || ':' || "${name}", '-')`);
  // The number begins with the last byte of the digest. Numbers cost much less than a hexadecimal text and its casts.
  let halves = `(SELECT CAST(d & 18446744073709551615 AS UBIGINT) AS high, CAST(d >> 64 AS UBIGINT) AS low
    FROM (SELECT md5_number(concat(${text.join(', ')})) AS d FROM (SELECT ${values} FROM ${rows})))`;
  for (const [distance, bits] of REVERSE) {
    const mask = `CAST('${bits}' AS UBIGINT)`;
    const [high, low] = ['high', 'low'].map(
      (half) => `((${half} & ${mask}) << ${distance}) | ((${half} >> ${distance}) & ${mask}) AS ${half}`,
    );
    halves = `(SELECT ${high}, ${low} FROM ${halves})`;
  }
  const sum = (half: string) => `CAST(coalesce(sum(${half}), 0) AS VARCHAR)`;
  return `SELECT CAST(count(*) AS VARCHAR) AS rows, ${sum('high')} || '.' || ${sum('low')} AS checksum FROM ${halves}`;
}

/** The sum of two checksums. */
export function addChecksums(one: string, other: string): string {
  return joinHalves(one, other, (left, right) => left + right);
}

/** A checksum without rows whose own checksum is `other`. */
export function subtractChecksums(one: string, other: string): string {
  return joinHalves(one, other, (left, right) => left - right);
}

function joinHalves(one: string, other: string, join: (left: bigint, right: bigint) => bigint): string {
  const [left, right] = [one.split('.'), other.split('.')];
  return [0, 1].map((half) => join(BigInt(left[half] ?? 0), BigInt(right[half] ?? 0))).join('.');
}
