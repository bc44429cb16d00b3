import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveDay } from '../domain/archive/file.ts';
import { OddswireError } from '../domain/values/errors.ts';
import { dropArchivedCandles, lockArchivedCandles, noteDropped } from '../store/archive/candles.ts';
import { addFile, dropChanges, isUnfolded, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary } from '../store/archive/copy.ts';
import { readSeam } from '../store/db/partitions.ts';
import { CHANGED_CANDLES, toArchivedRow } from './candles.ts';
import type { Duckdb } from './duckdb.ts';
import { workFolder } from './folder.ts';
import {
  check,
  compare,
  type DayReport,
  finish,
  type MakeOptions,
  madeFile,
  NO_ROWS,
  type Place,
  presentPath,
  upload,
  withDuckdb,
} from './making.ts';
import { mergeTrades } from './merge-trades.ts';
import { claimFolder } from './owner.ts';
import { addChecksums, subtractChecksums, writeSql } from './parquet.ts';

/** The report of a day that waits for its folds; the next `maintain-storage` wakes it. */
export const UNFOLDED = 'trades are not in their candles';

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
  if (isFolded && !isPast && (await isUnfolded(db, day))) return { skipped: UNFOLDED };
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

/** Candles that one transaction drops. */
const DROPPED = 5_000;

/**
 * Makes the file of a day before the seam of candles from its present one and from the candles of Postgres, which count: folds of late trades
 * changed them. Then Postgres drops the candles that the file has. A death before the end leaves some, which reads find in both places as one;
 * the next run drops them.
 */
async function mergeCandles({ day, present, paths, startedMs }: Place, options: MakeOptions): Promise<DayReport> {
  const { db, dir, signal } = options;
  const copied = await copyDay(db, day, () => createWriteStream(paths.csv), signal);
  const presentFile = await presentPath(present, options);
  return withDuckdb({ dir, paths }, signal, async (duckdb) => {
    await duckdb.run(CHANGED_CANDLES.read(paths.csv));
    const [given] = await duckdb.run(CHANGED_CANDLES.givenSummary);
    compare('DuckDB', given, copied);
    await duckdb.run(CHANGED_CANDLES.choose(presentFile));
    const [changed] = await duckdb.run(CHANGED_CANDLES.changed);
    let revision = present?.revision ?? 0;
    let report: DayReport = { skipped: 'unchanged', rows: present?.rows ?? 0 };
    if (Number(changed?.['rows']) > 0 || present === undefined) {
      const [replaced] = await duckdb.run(CHANGED_CANDLES.replacedSummary);
      const summary: DaySummary = {
        ...copied,
        rows: (present?.rows ?? 0) - Number(replaced?.['rows']) + copied.rows,
        startMs: edge(Math.min, copied.startMs, present?.start),
        endMs: edge(Math.max, copied.endMs, present?.end),
        checksum: addChecksums(
          subtractChecksums(present?.checksum ?? '0.0', String(replaced?.['checksum'])),
          copied.checksum,
        ),
      };
      revision += 1;
      let finished = NO_ROWS;
      if (summary.rows > 0) {
        await duckdb.run(CHANGED_CANDLES.write(day, presentFile, paths.parquet));
        await check(duckdb, day, paths.parquet, summary);
        finished = await upload({ day, revision, madePath: paths.parquet }, options);
      }
      const added = await addFile(db, madeFile(day, revision, finished, options), summary, async () => undefined);
      report = await finish(
        { day, revision, finished, startedMs, isAdded: added !== undefined },
        summary.rows,
        options,
      );
      if (added === undefined) return report;
    }
    const dropped = await drop(duckdb, copied.rows, { day, options });
    await dropChanges(db, copied);
    await noteDropped(db, day.venue, day.date, revision);
    return { ...report, dropped };
  });
}

/** The first or the last time of rows, epoch milliseconds; null without rows. */
function edge(choose: typeof Math.min, copiedMs: number | null, present: Date | null | undefined): number | null {
  const times = [copiedMs, present?.getTime()].filter((time) => typeof time === 'number');
  return times.length === 0 ? null : choose(...times);
}

/** Part by part. A candle that changed since its copy stays, and its note makes the day due again. */
async function drop(
  duckdb: Duckdb,
  rows: number,
  { day: { venue, date }, options: { db, signal } }: { day: Place['day']; options: MakeOptions },
): Promise<number> {
  let dropped = 0;
  for (let from = 0; from < rows; from += DROPPED) {
    signal.throwIfAborted();
    const part = (await duckdb.run(CHANGED_CANDLES.rows(from, from + DROPPED))).map(toArchivedRow);
    dropped += await db.transaction(async (tx) => {
      await lockArchivedCandles(tx, venue, date);
      return dropArchivedCandles(tx, part);
    });
  }
  return dropped;
}
