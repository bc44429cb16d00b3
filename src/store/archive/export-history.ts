import type { Writable } from 'node:stream';
import { escapeLiteral } from 'pg';
import type { ExportKind } from '../../domain/archive/exported.ts';
import { ARCHIVED_INTERVALS } from '../../domain/archive/kinds.ts';
import { INTERVAL_SECONDS } from '../../domain/markets/candle.ts';
import { listPartitions } from '../db/partitions.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import type { ExportSelection } from '../series/export.ts';
import { type CopiedSpan, copyRows, copySpanSql, ISOLATE } from './copy.ts';
import { CATALOG_FILE } from './file-list.ts';
import type { PastFile } from './past.ts';

const MICROS_PER_SECOND = 1_000_000n;

/** The history of a selection, as of one snapshot. */
export interface ExportHistory {
  /** Epoch microseconds; null when the selection begins behind it, or without one. */
  readonly seam: bigint | null;
  /** Postgres has the rows from here on, epoch microseconds. */
  readonly presentFrom: bigint;
  /** Files have the rows of `[from, until)`, epoch microseconds. */
  readonly from: bigint;
  readonly until: bigint;
  /** Oldest first. */
  readonly files: readonly PastFile[];
  /** The outcomes of the market of the selection; null for all markets. */
  readonly outcomeIds: readonly string[] | null;
  /**
   * Rows that were copied because files may have them: corrections of trades, candles of Postgres, and values at the first moment of Postgres,
   * where retention carried the last values before it.
   */
  readonly merged: number;
  /** The last file before that moment: a value that equals its value there was carried. */
  readonly carriedFrom: PastFile | null;
}

const SEAM = sql(
  'export_seam',
  'SELECT (extract(epoch FROM until) * 1000000)::bigint AS until FROM archive_seam WHERE kind = $1 AND $2',
);
const FILES = sql(
  'export_files',
  `SELECT ${CATALOG_FILE} FROM archive_file f
   WHERE kind = $1 AND venue = $2 AND superseded_at IS NULL AND file IS NOT NULL AND date >= $3::date AND date <= $4::date ORDER BY f.date`,
);
const LAST_FILE = sql(
  'export_last_file',
  `SELECT ${CATALOG_FILE} FROM archive_file f
   WHERE kind = $1 AND venue = $2 AND superseded_at IS NULL AND file IS NOT NULL AND date < $3::date ORDER BY f.date DESC LIMIT 1`,
);
const OUTCOME_IDS = sql(
  'export_outcome_ids',
  `SELECT t.mint AS outcome_id FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE m.venue = $1 AND m.venue_market_id = $2`,
);

const dateOf = (micros: bigint) => new Date(Number(micros / 1_000n)).toISOString().slice(0, 10);

/** The part of a selection that files have; `merged` receives the rows that files may have, as CSV of `fileColumns`. */
export function readExportPast(
  db: Database,
  selection: ExportSelection,
  merged: () => Writable,
): Promise<ExportHistory> {
  return db.transaction(async (tx) => {
    await tx.query(ISOLATE);
    return readPast(tx, selection, merged);
  });
}

/** The whole history of a selection, with the rows of Postgres and the market of each outcome as CSV. */
export function copyExportHistory(
  db: Database,
  selection: ExportSelection,
  targets: { merged: () => Writable; present: () => Writable; outcomes: () => Writable },
): Promise<ExportHistory & { present: number }> {
  return db.transaction(async (tx) => {
    await tx.query(ISOLATE);
    const past = await readPast(tx, selection, targets.merged);
    await copyRows(tx, outcomesSql(selection), [targets.outcomes()]);
    const span = spanOf(selection, past.presentFrom, endOf(selection));
    const present = await copyRows(tx, copySpanSql(span, 'trade'), [targets.present()]);
    return { ...past, present };
  });
}

const startOf = ({ range }: ExportSelection) => BigInt(range.start) * MICROS_PER_SECOND;
const endOf = ({ range }: ExportSelection) => BigInt(range.end) * MICROS_PER_SECOND;

function spanOf({ kind, venue, marketId, intervals }: ExportSelection, from: bigint, until: bigint): CopiedSpan {
  return { kind, venue, marketId, from, until, intervals: intervals.map((interval) => INTERVAL_SECONDS[interval]) };
}

const least = (a: bigint, b: bigint) => (a < b ? a : b);
const greatest = (a: bigint, b: bigint) => (a > b ? a : b);

async function readPast(tx: Tx, selection: ExportSelection, merged: () => Writable): Promise<ExportHistory> {
  const { kind, venue, marketId, intervals } = selection;
  const [start, end] = [startOf(selection), endOf(selection)];
  const nothing = { files: [], outcomeIds: null, merged: 0, carriedFrom: null, from: start, until: start };
  const isMoved =
    kind !== 'candles' || intervals.some((interval) => ARCHIVED_INTERVALS.includes(INTERVAL_SECONDS[interval]));
  const [found] = await tx.query<{ until: bigint }>(SEAM, [kind, isMoved]);
  const first = await firstMoment(tx, kind);
  const isCarried = first !== undefined && first >= start && first < end;
  if (found === undefined || (found.until < start && !isCarried)) return { seam: null, presentFrom: start, ...nothing };
  const seam = found.until;
  const until = least(end, seam);
  const hasFiles = until > start;
  const files = hasFiles ? await tx.query<PastFile>(FILES, [kind, venue, dateOf(start), dateOf(until - 1n)]) : [];
  const outcomes =
    marketId === undefined ? null : await tx.query<{ outcomeId: string }>(OUTCOME_IDS, [venue, marketId]);
  const past = {
    ...{ seam, presentFrom: greatest(seam, start), from: start, until, files },
    ...{ outcomeIds: outcomes?.map(({ outcomeId }) => outcomeId) ?? null, merged: 0, carriedFrom: null },
  };
  if (kind === 'trades') {
    if (!hasFiles) return past;
    const span = spanOf(selection, start, until);
    return { ...past, merged: await copyRows(tx, copySpanSql(span, 'archive_correction'), [merged()]) };
  }
  if (kind === 'candles') {
    if (!hasFiles) return past;
    // The order of candles begins with their length, so that those of files and of Postgres alternate: all are sorted together.
    const merging = await copyRows(tx, copySpanSql(spanOf(selection, start, end), 'trade'), [merged()]);
    return { ...past, presentFrom: end, merged: merging };
  }
  if (!isCarried) return past;
  const [last] = await tx.query<PastFile>(LAST_FILE, [kind, venue, dateOf(first)]);
  const copied = await copyRows(tx, copySpanSql(spanOf(selection, first, first + 1n), 'trade'), [merged()]);
  return { ...past, presentFrom: first + 1n, merged: copied, carriedFrom: last ?? null };
}

/** The start of the oldest partition, epoch microseconds. */
async function firstMoment(db: Queryable, kind: ExportKind): Promise<bigint | undefined> {
  if (kind === 'candles' || kind === 'trades') return undefined;
  const [oldest] = await listPartitions(db, kind === 'prices' ? 'price_history' : 'book_history');
  return oldest && BigInt(oldest.fromMs) * 1_000n;
}

function outcomesSql({ venue, marketId }: ExportSelection): string {
  return `COPY (SELECT t.mint, m.venue_market_id FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
    WHERE m.venue = ${escapeLiteral(venue)}${marketId === undefined ? '' : ` AND m.venue_market_id = ${escapeLiteral(marketId)}`})
    TO STDOUT (FORMAT csv, FORCE_QUOTE *)`;
}
