import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { DuckDBConnection, DuckDBDataChunk, DuckDBInstance, DuckDBResult, Json } from '@duckdb/node-api';
import type { FileColumn } from '../domain/archive/kinds.ts';
import { RowSum } from '../domain/archive/row-sum.ts';
import { checkSchema, footerBytes, TAIL_BYTES } from '../domain/archive/schema.ts';
import { asError } from '../domain/values/errors.ts';
import { literal } from './parquet.ts';

type Column = ArrayLike<unknown>;

/** Adds a value of a file to the text of its row, in the form in which the file has it. */
const ADD: Record<FileColumn['type'], (sum: RowSum, value: never) => void> = {
  text: addBytes,
  json: addBytes,
  decimal: (sum, value: Uint8Array) => sum.addDecimal(value),
  time: (sum, value: bigint) => void sum.addInteger(Number(value)),
  integer: (sum, value: number) => void sum.addInteger(value),
  boolean: (sum, value: boolean) => sum.addText(String(value)),
};

function addBytes(sum: RowSum, value: Uint8Array): void {
  sum.addBytes(value, 0, value.length);
}

/**
 * The number of rows of a file and its checksum, by a reader other than DuckDB, group after group. hyparquet would make floats of decimals and
 * dates of times: without the types of the columns it returns their bytes and numbers as they are.
 */
async function digestFile(path: string, columns: readonly FileColumn[]): Promise<{ rows: string; checksum: string }> {
  const [{ asyncBufferFromFile, parquetMetadataAsync, parquetRead }, { compressors }] = await Promise.all([
    import('hyparquet'),
    import('hyparquet-compressors'),
  ]);
  const file = await asyncBufferFromFile(path);
  const end = file.byteLength - TAIL_BYTES;
  const tail = new Uint8Array(await file.slice(Math.max(0, end), file.byteLength));
  checkSchema(new Uint8Array(await file.slice(end - footerBytes(tail, file.byteLength), end)));
  const metadata = await parquetMetadataAsync(file);
  for (const element of metadata.schema) {
    delete element.converted_type;
    delete element.logical_type;
  }
  const sum = new RowSum();
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    const parts = new Map<string, Column[]>(columns.map(({ name }) => [name, []]));
    await parquetRead({
      ...{ file, metadata, compressors, rowStart, rowEnd, utf8: false },
      columns: columns.map(({ name }) => name),
      onChunk: ({ columnName, columnData }) => parts.get(columnName)?.push(columnData),
    });
    addGroup(sum, columns, [...parts.values()], rowEnd - rowStart);
    rowStart = rowEnd;
  }
  return { rows: String(sum.rows), checksum: sum.checksum };
}

function addGroup(sum: RowSum, columns: readonly FileColumn[], parts: readonly Column[][], rows: number): void {
  const read = parts.map((each) => (each.length === 1 ? (each[0] ?? []) : each.flatMap((part) => Array.from(part))));
  for (const [index, values] of read.entries()) {
    if (values.length !== rows)
      throw new RangeError(`the column ${columns[index]?.name} has ${values.length} of ${rows} values`);
  }
  const adds = columns.map(({ type }) => ADD[type]);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < adds.length; column += 1) {
      const value = read[column]?.[row];
      if (value === null || value === undefined) sum.addNull();
      else adds[column]?.(sum, value as never);
    }
    sum.endRow();
  }
}

/** What a parent asks of this process; `id` names the answer. */
export type ChildRequest =
  /** Opens an empty DuckDB with these limits; the requests below concern it until it is closed. */
  | { readonly id: number; readonly open: ChildLimits }
  | { readonly id: number; readonly close: true }
  | { readonly id: number; readonly run: string }
  | { readonly id: number; readonly digest: string; readonly columns: readonly FileColumn[] }
  /** Starts the lines of a statement in the place of earlier ones. */
  | { readonly id: number; readonly lines: string }
  | { readonly id: number; readonly nextLines: true };

/**
 * Consecutive lines with the same first column. The last column is the line; the others are the keys. Each line follows a character NUL, which
 * texts of Postgres never have.
 */
export interface LineGroup {
  readonly first: string;
  readonly rows: number;
  readonly lines: string;
  /** Of the last line. */
  readonly keys: string[];
}

/** The answer: rows of DuckDB, the rows and the checksum of a file by a reader other than DuckDB, or lines; none after the last ones. */
export type ChildAnswer =
  | { readonly id: number; readonly rows: readonly Record<string, Json>[] }
  | { readonly id: number; readonly groups: readonly LineGroup[] }
  | { readonly id: number; readonly error: string };

