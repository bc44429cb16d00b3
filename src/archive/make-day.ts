import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveDay, type ArchiveFile, folderOf } from '../domain/archive/file.ts';
import { fileColumns, SCHEMA_VERSION } from '../domain/archive/kinds.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { addFile, describing, dropChanges, isUnfolded, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary, deleteCorrections } from '../store/archive/copy.ts';
import { findTokens } from '../store/catalog/tokens.ts';
import { readSeam } from '../store/db/archive-seam.ts';
import type { Database, Tx } from '../store/db/tx.ts';
import { lockShards, shardsOf } from '../store/marks/marks.ts';
import { foldArchivedMinutes } from '../store/series/candles.ts';
import { publishLateTrades } from '../store/series/trades.ts';
import { type Duckdb, openDuckdb } from './duckdb.ts';
import { keepOnly, nameFile, placeFile, removeFile, sha256Of, workFolder, writeManifest } from './folder.ts';
import { claimFolder } from './owner.ts';
import { addChecksums, CORRECTIONS, checksumSql, writeSql } from './parquet.ts';
import { describeStored, pathIn, placeOf, removeStored, restoreFile, storedFile } from './store/day.ts';
import type { ObjectStore } from './store/s3.ts';

/** DuckDB writes a file of any length within this memory. */
const MEMORY_MB = 384;
/** Trades that are read and folded at once, in whole hours of outcomes. */
const FOLDED_TRADES = 20_000;
/** Postgres ends a transaction that waits longer than 15 s. */
const DESCRIBE_MS = 10_000;

interface MakeOptions {
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

type DayReport = Record<string, string | number | boolean>;

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
    const place: Place = { day, present, paths, startedMs: performance.now() };
    return isPast ? await merge(place, options) : await copy(place, options);
  } finally {
    await Promise.all(Object.values(paths).map((path) => rm(path, { recursive: true, force: true })));
  }
}

interface Place {
  readonly day: ArchiveDay;
  readonly present: ArchiveFile | undefined;
  readonly paths: { readonly csv: string; readonly parquet: string; readonly spill: string };
  readonly startedMs: number;
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
  let placed: Placed = { file: null, bytes: 0, sha256: null };
  if (summary.rows > 0) {
    await withDuckdb({ dir, paths }, signal, async (duckdb) => {
      await duckdb.run(writeSql(day, paths.csv, paths.parquet));
      await check(duckdb, day, paths.parquet, summary);
    });
    placed = await place({ day, revision, madePath: paths.parquet }, options);
  }
  const added = await addFile(db, madeFile(day, revision, placed, options), summary);
  return finish({ day, revision, placed, startedMs, isAdded: added !== undefined }, summary.rows, options);
}

type FormerFile = Pick<ArchiveFile, 'file' | 'revision' | 'rows' | 'checksum' | 'start' | 'end' | 'sha256'>;
/** A day before the first archived one of its venue. */
const NO_FILE: FormerFile = { file: null, revision: 0, rows: 0, checksum: '0.0', start: null, end: null, sha256: null };

/** Makes the file of a day of trades from its present one and from corrections: Postgres has no other trades of the day. */
async function merge({ day, present: known, paths, startedMs }: Place, options: MakeOptions): Promise<DayReport> {
  const { db, dir, store, signal, isRepair = false } = options;
  if (isRepair) throw new OddswireError('archive_rows_gone', 'only the file has the rows of this day');
  if (day.kind !== 'trades') return { skipped: 'only files have the day' };
  const present: FormerFile = known ?? NO_FILE;
  const copied = await copyDay(db, day, () => createWriteStream(paths.csv), signal, 'archive_correction');
  const presentPath = present.file === null ? null : join(dir, folderOf(day), present.file);
  const presentFile = known && storedFile(known);
  if (store !== undefined && presentFile !== undefined && (await pathIn(dir, presentFile)) === undefined) {
    await restoreFile(dir, presentFile, store, signal);
  }
  if (presentPath !== null) await checkContent(presentPath, present);
  return withDuckdb({ dir, paths }, signal, async (duckdb) => {
    await duckdb.run(CORRECTIONS.read(paths.csv));
    const [given] = await duckdb.run(CORRECTIONS.givenSummary);
    compare('DuckDB', given, copied);
    await duckdb.run(CORRECTIONS.choose(presentPath));
    const [fresh] = await duckdb.run(CORRECTIONS.freshSummary);
    const freshRows = Number(fresh?.['rows']);
    if (freshRows === 0) {
      await db.transaction((tx) => deleteCorrections(tx, day, copied));
      await dropChanges(db, copied);
      return { skipped: 'unchanged', rows: present.rows };
    }
    const [times] = await duckdb.run(CORRECTIONS.freshTimes);
    const [firstMs, lastMs] = ['first', 'last'].map((name) => Number(times?.[name]) / 1000);
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
    const placed = await place({ day, revision, madePath: paths.parquet }, options);
    const path = join(dir, folderOf(day), placed.file);
    const added = await addFile(db, madeFile(day, revision, placed, options), summary, async (tx) => {
      await deleteCorrections(tx, day, copied);
      await foldFresh(tx, duckdb, path);
    });
    return finish({ day, revision, placed, startedMs, isAdded: added !== undefined }, summary.rows, options);
  });
}

