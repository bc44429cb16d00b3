import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveDay } from '../domain/archive/file.ts';
import { fileColumns, SCHEMA_VERSION } from '../domain/archive/kinds.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { addFile, describing, dropChanges, isUnfolded, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary } from '../store/archive/copy.ts';
import type { Database } from '../store/db/tx.ts';
import { type Duckdb, openDuckdb } from './duckdb.ts';
import { keepOnly, placeFile, removeFile, workFolder, writeManifest } from './folder.ts';
import { claimFolder } from './owner.ts';
import { checksumSql, writeSql } from './parquet.ts';

/** DuckDB writes a file of any length within this memory. */
const MEMORY_MB = 384;

interface MakeOptions {
  readonly db: Database;
  readonly dir: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Part of the names of unfinished files: no other run has it. */
  readonly tag: string;
  /** Epoch milliseconds of this machine; by default its clock. */
  readonly nowMs?: number;
  /** Makes a later revision although the rows are the same, because the file of the present one is damaged or gone. */
  readonly isRepair?: boolean;
}

type DayReport = Record<string, string | number | boolean>;

/**
 * Makes the file of a day. A death leaves unfinished files, or a file that the catalog does not name and no reader finds; the next run makes
 * the day again. A file counts with its row in the catalog, and the manifest of its folder follows.
 * @throws OddswireError `archive_mismatch`, `archive_rows_gone`, `archive_failed`, one of `claimFolder`, or the error of the disk
 */
export async function makeDay(day: ArchiveDay, options: MakeOptions): Promise<DayReport> {
  const { db, dir, log, signal, tag, nowMs, isRepair = false } = options;
  await claimFolder(dir, db, nowMs);
  const isFolded = day.kind === 'trades' || day.kind === 'candles';
  if (isFolded && (await isUnfolded(db, day))) return { skipped: 'trades are not in their candles' };
  const present = await readPresentFile(db, day);
  const folder = await workFolder(dir);
  const base = join(folder, `${day.kind}-${day.venue}-${day.date}-${tag.replaceAll(/\W/g, '')}`);
  const [csv, parquet, spill] = [`${base}.csv`, `${base}.parquet`, `${base}.spill`];
  const startedMs = performance.now();
  try {
    const summary = await copyDay(db, day, () => createWriteStream(csv), signal);
    const isSame = present?.checksum === summary.checksum && present.rows === summary.rows;
    if (isSame && !isRepair) {
      await dropChanges(db, summary);
      return { skipped: 'unchanged', rows: summary.rows };
    }
    if (isRepair && present !== undefined && rowsOfDay(summary) < rowsOfDay(present)) {
      const counts = `${rowsOfDay(summary)} of the ${rowsOfDay(present)} rows`;
      throw new OddswireError('archive_rows_gone', `Postgres has ${counts} that the catalog states`);
    }
    const revision = (present?.revision ?? 0) + 1;
    let placed: { file: string | null; bytes: number; sha256: string | null } = { file: null, bytes: 0, sha256: null };
    if (summary.rows > 0) {
      const limits = { folder: `${dir}/`, spillFolder: spill, memoryMb: MEMORY_MB, threads: 1 };
      const duckdb = await openDuckdb(limits, signal);
      try {
        await duckdb.run(writeSql(day, csv, parquet));
        await compare(duckdb, day, parquet, summary);
      } finally {
        await duckdb.close();
      }
      placed = await placeFile(dir, day, revision, parquet);
    }
    const made = { day, revision, ...placed, schemaVersion: SCHEMA_VERSION };
    const added = await addFile(db, made, summary);
    if (added === undefined) {
      // Equal rows make equal bytes, and these an equal name: then the file is the one that counts.
      const winner = await readPresentFile(db, day);
      if (placed.file !== null && placed.file !== winner?.file) await removeFile(dir, day, placed.file);
      return { skipped: 'another process was first' };
    }
    if (placed.file !== null || revision > 1) await describeDay(dir, day, db);
    const { rows } = summary;
    const durationMs = Math.round(performance.now() - startedMs);
    log.info({ ...day, revision, rows, bytes: placed.bytes, durationMs }, 'day archived');
    return { ...day, revision, rows, bytes: placed.bytes };
  } finally {
    await Promise.all([csv, parquet, spill].map((path) => rm(path, { recursive: true, force: true })));
  }
}

/** The rows of the day itself, without the values in effect at its start. */
function rowsOfDay({ rows, inEffect }: { rows: number; inEffect: number }): number {
  return rows - inEffect;
}

/** @throws OddswireError `archive_mismatch` when a reader of the file finds other rows than Postgres has */
async function compare(duckdb: Duckdb, day: ArchiveDay, path: string, summary: DaySummary): Promise<void> {
  const expected = `${summary.rows} rows, checksum ${summary.checksum}`;
  const [byDuckdb] = await duckdb.run(checksumSql(day.kind, path));
  const found = { DuckDB: byDuckdb, hyparquet: await duckdb.digest(path, fileColumns(day.kind)) };
  for (const [reader, read] of Object.entries(found)) {
    const actual = `${String(read?.['rows'])} rows, checksum ${String(read?.['checksum'])}`;
    if (actual === expected) continue;
    throw new OddswireError('archive_mismatch', `${reader} read ${actual} from the file; Postgres has ${expected}`);
  }
}

/** Makes the folder of a day as the catalog describes it: the file that counts, and its manifest. */
export function describeDay(dir: string, day: ArchiveDay, db: Database): Promise<void> {
  return describing(db, day, async (present) => {
    await keepOnly(dir, day, present.file);
    await writeManifest(dir, day, present.file === null ? [] : [present]);
  });
}
