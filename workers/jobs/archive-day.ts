import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Duckdb, hasDuckdb, openDuckdb } from '../../src/archive/duckdb.ts';
import { placeFile, removeFile, workFolder } from '../../src/archive/folder.ts';
import { checksumSql, writeSql } from '../../src/archive/parquet.ts';
import type { ArchiveDay } from '../../src/domain/archive/file.ts';
import { fileColumns, SCHEMA_VERSION } from '../../src/domain/archive/kinds.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { addFile, dropChanges, isUnfolded, readDueDays, readPresentFile } from '../../src/store/archive/catalog.ts';
import { copyDay, type DaySummary } from '../../src/store/archive/copy.ts';
import { newLeaseToken } from '../../src/store/db/leases.ts';
import { describeDay } from '../process/archiving.ts';
import { defineJob, type JobContext, type JobReport } from '../process/define.ts';

/** DuckDB writes a file of any length within this memory. */
const MEMORY_MB = 384;

/**
 * Makes the file of a day. A death leaves unfinished files, or a file that the catalog does not name and no reader finds; the next run makes
 * the day again. A file counts with its row in the catalog, and the manifest of its folder follows.
 */
export const archiveDay = defineJob('archive-day', async (data, context) => {
  const day: ArchiveDay = data;
  const { dir } = context.config.archive;
  if (dir === undefined || !hasDuckdb()) return { skipped: 'off' };
  const report = await archive(day, dir, context);
  await wakeNext(day, context);
  return report;
});

async function archive(day: ArchiveDay, dir: string, { db, log, presence, signal }: JobContext): Promise<JobReport> {
  const isFolded = day.kind === 'trades' || day.kind === 'candles';
  if (isFolded && (await isUnfolded(db, day))) return { skipped: 'trades are not in their candles' };
  const present = await readPresentFile(db, day);
  const folder = await workFolder(dir);
  const base = join(
    folder,
    `${day.kind}-${day.venue}-${day.date}-${newLeaseToken(presence.key).replaceAll(/\W/g, '')}`,
  );
  const [csv, parquet, spill] = [`${base}.csv`, `${base}.parquet`, `${base}.spill`];
  const startedMs = performance.now();
  try {
    const summary = await copyDay(db, day, () => createWriteStream(csv), signal);
    if (present?.checksum === summary.checksum && present.rows === summary.rows) {
      await dropChanges(db, summary);
      return { skipped: 'unchanged', rows: summary.rows };
    }
    const revision = (present?.revision ?? 0) + 1;
    let placed: { file: string | null; bytes: number; sha256: string | null } = { file: null, bytes: 0, sha256: null };
    if (summary.rows > 0) {
      const limits = { folder: `${dir}/`, spillFolder: spill, memoryMb: MEMORY_MB, threads: 1 };
      const duckdb = await openDuckdb(limits, signal);
      try {
        await duckdb.run(writeSql(day, csv, parquet));
        await check(duckdb, day, parquet, summary);
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

/** @throws OddswireError `archive_mismatch` when a reader of the file finds other rows than Postgres has */
async function check(duckdb: Duckdb, day: ArchiveDay, path: string, summary: DaySummary): Promise<void> {
  const expected = `${summary.rows} rows, checksum ${summary.checksum}`;
  // DuckDB computes in a thread of its own.
  const [[byDuckdb], byHyparquet] = await Promise.all([
    duckdb.run(checksumSql(day.kind, path)),
    duckdb.digest(path, fileColumns(day.kind)),
  ]);
  const found = { DuckDB: byDuckdb, hyparquet: byHyparquet };
  for (const [reader, read] of Object.entries(found)) {
    const actual = `${String(read?.['rows'])} rows, checksum ${String(read?.['checksum'])}`;
    if (actual === expected) continue;
    throw new OddswireError('archive_mismatch', `${reader} read ${actual} from the file; Postgres has ${expected}`);
  }
}

/** The next day of the same kind and venue follows at once; the days of others are woken by `maintain-storage`. */
async function wakeNext({ kind, venue, date }: ArchiveDay, { db, config, producer }: JobContext): Promise<void> {
  const { afterHours } = config.archive;
  const [next] = await readDueDays(db, { pairs: [{ kind, venue }], afterHours, limit: 1 });
  if (next !== undefined && next.date !== date) producer.wake('archive-day', next);
}
