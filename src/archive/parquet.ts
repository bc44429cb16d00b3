import type { ArchiveDay } from '../domain/archive/file.ts';
import {
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
  const { kind, venue, date } = day;
  const columns = fileColumns(kind);
  const types = columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`).join(', ');
  const values = columns.map(({ name, type }) => `${FROM_TEXT[type](`"${name}"`)} AS "${name}"`).join(', ');
  return `COPY (
    SELECT ${values} FROM read_csv(${literal(csvPath)}, header = false, columns = {${types}}, delim = ',', quote = '"', escape = '"',
      nullstr = '', allow_quoted_nulls = false, auto_detect = false, parallel = false, max_line_size = ${MAX_LINE_BYTES})
  ) TO ${literal(parquetPath)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${ROW_GROUP},
    KV_METADATA {oddswire_schema: '${SCHEMA_VERSION}', kind: ${literal(kind)}, venue: ${literal(venue)}, date: ${literal(date)}})`;
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
  const half = (from: number) => `CAST('0x' || substr(d, ${from}, 16) AS UBIGINT)`;
  const sum = (from: number) => `CAST(coalesce(sum(${half(from)}), 0) AS VARCHAR)`;
  return `SELECT CAST(count(*) AS VARCHAR) AS rows, ${sum(1)} || '.' || ${sum(17)} AS checksum
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
