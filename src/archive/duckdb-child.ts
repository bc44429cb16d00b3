import type { Json } from '@duckdb/node-api';
import type { FileColumn } from '../domain/archive/kinds.ts';
import { asError } from '../domain/values/errors.ts';
import { digestFile } from './digest.ts';
import { literal } from './parquet.ts';

/** What a parent asks of this process; `id` names the answer. */
export type ChildRequest =
  | { readonly id: number; readonly run: string }
  | { readonly id: number; readonly digest: string; readonly columns: readonly FileColumn[] };

/** The answer: rows of DuckDB, or the rows and the checksum of a file, by a reader other than DuckDB. */
export type ChildAnswer =
  | { readonly id: number; readonly rows: readonly Record<string, Json>[] }
  | { readonly id: number; readonly error: string };

/** The limits of DuckDB in this process, as the first argument of the program. */
export interface ChildLimits {
  /** DuckDB reads and writes files in this folder only. */
  readonly folder: string;
  readonly spillFolder: string;
  readonly memoryMb: number;
  readonly threads: number;
}

async function open({ folder, spillFolder, memoryMb, threads }: ChildLimits) {
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
    `allowed_directories = [${literal(folder)}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ]) {
    await connection.run(`SET ${setting}`);
  }
  return connection;
}

const connection = await open(JSON.parse(process.argv[2] ?? '{}') as ChildLimits);

async function answer(request: ChildRequest): Promise<ChildAnswer> {
  const { id } = request;
  try {
    if ('digest' in request) return { id, rows: [await digestFile(request.digest, request.columns)] };
    return { id, rows: (await connection.runAndReadAll(request.run)).getRowObjectsJson() };
  } catch (thrown) {
    return { id, error: asError(thrown).message };
  }
}

process.on('message', (request: ChildRequest) => {
  void answer(request).then((answered) => process.send?.(answered));
});
// A parent that is gone has no use for the work of this process, which ends when nothing runs.
process.on('disconnect', () => connection.interrupt());
process.send?.({ ready: true });
