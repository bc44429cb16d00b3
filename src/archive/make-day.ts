import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveDay } from '../domain/archive/file.ts';
import { OddswireError } from '../domain/values/errors.ts';
import { addFile, dropChanges, isUnfolded, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay } from '../store/archive/copy.ts';
import { readSeam } from '../store/db/archive-seam.ts';
import { workFolder } from './folder.ts';
import {
  check,
  type DayReport,
  finish,
  type MakeOptions,
  madeFile,
  NO_ROWS,
  type Place,
  upload,
  withDuckdb,
} from './making.ts';
import { mergeCandles } from './merge-candles.ts';
import { mergeTrades } from './merge-trades.ts';
import { claimFolder } from './owner.ts';
import { writeSql } from './parquet.ts';

/**
 * Makes the file of a day. A death leaves unfinished files, or a file that the catalog does not name and no reader finds; the next run makes
 * the day again. A file counts with its row in the catalog, and the manifest of its folder follows.
 * @throws OddswireError `archive_mismatch`, `archive_rows_gone`, `archive_failed`, one of `claimFolder`, or the error of the disk
 */
export async function makeDay(day: ArchiveDay, options: MakeOptions): Promise<DayReport> {
  const { db, dir, store, tag, nowMs } = options;
  await claimFolder(dir, db, { store, nowMs });
  const present = await readPresentFile(db, day);
  const seamMs = await readSeam(db, day.kind);
  const isPast = seamMs !== undefined && Date.parse(day.date) < seamMs;
  const isFolded = day.kind === 'trades' || day.kind === 'candles';
  if (isFolded && !isPast && (await isUnfolded(db, day))) return { skipped: 'trades are not in their candles' };
  const folder = await workFolder(dir);
  const base = join(folder, `${day.kind}-${day.venue}-${day.date}-${tag.replaceAll(/\W/g, '')}`);
  const paths = { csv: `${base}.csv`, parquet: `${base}.parquet`, spill: `${base}.spill` };
  try {
    const run: Place = { day, present, paths, startedMs: performance.now() };
    return isPast ? await merge(run, options) : await copy(run, options);
  } finally {
    await Promise.all(Object.values(paths).map((path) => rm(path, { recursive: true, force: true })));
  }
}

/** A later revision of a day whose rows files alone have: from its present file and from rows that came since. */
async function merge(run: Place, options: MakeOptions): Promise<DayReport> {
  if (options.isRepair) throw new OddswireError('archive_rows_gone', 'only the file has the rows of this day');
  if (run.day.kind === 'trades') return mergeTrades(run, options);
  return run.day.kind === 'candles' ? mergeCandles(run, options) : { skipped: 'only files have the day' };
}

/** Makes the file of a day from its rows in Postgres. */
async function copy({ day, present, paths, startedMs }: Place, options: MakeOptions): Promise<DayReport> {
  const { db, dir, signal, isRepair = false } = options;
  const summary = await copyDay(db, day, () => createWriteStream(paths.csv), signal);
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
  let finished = NO_ROWS;
  if (summary.rows > 0) {
    await withDuckdb({ dir, paths }, signal, async (duckdb) => {
      await duckdb.run(writeSql(day, paths.csv, paths.parquet));
      await check(duckdb, day, paths.parquet, summary);
    });
    finished = await upload({ day, revision, madePath: paths.parquet }, options);
  }
  const added = await addFile(db, madeFile(day, revision, finished, options), summary);
  return finish({ day, revision, finished, startedMs, isAdded: added !== undefined }, summary.rows, options);
}

/** The rows of the day itself, without the values in effect at its start. */
function rowsOfDay({ rows, inEffect }: { rows: number; inEffect: number }): number {
  return rows - inEffect;
}
