import type { ArchiveDay } from '../domain/archive/file.ts';
import type { ArchivedRow } from '../store/archive/candles.ts';
import { digits, ofMarkets, timeSql } from './history.ts';
import { csvSql, literal, mergedFileSql, rowsOf, summarySql } from './parquet.ts';

const PRICES = ['open', 'high', 'low', 'close', 'volume', 'notional'] as const;
const COLUMNS = `outcome_id, interval_seconds, CAST(epoch_us(start) // 1000000 AS VARCHAR) AS bucket,
  ${PRICES.map((name) => `${digits(name)} AS ${name}`).join(', ')}, trades`;
const KEYS = 'outcome_id, interval_seconds, start';

interface FilesQuery {
  /** Paths of files. */
  readonly files: readonly string[];
  readonly marketId: string;
  readonly outcomeIds: readonly string[];
  /** The length of a candle. */
  readonly seconds: number;
  /** Epoch seconds: starts in `[from, until)`. */
  readonly from: number;
  readonly until: number;
}

/** SQL of DuckDB of the candles of outcomes of a market. */
export function candlesSql({ files, marketId, outcomeIds, seconds, from, until }: FilesQuery): string {
  const moment = (second: number) => timeSql(BigInt(Math.ceil(second)) * 1_000_000n);
  return `SELECT ${COLUMNS} FROM ${rowsOf(...files)}
    WHERE ${ofMarkets('market_id', [marketId])} AND outcome_id IN (${outcomeIds.map(literal).join(', ')}) AND interval_seconds = ${seconds}
      AND start >= ${moment(from)} AND start < ${moment(until)}`;
}

/** A row of `candlesSql`, of `CHANGED_CANDLES.rows` or of `RESTORED.rows`. */
export function toArchivedRow(row: Readonly<Record<string, unknown>>): ArchivedRow {
  const [open, high, low, close, volume, notional] = PRICES.map((name) => String(row[name]));
  const values = { open, high, low, close, volume, notional } as Record<(typeof PRICES)[number], string>;
  return {
    outcomeId: String(row['outcome_id']),
    intervalSeconds: Number(row['interval_seconds']),
    bucket: Number(row['bucket']),
    ...values,
    trades: Number(row['trades']),
  };
}

const quarterOf = (time: string) => `epoch_us(${time}) // 900000000`;

/** Statements of DuckDB over the candles of a file in the quarters of an hour of a table `fresh` of trades: a fold of them needs all of these. */
export const RESTORED = {
  find: (candlesPath: string) => `CREATE TABLE restored AS SELECT c.* FROM ${rowsOf(candlesPath)} c
    SEMI JOIN fresh f ON f.outcome_id = c.outcome_id AND ${quarterOf('f.ts')} = ${quarterOf('c.start')}`,
  count: 'SELECT CAST(count(*) AS VARCHAR) AS rows FROM restored',
  /** A part of them; `from` and `until` count them. */
  rows: (from: number, until: number) => `SELECT ${COLUMNS} FROM restored WHERE rowid >= ${from} AND rowid < ${until}`,
} as const;

/** Statements of DuckDB that put candles of a CSV in place of those of the present file of their day, if it has one. */
export const CHANGED_CANDLES = {
  read: (csvPath: string) => `CREATE TABLE given AS ${csvSql('candles', csvPath)}`,
  givenSummary: summarySql('candles', 'given'),
  /** The candles of the file that others replace. */
  choose: (presentPath: string | null) =>
    presentPath === null
      ? 'CREATE TABLE replaced AS SELECT * FROM given LIMIT 0'
      : `CREATE TABLE replaced AS SELECT p.* FROM ${rowsOf(presentPath)} p SEMI JOIN given g USING (${KEYS})`,
  replacedSummary: summarySql('candles', 'replaced'),
  changed: 'SELECT CAST(count(*) AS VARCHAR) AS rows FROM (SELECT * FROM given EXCEPT SELECT * FROM replaced)',
  write(day: ArchiveDay, presentPath: string | null, parquetPath: string) {
    const kept =
      presentPath === null ? null : `SELECT p.* FROM ${rowsOf(presentPath)} p ANTI JOIN given g USING (${KEYS})`;
    return mergedFileSql(day, kept, 'given', parquetPath);
  },
  /** A part of the given candles; `from` and `until` count them. */
  rows: (from: number, until: number) =>
    `SELECT ${COLUMNS} FROM given WHERE rowid >= ${from} AND rowid < ${until} ORDER BY rowid`,
} as const;
