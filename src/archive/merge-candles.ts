import { createWriteStream } from 'node:fs';
import { dropArchivedCandles, lockArchivedCandles, noteDropped } from '../store/archive/candles.ts';
import { addFile, dropChanges } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary } from '../store/archive/copy.ts';
import { CHANGED_CANDLES, toArchivedRow } from './candles.ts';
import type { Duckdb } from './duckdb.ts';
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
import { addChecksums, subtractChecksums } from './parquet.ts';

/** Candles that one transaction drops. */
const DROPPED = 5_000;

/**
 * Makes the file of a day before the seam of candles from its present one and from the candles of Postgres, which count: folds of late trades
 * changed them. Then Postgres drops the candles that the file has. A death before the end leaves some, which reads find in both places as one;
 * the next run drops them.
 */
export async function mergeCandles(
  { day, present, paths, startedMs }: Place,
  options: MakeOptions,
): Promise<DayReport> {
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
