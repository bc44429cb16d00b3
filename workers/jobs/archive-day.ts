import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Duckdb, hasDuckdb, openDuckdb } from '../../src/archive/duckdb.ts';
import { digestOf, placeFile, removeFile, workFolder } from '../../src/archive/folder.ts';
import { addChecksums, CORRECTIONS, checksumSql, writeSql } from '../../src/archive/parquet.ts';
import { type ArchiveDay, type ArchiveFile, folderOf } from '../../src/domain/archive/file.ts';
import { fileColumns, SCHEMA_VERSION } from '../../src/domain/archive/kinds.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { addFile, dropChanges, isUnfolded, readDueDays, readPresentFile } from '../../src/store/archive/catalog.ts';
import { copyDay, type DaySummary, deleteCorrections } from '../../src/store/archive/copy.ts';
import { findTokens } from '../../src/store/catalog/tokens.ts';
import { readSeam } from '../../src/store/db/archive-seam.ts';
import { newLeaseToken } from '../../src/store/db/leases.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { lockShards, shardsOf } from '../../src/store/marks/marks.ts';
import { foldArchivedMinutes } from '../../src/store/series/candles.ts';
import { publishLateTrades } from '../../src/store/series/trades.ts';
import { describeDay } from '../process/archiving.ts';
import { defineJob, type JobContext, type JobReport } from '../process/define.ts';

/** DuckDB writes a file of any length within this memory. */
const MEMORY_MB = 384;
/** Outcomes whose minutes are read and folded at once. */
const FOLDED_OUTCOMES = 100;

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

async function archive(day: ArchiveDay, dir: string, context: JobContext): Promise<JobReport> {
  const { db, presence } = context;
  const present = await readPresentFile(db, day);
  const seamMs = await readSeam(db, day.kind);
  const isPast = seamMs !== undefined && Date.parse(day.date) < seamMs;
  const isFolded = day.kind === 'trades' || day.kind === 'candles';
  if (isFolded && !isPast && (await isUnfolded(db, day))) return { skipped: 'trades are not in their candles' };
  const folder = await workFolder(dir);
  const base = join(
    folder,
    `${day.kind}-${day.venue}-${day.date}-${newLeaseToken(presence.key).replaceAll(/\W/g, '')}`,
  );
  const paths = { csv: `${base}.csv`, parquet: `${base}.parquet`, spill: `${base}.spill` };
  try {
    const place: Place = { day, dir, present, paths, startedMs: performance.now() };
    return isPast ? await merge(place, context) : await copy(place, context);
  } finally {
    await Promise.all(Object.values(paths).map((path) => rm(path, { recursive: true, force: true })));
  }
}

interface Place {
  readonly day: ArchiveDay;
  readonly dir: string;
  readonly present: ArchiveFile | undefined;
  readonly paths: { readonly csv: string; readonly parquet: string; readonly spill: string };
  readonly startedMs: number;
}

/** Makes the file of a day from its rows in Postgres. */
async function copy({ day, dir, present, paths, startedMs }: Place, context: JobContext): Promise<JobReport> {
  const { db, signal } = context;
  const summary = await copyDay(db, day, () => createWriteStream(paths.csv), signal);
  if (present?.checksum === summary.checksum && present.rows === summary.rows) {
    await dropChanges(db, summary);
    return { skipped: 'unchanged', rows: summary.rows };
  }
  const revision = (present?.revision ?? 0) + 1;
  let placed: Placed = { file: null, bytes: 0, sha256: null };
  if (summary.rows > 0) {
    await withDuckdb({ dir, paths }, signal, async (duckdb) => {
      await duckdb.run(writeSql(day, paths.csv, paths.parquet));
      await check(duckdb, day, paths.parquet, summary);
    });
    placed = await placeFile(dir, day, revision, paths.parquet);
  }
  const added = await addFile(db, { day, revision, ...placed, schemaVersion: SCHEMA_VERSION }, summary);
  return finish({ day, dir, revision, placed, startedMs, isAdded: added !== undefined }, summary.rows, context);
}

/** Makes the file of a day of trades from its present one and from corrections: Postgres has no other trades of the day. */
async function merge({ day, dir, present, paths, startedMs }: Place, context: JobContext): Promise<JobReport> {
  const { db, signal } = context;
  if (day.kind !== 'trades' || present === undefined) return { skipped: 'only files have the day' };
  const copied = await copyDay(db, day, () => createWriteStream(paths.csv), signal, 'archive_correction');
  const presentPath = present.file === null ? null : join(dir, folderOf(day), present.file);
  if (presentPath !== null) await checkContent(presentPath, present);
  return withDuckdb({ dir, paths }, signal, async (duckdb) => {
    await duckdb.run(CORRECTIONS.read(paths.csv));
    const [given] = await duckdb.run(CORRECTIONS.givenSummary);
    compare('DuckDB', given, copied);
    await duckdb.run(CORRECTIONS.choose(presentPath));
    const [fresh] = await duckdb.run(CORRECTIONS.freshSummary);
    const freshRows = Number(fresh?.['rows']);
    if (freshRows === 0) {
      await db.transaction((tx) => deleteCorrections(tx, day, copied.snapshot));
      await dropChanges(db, copied);
      return { skipped: 'unchanged', rows: present.rows };
    }
    const [firstMs, lastMs] = ['first_micros', 'last_micros'].map((name) => Number(fresh?.[name]) / 1000);
    const summary: DaySummary = {
      ...copied,
      rows: present.rows + freshRows,
      inEffect: 0,
      startMs: Math.min(firstMs ?? 0, present.start?.getTime() ?? Number.POSITIVE_INFINITY),
      endMs: Math.max(lastMs ?? 0, present.end?.getTime() ?? 0),
      checksum: addChecksums(present.checksum, String(fresh?.['checksum'])),
    };
    await duckdb.run(CORRECTIONS.write(day, presentPath, paths.parquet));
    await check(duckdb, day, paths.parquet, summary);
    const revision = present.revision + 1;
    const placed = await placeFile(dir, day, revision, paths.parquet);
    const path = join(dir, folderOf(day), placed.file);
    const made = { day, revision, ...placed, schemaVersion: SCHEMA_VERSION };
    const added = await addFile(db, made, summary, async (tx) => {
      await deleteCorrections(tx, day, copied.snapshot);
      await foldFresh(tx, duckdb, path);
    });
    return finish({ day, dir, revision, placed, startedMs, isAdded: added !== undefined }, summary.rows, context);
  });
}

