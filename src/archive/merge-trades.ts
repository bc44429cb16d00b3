import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { type ArchiveDay, type ArchiveFile, folderOf } from '../domain/archive/file.ts';
import { lockArchivedCandles, restoreArchivedCandles } from '../store/archive/candles.ts';
import { addFile, dropChanges, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary, deleteCorrections } from '../store/archive/copy.ts';
import { findTokens } from '../store/catalog/tokens.ts';
import { holdCandleSeam } from '../store/db/archive-seam.ts';
import type { Tx } from '../store/db/tx.ts';
import { lockShards, shardsOf } from '../store/marks/marks.ts';
import { foldArchivedMinutes } from '../store/series/candles.ts';
import { publishLateTrades } from '../store/series/trades.ts';
import { restoredSql, toArchivedRow } from './candles.ts';
import type { Duckdb } from './duckdb.ts';
import {
  check,
  compare,
  type DayReport,
  finish,
  type MakeOptions,
  madeFile,
  type Place,
  presentPath,
  upload,
  withDuckdb,
} from './making.ts';
import { addChecksums, CORRECTIONS } from './parquet.ts';

/** Trades that are read and folded at once, in whole hours of outcomes. */
const FOLDED_TRADES = 20_000;
/** Postgres ends a transaction that waits longer than 15 s. */
const READ_MS = 10_000;

type FormerFile = Pick<ArchiveFile, 'file' | 'revision' | 'rows' | 'checksum' | 'start' | 'end' | 'sha256'>;
/** A day before the first archived one of its venue. */
const NO_FILE: FormerFile = { file: null, revision: 0, rows: 0, checksum: '0.0', start: null, end: null, sha256: null };

/** Makes the file of a day of trades from its present one and from corrections: Postgres has no other trades of the day. */
export async function mergeTrades(
  { day, present: known, paths, startedMs }: Place,
  options: MakeOptions,
): Promise<DayReport> {
  const { db, dir, signal } = options;
  const present: FormerFile = known ?? NO_FILE;
  const copied = await copyDay(db, day, () => createWriteStream(paths.csv), signal, 'archive_correction');
  const knownPath = await presentPath(known, options);
  // A fold before the seam of candles reads the finer ones in their file: it comes from the store before the transaction.
  const candles: ArchiveDay = { ...day, kind: 'candles' };
  await presentPath(await readPresentFile(db, candles), options);
  return withDuckdb({ dir, paths }, signal, async (duckdb) => {
    await duckdb.run(CORRECTIONS.read(paths.csv));
    const [given] = await duckdb.run(CORRECTIONS.givenSummary);
    compare('DuckDB', given, copied);
    await duckdb.run(CORRECTIONS.choose(knownPath));
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
    await duckdb.run(CORRECTIONS.write(day, knownPath, paths.parquet));
    await check(duckdb, day, paths.parquet, summary);
    const revision = present.revision + 1;
    const finished = await upload({ day, revision, madePath: paths.parquet }, options);
    const path = join(dir, folderOf(day), finished.file);
    const added = await addFile(db, madeFile(day, revision, finished, options), summary, async (tx) => {
      await deleteCorrections(tx, day, copied);
      await foldFresh(tx, { duckdb, path, candles, dir });
    });
    return finish({ day, revision, finished, startedMs, isAdded: added !== undefined }, summary.rows, options);
  });
}

interface Fold {
  readonly duckdb: Duckdb;
  /** Of the new file of trades. */
  readonly path: string;
  /** The day of its candles. */
  readonly candles: ArchiveDay;
  readonly dir: string;
}

/** Stores the finer candles around the fresh trades again, of which coarser ones are folded. The next run of their day drops them. */
async function restoreCandles(tx: Tx, { duckdb, candles, dir }: Omit<Fold, 'path'>): Promise<void> {
  await lockArchivedCandles(tx, candles.venue, candles.date);
  const path = await presentPath(await readPresentFile(tx, candles), { dir, signal: AbortSignal.timeout(READ_MS) });
  if (path === null) return;
  const rows = (await duckdb.run(restoredSql(path))).map(toArchivedRow);
  if (rows.length > 0) await restoreArchivedCandles(tx, rows);
}

/** Updates the candles of the minutes with fresh trades from all trades of these minutes, and publishes both. */
async function foldFresh(tx: Tx, { duckdb, path, candles, dir }: Fold): Promise<void> {
  const outcomes = await duckdb.run(CORRECTIONS.outcomes);
  const ids = outcomes.map((row) => String(row['outcome_id']));
  const keys = await findTokens(tx, ids);
  const keyOf = (row: Record<string, unknown>) => keys.get(String(row['outcome_id'])) as bigint;
  const candleSeamMs = await holdCandleSeam(tx);
  await lockShards(tx, 'fold-candles', shardsOf([...keys.values()]));
  if (Date.parse(candles.date) < candleSeamMs) await restoreCandles(tx, { duckdb, candles, dir });
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
