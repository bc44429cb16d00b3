import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveDay } from '../../domain/archive/file.ts';
import { ARCHIVE_KINDS, type ArchiveKind, fileColumns } from '../../domain/archive/kinds.ts';
import type { VolumeUnit } from '../../domain/markets/volume-witness.ts';
import { copyDay } from '../../store/archive/copy.ts';
import type { Database } from '../../store/db/tx.ts';
import type { Duckdb } from '../duckdb.ts';
import { checksumSql, literal, rowsOf, writeSql } from '../parquet.ts';

/** The facts that a file states about itself. */
interface FileFacts {
  readonly rows: number;
  readonly checksum: string;
  /** 0 for a file that does not state it. */
  readonly schemaVersion: number;
  /** Rows with a time outside of the day, without the values in effect at its start. */
  readonly outside: number;
}

const hasInEffect = (kind: ArchiveKind) => fileColumns(kind).some(({ name }) => name === 'in_effect');

/** The column of the time of a row: it decides the day. */
function timeOf(kind: ArchiveKind): string {
  const times = fileColumns(kind).filter(({ type }) => type === 'time');
  const order: readonly string[] = ARCHIVE_KINDS[kind].order;
  return times.find(({ name }) => order.includes(name))?.name ?? 'received_at';
}

/** Microseconds since 1970 of the start of a day. */
const startUs = (date: string) => `${Date.parse(`${date}T00:00:00Z`)}000`;
const DAY_US = '86400000000';

/** @throws OddswireError `archive_failed` when the file cannot be read */
export async function readFacts(duckdb: Duckdb, day: ArchiveDay, path: string): Promise<FileFacts> {
  const { kind, date } = day;
  const [stated] = await duckdb.run(
    `SELECT decode(value) AS version FROM parquet_kv_metadata(${literal(path)}) WHERE decode(key) = 'oddswire_schema'`,
  );
  const us = `epoch_us("${timeOf(kind)}") - ${startUs(date)}`;
  const ofDay = hasInEffect(kind) ? 'NOT in_effect AND' : '';
  const [outside] = await duckdb.run(
    `SELECT CAST(count(*) AS VARCHAR) AS rows FROM ${rowsOf(path)}
     WHERE ${ofDay} NOT (${us} >= 0 AND ${us} < ${DAY_US})`,
  );
  const [digest] = await duckdb.run(checksumSql(kind, path));
  return {
    rows: Number(digest?.['rows']),
    checksum: String(digest?.['checksum']),
    schemaVersion: Number(stated?.['version'] ?? 0),
    outside: Number(outside?.['rows']),
  };
}

interface Difference {
  /** Rows of the left side that the right side lacks, and the reverse. */
  readonly onlyLeft: number;
  readonly onlyRight: number;
}

/**
 * The columns of kinds whose other columns change without a note: a later release states more facts of a version, and an hour is judged again
 * at another time.
 */
const IDENTITY: Partial<Record<ArchiveKind, readonly string[]>> = {
  markets: ARCHIVE_KINDS.markets.order,
  coverage: [...ARCHIVE_KINDS.coverage.order, 'class'],
};

/** A value in effect at the start of the day follows from earlier days, so it does not count. */
function comparedSql(kind: ArchiveKind, path: string, where: string): string {
  const columns = IDENTITY[kind] ?? fileColumns(kind).map(({ name }) => name);
  const ofDay = hasInEffect(kind) ? `NOT in_effect AND ${where}` : where;
  return `SELECT ${columns.map((name) => `"${name}"`).join(', ')} FROM ${rowsOf(path)} WHERE ${ofDay}`;
}

/** Compares the rows of two files of a kind, each row as often as it is there. */
export async function compareFiles(
  duckdb: Duckdb,
  kind: ArchiveKind,
  [left, right]: readonly [string, string],
  where = 'true',
): Promise<Difference> {
  const [a, b] = [comparedSql(kind, left, where), comparedSql(kind, right, where)];
  const only = async (first: string, second: string) => {
    const [row] = await duckdb.run(`SELECT CAST(count(*) AS VARCHAR) AS rows FROM ((${first}) EXCEPT ALL (${second}))`);
    return Number(row?.['rows']);
  };
  return { onlyLeft: await only(a, b), onlyRight: await only(b, a) };
}

interface PostgresOptions {
  readonly db: Database;
  /** A folder outside of the archive, which may be read-only. */
  readonly work: string;
  readonly signal: AbortSignal;
  /** Retention carries rows to the first moment of a partition: they are no rows of that day. */
  readonly isFirstOfPartition: boolean;
}

/** Compares a file with the rows of Postgres: `onlyLeft` are those of the file. */
export async function compareWithPostgres(
  duckdb: Duckdb,
  day: ArchiveDay,
  path: string,
  { db, work, signal, isFirstOfPartition }: PostgresOptions,
): Promise<Difference> {
  const [csv, parquet] = [join(work, 'rows.csv'), join(work, 'rows.parquet')];
  try {
    const { rows } = await copyDay(db, day, () => createWriteStream(csv), signal);
    const where =
      isFirstOfPartition && hasInEffect(day.kind) ? `epoch_us("${timeOf(day.kind)}") > ${startUs(day.date)}` : 'true';
    if (rows === 0) {
      const [row] = await duckdb.run(
        `SELECT CAST(count(*) AS VARCHAR) AS rows FROM (${comparedSql(day.kind, path, where)})`,
      );
      return { onlyLeft: Number(row?.['rows']), onlyRight: 0 };
    }
    await duckdb.run(writeSql(day, csv, parquet));
    return await compareFiles(duckdb, day.kind, [path, parquet], where);
  } finally {
    await Promise.all([csv, parquet].map((made) => rm(made, { force: true })));
  }
}

/** The volume of a market in an hour of a file, as decimal text. */
interface HourVolume {
  readonly marketId: string;
  /** Epoch milliseconds. */
  readonly startMs: number;
  readonly volume: string;
}

/** Volumes of trades by market and hour, to ten digits behind the point. Values with more than 20 digits before it leave their hour out. */
export async function readHourVolumes(duckdb: Duckdb, path: string, unit: VolumeUnit): Promise<HourVolume[]> {
  const column = unit === 'contracts' ? 'size' : 'notional';
  const value = `CAST(coalesce("${column}", TRY_CAST("${column}_text" AS DECIMAL(38, 10))) AS DECIMAL(38, 10))`;
  const rows = await duckdb.run(
    `SELECT market_id, CAST(epoch_us(ts) // 3600000000 * 3600000 AS VARCHAR) AS start, CAST(sum(${value}) AS VARCHAR) AS volume
     FROM ${rowsOf(path)} WHERE market_id IS NOT NULL GROUP BY ALL HAVING count(${value}) = count(*)`,
  );
  return rows.map((row) => ({
    marketId: String(row['market_id']),
    startMs: Number(row['start']),
    volume: String(row['volume']),
  }));
}
