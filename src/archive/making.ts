import { join } from 'node:path';
import type { ArchiveDay, ArchiveFile } from '../domain/archive/file.ts';
import { fileColumns, SCHEMA_VERSION } from '../domain/archive/kinds.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { describing, readPresentFile } from '../store/archive/catalog.ts';
import type { DaySummary } from '../store/archive/copy.ts';
import type { Database } from '../store/db/tx.ts';
import { type Duckdb, openDuckdb } from './duckdb.ts';
import { keepOnly, nameFile, placeFile, sha256Of, writeManifest } from './folder.ts';
import { checksumSql } from './parquet.ts';
import { describeStored, pathIn, placeOf, removeStored, restoreFile, storedFile } from './store/day.ts';
import type { ObjectStore } from './store/s3.ts';

/*
 * The steps of making a file, whatever its rows come from: DuckDB writes it, two readers compare it, it moves to its place, and its folder is
 * described.
 */

/** DuckDB writes a file of any length within this memory. */
const MEMORY_MB = 384;
/** Postgres ends a transaction that waits longer than 15 s. */
const DESCRIBE_MS = 10_000;

/** What a run needs. */
export interface MakeOptions {
  readonly db: Database;
  readonly dir: string;
  readonly store?: ObjectStore | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Part of the names of unfinished files: no other run has it. */
  readonly tag: string;
  /** Epoch milliseconds of this machine; by default its clock. */
  readonly nowMs?: number;
  /** Makes a later revision although the rows are the same, because the file of the present one is damaged or gone. */
  readonly isRepair?: boolean;
}

/** What a run did, for its job. */
export type DayReport = Record<string, string | number | boolean>;

/** A run: its day, the file that counts now, and the paths of its unfinished files. */
export interface Place {
  readonly day: ArchiveDay;
  readonly present: ArchiveFile | undefined;
  readonly paths: { readonly csv: string; readonly parquet: string; readonly spill: string };
  readonly startedMs: number;
}

/** Names a finished file and uploads it. `addFile` moves it to its place: a fault of the store leaves no file in the folder. */
export async function upload(
  { day, revision, madePath }: { day: ArchiveDay; revision: number; madePath: string },
  { dir, store, signal }: MakeOptions,
): Promise<Finished & { file: string }> {
  const named = await nameFile(day, revision, madePath);
  await store?.putFile(placeOf({ ...day, ...named }), madePath, named, signal);
  let isPlaced = false;
  const place = async () => {
    // A transaction that begins again finds it there.
    if (!isPlaced) await placeFile(dir, day, named.file, madePath);
    isPlaced = true;
  };
  return { ...named, place };
}

/** The facts of a finished file for the catalog. */
export function madeFile(day: ArchiveDay, revision: number, finished: Finished, { store }: MakeOptions) {
  return { day, revision, ...finished, schemaVersion: SCHEMA_VERSION, storedIn: store?.url ?? null };
}

/** A file that is complete; `file` is null for a day without rows. */
interface Finished {
  readonly file: string | null;
  readonly bytes: number;
  readonly sha256: string | null;
  /** Moves it to its place. */
  place(): Promise<void>;
}

/** Of a day without rows. */
export const NO_ROWS: Finished = { file: null, bytes: 0, sha256: null, place: async () => undefined };

interface Made {
  readonly day: ArchiveDay;
  readonly revision: number;
  readonly finished: Finished;
  readonly startedMs: number;
  /** False when another process was first, or when Postgres dropped the rows of the day meanwhile. */
  readonly isAdded: boolean;
}

/** Describes the folder of a file that counts; removes the object of one that does not. */
export async function finish(made: Made, rows: number, options: MakeOptions): Promise<DayReport> {
  const { db, store, log, signal } = options;
  const { day, revision, finished, startedMs, isAdded } = made;
  if (!isAdded) {
    // Equal rows make equal bytes, and these an equal name: then the file is the one that counts.
    const winner = await readPresentFile(db, day);
    const { file } = finished;
    if (store !== undefined && file !== null && file !== winner?.file)
      await removeStored(store, { ...day, file }, signal);
    return { skipped: 'another process was first' };
  }
  if (finished.file !== null || revision > 1) await describeDay(day, options);
  const durationMs = Math.round(performance.now() - startedMs);
  log.info({ ...day, revision, rows, bytes: finished.bytes, durationMs }, 'day archived');
  return { ...day, revision, rows, bytes: finished.bytes };
}

