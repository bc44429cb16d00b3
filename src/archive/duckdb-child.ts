import { rm } from 'node:fs/promises';
import type { DuckDBDataChunk, DuckDBResult, Json } from '@duckdb/node-api';
import type { FileColumn } from '../domain/archive/kinds.ts';
import { asError } from '../domain/values/errors.ts';
import { digestFile } from './digest.ts';
import { literal } from './parquet.ts';

/** What a parent asks of this process; `id` names the answer. */
export type ChildRequest =
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

/** The limits of DuckDB in this process, as the first argument of the program. */
export interface ChildLimits {
  /** DuckDB reads and writes files in these folders only; their names end with a slash. */
  readonly folders: readonly string[];
  readonly spillFolder: string;
  readonly memoryMb: number;
  readonly threads: number;
}

async function open({ folders, spillFolder, memoryMb, threads }: ChildLimits) {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
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
  return connection;
}

const limits = JSON.parse(process.argv[2] ?? '{}') as ChildLimits;
const connection = await open(limits);

/** Chunks of DuckDB, of about 2,000 rows each, in an answer. */
const CHUNKS_PER_ANSWER = 4;
let lines: { result: DuckDBResult; next: Promise<DuckDBDataChunk | null> } | undefined;

async function startLines(statement: string): Promise<void> {
  const result = await connection.stream(statement);
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
    if ('nextLines' in request) return { id, groups: await nextLines() };
    if ('lines' in request) {
      await startLines(request.lines);
      return { id, groups: [] };
    }
    if ('digest' in request) return { id, rows: [await digestFile(request.digest, request.columns)] };
    return { id, rows: (await connection.runAndReadAll(request.run)).getRowObjectsJson() };
  } catch (thrown) {
    return { id, error: asError(thrown).message };
  }
}

process.on('message', (request: ChildRequest) => {
  void answer(request).then((answered) => process.send?.(answered));
});
// A parent that is gone has no use for the work of this process, which ends when nothing runs, nor for the files of this work.
process.on('disconnect', () => {
  connection.interrupt();
  if (limits.spillFolder !== '') void rm(limits.spillFolder, { recursive: true, force: true });
});
process.send?.({ ready: true });
