import type { ArchiveDay } from '../domain/archive/file.ts';
import {
  ARCHIVE_KINDS,
  type ArchiveKind,
  type ColumnType,
  type FileColumn,
  fileColumns,
  SCHEMA_VERSION,
} from '../domain/archive/kinds.ts';

/** Rows of a group: small enough that one market of one day costs a few milliseconds, large enough to compress. */
const ROW_GROUP = 20_480;
/** A row of a book or of a market can be long; a longer one fails the day. DuckDB reads with a buffer of sixteen such rows. */
const MAX_LINE_BYTES = 4_000_000;

/** A text in a statement of DuckDB. */
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** DuckDB's type of a column, and its value from the text that Postgres renders. */
const FROM_TEXT: Record<ColumnType, (name: string) => string> = {
  text: (name) => name,
  json: (name) => name,
  decimal: (name) => `CAST(${name} AS DECIMAL(38, 18))`,
  time: (name) => `make_timestamptz(CAST(${name} AS BIGINT))`,
  integer: (name) => `CAST(${name} AS INTEGER)`,
  boolean: (name) => `CAST(${name} AS BOOLEAN)`,
};

/** The text of a value in a file: the same as Postgres renders. */
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

/** SQL of the rows of a CSV, with the columns of a file and further ones of text. */
function csvSql(kind: ArchiveKind, csvPath: string, further: readonly string[] = []): string {
  const columns = fileColumns(kind);
  const types = [...columns.map(({ name }) => name), ...further].map((name) => `${literal(name)}: 'VARCHAR'`);
  const values = columns.map(({ name, type }) => `${FROM_TEXT[type](`"${name}"`)} AS "${name}"`);
  return `SELECT ${[...values, ...further].join(', ')} FROM read_csv(${literal(csvPath)}, header = false, columns = {${types.join(', ')}},
    delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, auto_detect = false, parallel = false,
    max_line_size = ${MAX_LINE_BYTES})`;
}

function copyToFile({ kind, venue, date }: ArchiveDay, rows: string, parquetPath: string): string {
  return `COPY (${rows}) TO ${literal(parquetPath)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${ROW_GROUP},
    KV_METADATA {oddswire_schema: '${SCHEMA_VERSION}', kind: ${literal(kind)}, venue: ${literal(venue)}, date: ${literal(date)}})`;
}

const sumOf = (from: number) => `CAST(coalesce(sum(CAST('0x' || substr(d, ${from}, 16) AS UBIGINT)), 0) AS VARCHAR)`;
/** The checksum of rows whose md5 is the column `d`. */
const CHECKSUM = `${sumOf(1)} || '.' || ${sumOf(17)}`;

/** The trades of a CSV of corrections that the present file of their day, if it has one, lacks: statements of DuckDB, and then their summary. */
export function freshTradesSql(csvPath: string, presentPath: string | null): readonly string[] {
  const lacking =
    presentPath === null ? '' : `ANTI JOIN read_parquet(${literal(presentPath)}) p USING (outcome_id, ts, trade_id)`;
  return [
    `CREATE OR REPLACE TABLE fresh AS SELECT * FROM (${csvSql('trades', csvPath, ['d'])}) c ${lacking}`,
    `SELECT CAST(count(*) AS VARCHAR) AS rows, ${CHECKSUM} AS checksum, CAST(min(epoch_us(ts)) AS VARCHAR) AS first_micros,
       CAST(max(epoch_us(ts)) AS VARCHAR) AS last_micros FROM fresh`,
  ];
}

/** SQL of DuckDB that makes the file of a day from its present one and the fresh trades. */
export function mergeSql(day: ArchiveDay, presentPath: string | null, parquetPath: string): string {
  const present = presentPath === null ? '' : `SELECT * FROM read_parquet(${literal(presentPath)}) UNION ALL BY NAME `;
  const order = ARCHIVE_KINDS[day.kind].order.map((name) => `${name} NULLS FIRST`).join(', ');
  return copyToFile(day, `${present}SELECT * EXCLUDE (d) FROM fresh ORDER BY ${order}`, parquetPath);
}

/** SQL of DuckDB of the outcomes with fresh trades, and the first and the last second of these. */
export const FRESH_OUTCOMES = `SELECT outcome_id, CAST(min(epoch_us(ts)) // 1000000 AS VARCHAR) AS first,
    CAST(max(epoch_us(ts)) // 1000000 AS VARCHAR) AS last FROM fresh GROUP BY outcome_id ORDER BY outcome_id`;

/** SQL of DuckDB of all trades of the minutes of these outcomes that have a fresh one, with all their digits. */
export function minuteTradesSql(parquetPath: string, outcomeIds: readonly string[]): string {
  const minute = (of: string) => `epoch_us(${of}.ts) // 60000000`;
  return `SELECT t.outcome_id, CAST(epoch_us(t.ts) AS VARCHAR) AS at_micros, t.trade_id,
      coalesce(CAST(t.price AS VARCHAR), t.price_text) AS price, coalesce(CAST(t.size AS VARCHAR), t.size_text) AS size,
      CASE t.side WHEN 'buy' THEN 1 WHEN 'sell' THEN -1 END AS side, t.ordinal
    FROM read_parquet(${literal(parquetPath)}) t SEMI JOIN fresh f ON f.outcome_id = t.outcome_id AND ${minute('f')} = ${minute('t')}
    WHERE t.outcome_id IN (${outcomeIds.map(literal).join(', ')})`;
}

/** The sum of two checksums. */
export function addChecksums(one: string, other: string): string {
  const [left, right] = [one.split('.'), other.split('.')];
  return [0, 1].map((half) => BigInt(left[half] ?? 0) + BigInt(right[half] ?? 0)).join('.');
}

/**
 * SQL of DuckDB of the number of rows of a file and of its checksum. The text of a row has, for each column, the length of its value in
 * bytes, a colon and the value, or `-` for null. The checksum is the sum of the first 64 bits of the md5 of each text, a point, and the sum
 * of the last 64 bits, both unsigned: it does not depend on the order of the rows.
 */
export function checksumSql(kind: ArchiveKind, parquetPath: string): string {
  const text = fileColumns(kind).map(({ name, type }) => {
    const value = TO_TEXT[type](`"${name}"`);
    return `coalesce(CAST(strlen(${value}) AS VARCHAR) || ':' || ${value}, '-')`;
  });
  return `SELECT CAST(count(*) AS VARCHAR) AS rows, ${CHECKSUM} AS checksum
    FROM (SELECT md5(${text.join(' || ')}) AS d FROM read_parquet(${literal(parquetPath)}))`;
}

/** The text of a value that a reader of Parquet returns raw: bytes of a decimal, microseconds of a time. */
function textOf({ type }: FileColumn, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (type !== 'decimal' || !(value instanceof Uint8Array)) return String(value);
  const number = BigInt.asIntN(128, BigInt(`0x${Buffer.from(value).toString('hex')}`));
  const digits = String(number < 0n ? -number : number).padStart(19, '0');
  return `${number < 0n ? '-' : ''}${digits.slice(0, -18)}.${digits.slice(-18)}`;
}

/** The text of a row, as in `checksumSql`. */
export function digestText(columns: readonly FileColumn[], values: readonly unknown[]): string {
  return columns
    .map((column, index) => {
      const text = textOf(column, values[index]);
      return text === null ? '-' : `${Buffer.byteLength(text)}:${text}`;
    })
    .join('');
}
