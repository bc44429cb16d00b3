import { createWriteStream } from 'node:fs';
import type { ArchiveDay, ArchiveFile } from '../domain/archive/file.ts';
import { lockArchivedCandles, restoreArchivedCandles } from '../store/archive/candles.ts';
import { addFile, dropChanges, readPresentFile } from '../store/archive/catalog.ts';
import { copyDay, type DaySummary, deleteCorrections } from '../store/archive/copy.ts';
import { findTokens } from '../store/catalog/tokens.ts';
import { holdSeam, readSeam } from '../store/db/partitions.ts';
import type { Tx } from '../store/db/tx.ts';
import { shardsOf } from '../store/marks/marks.ts';
import { lockShards } from '../store/marks/stage.ts';
import { foldArchivedMinutes } from '../store/series/candles.ts';
import { publishLateTrades } from '../store/series/trades.ts';
import { RESTORED, toArchivedRow } from './candles.ts';
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
import { addChecksums, csvSql, literal, mergedFileSql, rowsOf, summarySql } from './parquet.ts';

const minuteOf = (row: string) => `epoch_us(${row}.ts) // 60000000`;

const hourOf = (row: string) => `epoch_us(${row}.ts) // 3600000000`;

/** Statements of DuckDB that find the trades of a CSV of corrections that the present file of their day, if it has one, lacks. */
const CORRECTIONS = {
  read: (csvPath: string) => `CREATE TABLE given AS ${csvSql('trades', csvPath)}`,
  /** The number and the checksum of all. */
  givenSummary: summarySql('trades', 'given'),
  choose: (presentPath: string | null) =>
    `CREATE TABLE fresh AS SELECT g.* FROM given g ${
      presentPath === null ? '' : `ANTI JOIN ${rowsOf(presentPath)} p USING (outcome_id, ts, trade_id)`
    }`,
  /** The same of the lacking ones. */
  freshSummary: summarySql('trades', 'fresh'),
  freshTimes:
    'SELECT CAST(min(epoch_us(ts)) AS VARCHAR) AS first, CAST(max(epoch_us(ts)) AS VARCHAR) AS last FROM fresh',
  /** The file of the day from its present one and the lacking trades. */
  write(day: ArchiveDay, presentPath: string | null, parquetPath: string) {
    return mergedFileSql(
      day,
      presentPath === null ? null : `SELECT * FROM ${rowsOf(presentPath)}`,
      'fresh',
      parquetPath,
    );
  },
  /** The outcomes that lacked trades, and the first and the last second of these. */
  outcomes: `SELECT outcome_id, CAST(min(epoch_us(ts)) // 1000000 AS VARCHAR) AS first,
    CAST(max(epoch_us(ts)) // 1000000 AS VARCHAR) AS last FROM fresh GROUP BY outcome_id ORDER BY outcome_id`,
  /** The hours with minutes that lacked a trade, with the number of all trades in these minutes. */
  hours: (parquetPath: string) =>
    `SELECT t.outcome_id, CAST(${hourOf('t')} AS VARCHAR) AS hour, CAST(count(*) AS VARCHAR) AS trades
     FROM ${rowsOf(parquetPath)} t SEMI JOIN fresh f ON f.outcome_id = t.outcome_id AND ${minuteOf('f')} = ${minuteOf('t')}
     GROUP BY ALL ORDER BY ALL`,
  /** All trades of these minutes in some hours, with all their digits. */
  minutes(parquetPath: string, hours: readonly { readonly outcomeId: string; readonly hour: string }[]) {
    const wanted = hours.map(({ outcomeId, hour }) => `(${literal(outcomeId)}, ${BigInt(hour)})`).join(', ');
    return `SELECT t.outcome_id, CAST(epoch_us(t.ts) AS VARCHAR) AS at_micros, t.trade_id,
      coalesce(CAST(t.price AS VARCHAR), t.price_text) AS price, coalesce(CAST(t.size AS VARCHAR), t.size_text) AS size,
      CASE t.side WHEN 'buy' THEN 1 WHEN 'sell' THEN -1 END AS side, t.ordinal
    FROM ${rowsOf(parquetPath)} t SEMI JOIN fresh f ON f.outcome_id = t.outcome_id AND ${minuteOf('f')} = ${minuteOf('t')}
    WHERE (t.outcome_id, ${hourOf('t')}) IN (${wanted})`;
  },
} as const;