/** Runs a process of DuckDB that reaches this folder alone. */
export async function withDuckdb<T>(
  { dir, paths }: Pick<Place, 'paths'> & Pick<MakeOptions, 'dir'>,
  signal: AbortSignal,
  work: (duckdb: Duckdb) => Promise<T>,
): Promise<T> {
  const limits = { folders: [`${dir}/`], spillFolder: paths.spill, memoryMb: MEMORY_MB, threads: 1 };
  const duckdb = await openDuckdb(limits, signal);
  try {
    return await work(duckdb);
  } finally {
    await duckdb.close();
  }
}

/**
 * The path of the file that counts, with its content compared; null for a day without rows. A file that the folder lacks comes from the store.
 * @throws OddswireError `archive_file_changed`, `archive_failed`, `store_unavailable`
 */
export async function presentPath(
  present: ArchiveFile | undefined,
  { dir, store, signal }: Pick<MakeOptions, 'dir' | 'store' | 'signal'>,
): Promise<string | null> {
  const file = present && storedFile(present);
  if (file === undefined) return null;
  if (store !== undefined && (await pathIn(dir, file)) === undefined) await restoreFile(dir, file, store, signal);
  const path = (await pathIn(dir, file)) ?? join(dir, placeOf(file));
  if ((await sha256Of(path)) === file.sha256) return path;
  throw new OddswireError('archive_file_changed', `${file.file} has another content than in the catalog`);
}

/** @throws OddswireError `archive_mismatch` when a reader of the file finds other rows than Postgres has */
export async function check(duckdb: Duckdb, day: ArchiveDay, path: string, summary: DaySummary): Promise<void> {
  // DuckDB computes in a thread of its own.
  const [[byDuckdb], byHyparquet] = await Promise.all([
    duckdb.run(checksumSql(day.kind, path)),
    duckdb.digest(path, fileColumns(day.kind)),
  ]);
  compare('DuckDB', byDuckdb, summary);
  compare('hyparquet', byHyparquet, summary);
}

/** @throws OddswireError `archive_mismatch` */
export function compare(
  reader: string,
  read: Readonly<Record<string, unknown>> | undefined,
  summary: DaySummary,
): void {
  const expected = `${summary.rows} rows, checksum ${summary.checksum}`;
  const actual = `${String(read?.['rows'])} rows, checksum ${String(read?.['checksum'])}`;
  if (actual === expected) return;
  throw new OddswireError('archive_mismatch', `${reader} read ${actual}; Postgres has ${expected}`);
}

/**
 * Makes the folder of a day, and its objects, as the catalog describes it: the file that counts, and its manifest. A file that only one of
 * them has gets to the other one.
 * @throws OddswireError `store_unavailable`, or the error of the disk
 */
export async function describeDay(
  day: ArchiveDay,
  options: Pick<MakeOptions, 'db' | 'dir' | 'store' | 'signal'>,
): Promise<void> {
  const { db, dir, store } = options;
  if (store !== undefined) await storePresent(day, options);
  await describing(db, day, store?.url ?? null, async (present) => {
    await keepOnly(dir, day, present.file);
    const manifest = await writeManifest(dir, day, present.file === null ? [] : [present]);
    if (store === undefined) return;
    await describeStored(store, { day, file: storedFile(present), manifest }, AbortSignal.timeout(DESCRIBE_MS));
  });
}

/** Before the transaction: an upload can last longer than one may. */
async function storePresent(
  day: ArchiveDay,
  { db, dir, store, signal }: Pick<MakeOptions, 'db' | 'dir' | 'store' | 'signal'>,
): Promise<void> {
  const present = await readPresentFile(db, day);
  const file = present && storedFile(present);
  if (file === undefined || store === undefined) return;
  const path = await pathIn(dir, file);
  if (path === undefined) await restoreFile(dir, file, store, signal);
  else await store.putFile(placeOf(file), path, file, signal);
}