/** The limits of a DuckDB. */
export interface ChildLimits {
  /** DuckDB reads and writes files in these folders only; their names end with a slash. */
  readonly folders: readonly string[];
  readonly spillFolder: string;
  readonly memoryMb: number;
  readonly threads: number;
}

interface Opened {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  readonly spillFolder: string;
}
let opened: Opened | undefined;

async function open({ folders, spillFolder, memoryMb, threads }: ChildLimits): Promise<void> {
  // `import` would parse its sixty CommonJS modules a second time for their names, a third of the start of this process.
  const duckdb = createRequire(import.meta.url)('@duckdb/node-api') as typeof import('@duckdb/node-api');
  const instance = await duckdb.DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  opened = { instance, connection, spillFolder };
  for (const setting of [
    `threads = ${threads}`,
    `memory_limit = '${memoryMb}MB'`,
    `temp_directory = ${literal(spillFolder)}`,
    "TimeZone = 'UTC'",
    'enable_progress_bar = false',
    'autoinstall_known_extensions = false',
    'autoload_known_extensions = false',
    `allowed_directories = [${folders.map(literal).join(', ')}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ]) {
    await connection.run(`SET ${setting}`);
  }
}

/** @throws while lines are left: DuckDB may make the next ones */
function close(): void {
  if (lines !== undefined) throw new TypeError('lines are left');
  opened?.connection.closeSync();
  opened?.instance.closeSync();
  opened = undefined;
}

function connected(): DuckDBConnection {
  if (opened === undefined) throw new TypeError('DuckDB is closed');
  return opened.connection;
}

/** Chunks of DuckDB, of about 2,000 rows each, in an answer. */
const CHUNKS_PER_ANSWER = 4;
let lines: { result: DuckDBResult; next: Promise<DuckDBDataChunk | null> } | undefined;

async function startLines(statement: string): Promise<void> {
  const result = await connected().stream(statement);
  lines = { result, next: fetchNext(result) };
}

/** DuckDB makes a chunk while this process reads the former one. */
function fetchNext(result: DuckDBResult): Promise<DuckDBDataChunk | null> {
  const next = result.fetchChunk();
  // Reported when the chunk is asked for.
  next.catch(() => undefined);
  return next;
}

async function nextLines(): Promise<LineGroup[]> {
  const groups: LineGroup[] = [];
  for (let read = 0; lines !== undefined && read < CHUNKS_PER_ANSWER; read += 1) {
    const chunk = await lines.next;
    if (chunk === null || chunk.rowCount === 0) {
      lines = undefined;
      break;
    }
    lines.next = fetchNext(lines.result);
    addGroups(groups, chunk);
  }
  return groups;
}

function addGroups(groups: LineGroup[], chunk: DuckDBDataChunk): void {
  const columns = Array.from({ length: chunk.columnCount }, (_, index) => chunk.getColumnVector(index));
  const [firsts, texts] = [columns[0], columns.at(-1)];
  const valueAt = (column: number, row: number) => String(columns[column]?.getItem(row));
  const { rowCount } = chunk;
  const keysAt = (row: number) => columns.slice(1, -1).map((_, key) => valueAt(key + 1, row));
  const isOne = rowCount > 0 && firsts?.getItem(0) === firsts?.getItem(rowCount - 1);
  for (let row = 0; row < rowCount; ) {
    const first = valueAt(0, row);
    let group = '';
    const from = row;
    while (row < rowCount && (isOne || firsts?.getItem(row) === first)) {
      group += `\0${texts?.getItem(row)}`;
      row += 1;
    }
    groups.push({ first, rows: row - from, lines: group, keys: keysAt(row - 1) });
  }
}

async function answer(request: ChildRequest): Promise<ChildAnswer> {
  const { id } = request;
  try {
    if ('open' in request) {
      await open(request.open);
      return { id, rows: [] };
    }
    if ('close' in request) {
      close();
      return { id, rows: [] };
    }
    if ('nextLines' in request) return { id, groups: await nextLines() };
    if ('lines' in request) {
      await startLines(request.lines);
      return { id, groups: [] };
    }
    if ('digest' in request) return { id, rows: [await digestFile(request.digest, request.columns)] };
    return { id, rows: (await connected().runAndReadAll(request.run)).getRowObjectsJson() };
  } catch (thrown) {
    return { id, error: asError(thrown).message };
  }
}

process.on('message', (request: ChildRequest) => {
  void answer(request).then((answered) => process.send?.(answered));
});
// A parent that is gone has no use for the work of this process, which ends when nothing runs, nor for the files of this work.
process.on('disconnect', () => {
  if (opened === undefined) return;
  opened.connection.interrupt();
  if (opened.spillFolder !== '') void rm(opened.spillFolder, { recursive: true, force: true });
});