/** Updates the candles of the minutes with fresh trades from all trades of these minutes, and publishes both. */
async function foldFresh(tx: Tx, duckdb: Duckdb, path: string): Promise<void> {
  const outcomes = await duckdb.run(CORRECTIONS.outcomes);
  const ids = outcomes.map((row) => String(row['outcome_id']));
  const keys = await findTokens(tx, ids);
  const keyOf = (row: Record<string, unknown>) => keys.get(String(row['outcome_id'])) as bigint;
  await lockShards(tx, 'fold-candles', shardsOf([...keys.values()]));
  for (let from = 0; from < ids.length; from += FOLDED_OUTCOMES) {
    const trades = await duckdb.run(CORRECTIONS.minutes(path, ids.slice(from, from + FOLDED_OUTCOMES)));
    await foldArchivedMinutes(
      tx,
      trades.map((row) => ({
        tokenId: keyOf(row),
        atMicros: String(row['at_micros']),
        tradeId: String(row['trade_id']),
        price: String(row['price']),
        size: String(row['size']),
        side: row['side'] as number | null,
        ordinal: Number(row['ordinal']),
      })),
    );
  }
  await publishLateTrades(
    tx,
    outcomes.map((row) => ({
      tokenId: keyOf(row),
      start: BigInt(String(row['first'])),
      until: BigInt(String(row['last'])) + 1n,
    })),
  );
}

type Placed = { file: string | null; bytes: number; sha256: string | null };

interface Made {
  readonly day: ArchiveDay;
  readonly dir: string;
  readonly revision: number;
  readonly placed: Placed;
  readonly startedMs: number;
  /** False when another process was first, or when Postgres dropped the rows of the day meanwhile. */
  readonly isAdded: boolean;
}

async function finish(made: Made, rows: number, { db, log }: JobContext): Promise<JobReport> {
  const { day, dir, revision, placed, startedMs, isAdded } = made;
  if (!isAdded) {
    // Equal rows make equal bytes, and these an equal name: then the file is the one that counts.
    const winner = await readPresentFile(db, day);
    if (placed.file !== null && placed.file !== winner?.file) await removeFile(dir, day, placed.file);
    return { skipped: 'another process was first' };
  }
  if (placed.file !== null || revision > 1) await describeDay(dir, day, db);
  const durationMs = Math.round(performance.now() - startedMs);
  log.info({ ...day, revision, rows, bytes: placed.bytes, durationMs }, 'day archived');
  return { ...day, revision, rows, bytes: placed.bytes };
}

async function withDuckdb<T>(
  { dir, paths }: Pick<Place, 'dir' | 'paths'>,
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

/** @throws OddswireError `archive_file_changed` when a file is not the one of the catalog */
async function checkContent(path: string, { file, sha256 }: ArchiveFile): Promise<void> {
  if ((await digestOf(path)) === sha256) return;
  throw new OddswireError('archive_file_changed', `${file} has another content than in the catalog`);
}

/** @throws OddswireError `archive_mismatch` when a reader of the file finds other rows than Postgres has */
async function check(duckdb: Duckdb, day: ArchiveDay, path: string, summary: DaySummary): Promise<void> {
  // DuckDB computes in a thread of its own.
  const [[byDuckdb], byHyparquet] = await Promise.all([
    duckdb.run(checksumSql(day.kind, path)),
    duckdb.digest(path, fileColumns(day.kind)),
  ]);
  compare('DuckDB', byDuckdb, summary);
  compare('hyparquet', byHyparquet, summary);
}

function compare(reader: string, read: Readonly<Record<string, unknown>> | undefined, summary: DaySummary): void {
  const expected = `${summary.rows} rows, checksum ${summary.checksum}`;
  const actual = `${String(read?.['rows'])} rows, checksum ${String(read?.['checksum'])}`;
  if (actual === expected) return;
  throw new OddswireError('archive_mismatch', `${reader} read ${actual}; Postgres has ${expected}`);
}

/** The next day of the same kind and venue follows at once; the days of others are woken by `maintain-storage`. */
async function wakeNext({ kind, venue, date }: ArchiveDay, { db, config, producer }: JobContext): Promise<void> {
  const { afterHours } = config.archive;
  const [next] = await readDueDays(db, { pairs: [{ kind, venue }], afterHours, limit: 1 });
  if (next !== undefined && next.date !== date) producer.wake('archive-day', next);
}