/** Trades that are read and folded at once, in whole hours of outcomes. */
const FOLDED_TRADES = 20_000;
/** Candles that one statement stores again. */
const RESTORED_CANDLES = 5_000;

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
    const candles = await findCandles({ ...day, kind: 'candles' }, duckdb, options);
    const folding = async (tx: Tx) => {
      await deleteCorrections(tx, day, copied);
      await foldFresh(tx, { duckdb, path: paths.parquet, candles });
    };
    const added = await addFile(db, madeFile(day, revision, finished, options), summary, folding).catch((error) => {
      if (error instanceof CandlesMoved) return undefined;
      throw error;
    });
    return finish({ day, revision, finished, startedMs, isAdded: added !== undefined }, summary.rows, options);
  });
}

interface Fold {
  readonly duckdb: Duckdb;
  /** Of the new file of trades. */
  readonly path: string;
  readonly candles: FoundCandles;
}

/** The finer candles around the fresh trades, in a table of DuckDB. */
interface FoundCandles {
  readonly day: ArchiveDay;
  /** Postgres may have dropped them. */
  readonly isPast: boolean;
  readonly file: string | null;
  readonly rows: number;
}

/** The file or the seam changed since the candles were found: the next run of the day finds them again. */
class CandlesMoved extends Error {}

/** Before the transaction, which must not wait for a file. Only a day before the seam of candles needs them. */
async function findCandles(day: ArchiveDay, duckdb: Duckdb, options: MakeOptions): Promise<FoundCandles> {
  const seamMs = (await readSeam(options.db, 'candles')) ?? 0;
  if (Date.parse(day.date) >= seamMs) return { day, isPast: false, file: null, rows: 0 };
  const present = await readPresentFile(options.db, day);
  const path = await presentPath(present, options);
  if (present === undefined || path === null) return { day, isPast: true, file: null, rows: 0 };
  await duckdb.run(RESTORED.find(path));
  const [found] = await duckdb.run(RESTORED.count);
  return { day, isPast: true, file: present.file, rows: Number(found?.['rows']) };
}

/** Stores the found candles again, of which coarser ones are folded. The next run of their day drops them. */
async function restoreCandles(tx: Tx, duckdb: Duckdb, { day, file, rows }: FoundCandles): Promise<void> {
  await lockArchivedCandles(tx, day.venue, day.date);
  const present = await readPresentFile(tx, day);
  if ((present?.file ?? null) !== file) throw new CandlesMoved();
  for (let from = 0; from < rows; from += RESTORED_CANDLES) {
    const part = await duckdb.run(RESTORED.rows(from, from + RESTORED_CANDLES));
    await restoreArchivedCandles(tx, part.map(toArchivedRow));
  }
}

/** Updates the candles of the minutes with fresh trades from all trades of these minutes, and publishes both. */
async function foldFresh(tx: Tx, { duckdb, path, candles }: Fold): Promise<void> {
  const outcomes = await duckdb.run(CORRECTIONS.outcomes);
  const ids = outcomes.map((row) => String(row['outcome_id']));
  const keys = await findTokens(tx, ids);
  const keyOf = (row: Record<string, unknown>) => keys.get(String(row['outcome_id'])) as bigint;
  const isPast = Date.parse(candles.day.date) < (await holdSeam(tx, 'candles'));
  if (isPast !== candles.isPast) throw new CandlesMoved();
  await lockShards(tx, 'fold-candles', shardsOf([...keys.values()]));
  if (isPast) await restoreCandles(tx, duckdb, candles);
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
