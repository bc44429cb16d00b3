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

const minuteOf = (row: string) => `epoch_us(${row}.ts) // 60000000`;
const hourOf = (row: string) => `epoch_us(${row}.ts) // 3600000000`;

/** Statements of DuckDB that find the trades of a CSV of corrections that the present file of their day, if it has one, lacks. */
export const CORRECTIONS = {
  read: (csvPath: string) => `CREATE TABLE given AS ${csvSql('trades', csvPath)}`,
  /** The number and the checksum of all. */
  givenSummary: summarySql('trades', 'given'),
  choose: (presentPath: string | null) =>
    `CREATE TABLE fresh AS SELECT g.* FROM given g ${
      presentPath === null ? '' : `ANTI JOIN ${rowsOf(presentPath)} p USING (outcome_id, ts, trade_id)`
    }`,
  /** The same of the lacking ones. */
  freshSummary: summarySql('trades', 'fresh'),
  freshTimes:
    'SELECT CAST(min(epoch_us(ts)) AS VARCHAR) AS first, CAST(max(epoch_us(ts)) AS VARCHAR) AS last FROM fresh',
  /** The file of the day from its present one and the lacking trades. */
  write(day: ArchiveDay, presentPath: string | null, parquetPath: string) {
    return mergedFileSql(
      day,
      presentPath === null ? null : `SELECT * FROM ${rowsOf(presentPath)}`,
      'fresh',
      parquetPath,
    );
  },
  /** The outcomes that lacked trades, and the first and the last second of these. */
  outcomes: `SELECT outcome_id, CAST(min(epoch_us(ts)) // 1000000 AS VARCHAR) AS first,
    CAST(max(epoch_us(ts)) // 1000000 AS VARCHAR) AS last FROM fresh GROUP BY outcome_id ORDER BY outcome_id`,
  /** The hours with minutes that lacked a trade, with the number of all trades in these minutes. */
  hours: (parquetPath: string) =>
    `SELECT t.outcome_id, CAST(${hourOf('t')} AS VARCHAR) AS hour, CAST(count(*) AS VARCHAR) AS trades
     FROM ${rowsOf(parquetPath)} t SEMI JOIN fresh f ON f.outcome_id = t.outcome_id AND ${minuteOf('f')} = ${minuteOf('t')}
     GROUP BY ALL ORDER BY ALL`,
  /** All trades of these minutes in some hours, with all their digits. */
  minutes(parquetPath: string, hours: readonly { readonly outcomeId: string; readonly hour: string }[]) {
    const wanted = hours.map(({ outcomeId, hour }) => `(${literal(outcomeId)}, ${BigInt(hour)})`).join(', ');
    return `SELECT t.outcome_id, CAST(epoch_us(t.ts) AS VARCHAR) AS at_micros, t.trade_id,
      coalesce(CAST(t.price AS VARCHAR), t.price_text) AS price, coalesce(CAST(t.size AS VARCHAR), t.size_text) AS size,
      CASE t.side WHEN 'buy' THEN 1 WHEN 'sell' THEN -1 END AS side, t.ordinal
    FROM ${rowsOf(parquetPath)} t SEMI JOIN fresh f ON f.outcome_id = t.outcome_id AND ${minuteOf('f')} = ${minuteOf('t')}
    WHERE (t.outcome_id, ${hourOf('t')}) IN (${wanted})`;
  },
} as const;

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