/** Stores a finished file and moves it to its place, in this order: a fault of the store leaves no file in the folder. */
async function place(
  { day, revision, madePath }: { day: ArchiveDay; revision: number; madePath: string },
  { dir, store, signal }: MakeOptions,
): Promise<{ file: string; bytes: number; sha256: string }> {
  const named = await nameFile(day, revision, madePath);
  await store?.putFile(placeOf({ ...day, ...named }), madePath, named, signal);
  await placeFile(dir, day, named.file, madePath);
  return named;
}

function madeFile(day: ArchiveDay, revision: number, placed: Placed, { store }: MakeOptions) {
  return { day, revision, ...placed, schemaVersion: SCHEMA_VERSION, storedIn: store?.url ?? null };
}

/** Updates the candles of the minutes with fresh trades from all trades of these minutes, and publishes both. */
async function foldFresh(tx: Tx, duckdb: Duckdb, path: string): Promise<void> {
  const outcomes = await duckdb.run(CORRECTIONS.outcomes);
  const ids = outcomes.map((row) => String(row['outcome_id']));
  const keys = await findTokens(tx, ids);
  const keyOf = (row: Record<string, unknown>) => keys.get(String(row['outcome_id'])) as bigint;
  await lockShards(tx, 'fold-candles', shardsOf([...keys.values()]));
  const hours = (await duckdb.run(CORRECTIONS.hours(path))).map((row) => ({
    outcomeId: String(row['outcome_id']),
    hour: String(row['hour']),
    trades: Number(row['trades']),
  }));
  while (hours.length > 0) {
    let [count, rows] = [0, 0];
    while (count < hours.length && (count === 0 || rows + (hours[count]?.trades ?? 0) <= FOLDED_TRADES)) {
      rows += hours[count]?.trades ?? 0;
      count += 1;
    }
    const trades = await duckdb.run(CORRECTIONS.minutes(path, hours.splice(0, count)));
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
  readonly revision: number;
  readonly placed: Placed;
  readonly startedMs: number;
  /** False when another process was first, or when Postgres dropped the rows of the day meanwhile. */
  readonly isAdded: boolean;
}

async function finish(made: Made, rows: number, options: MakeOptions): Promise<DayReport> {
  const { db, dir, store, log, signal } = options;
  const { day, revision, placed, startedMs, isAdded } = made;
  if (!isAdded) {
    // Equal rows make equal bytes, and these an equal name: then the file is the one that counts.
    const winner = await readPresentFile(db, day);
    if (placed.file !== null && placed.file !== winner?.file) {
      await removeFile(dir, day, placed.file);
      if (store !== undefined) await removeStored(store, { ...day, file: placed.file }, signal);
    }
    return { skipped: 'another process was first' };
  }
  if (placed.file !== null || revision > 1) await describeDay(day, options);
  const durationMs = Math.round(performance.now() - startedMs);
  log.info({ ...day, revision, rows, bytes: placed.bytes, durationMs }, 'day archived');
  return { ...day, revision, rows, bytes: placed.bytes };
}

async function withDuckdb<T>(
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

/** The rows of the day itself, without the values in effect at its start. */
function rowsOfDay({ rows, inEffect }: { rows: number; inEffect: number }): number {
  return rows - inEffect;
}

/** @throws OddswireError `archive_file_changed` when a file is not the one of the catalog */
async function checkContent(path: string, { file, sha256 }: Pick<ArchiveFile, 'file' | 'sha256'>): Promise<void> {
  if ((await sha256Of(path)) === sha256) return;
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
