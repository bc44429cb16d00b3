import type { Socket } from 'node:net';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { CsvRows, type RowsSummary } from '../../domain/archive/csv-rows.ts';
import type { ArchiveDay, ArchiveFile, DayWitness } from '../../domain/archive/file.ts';
import { fileColumns } from '../../domain/archive/kinds.ts';
import { asError, OddswireError } from '../../domain/values/errors.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import { NEWEST_HEAD } from '../journal/read-journal.ts';
import { copySql, TIME_COLUMN, type TradeTable } from './rows.ts';

/** The rows of a day in Postgres, at one snapshot. */
export interface DaySummary extends RowsSummary {
  snapshot: string;
  journalSeq: string | null;
  witness: NonNullable<ArchiveFile['witness']>;
  /** The changes of the day whose rows this snapshot has; see migration 0049. */
  changes: bigint[];
  /** Of corrections: the outcomes whose rows were copied. */
  tokenIds: bigint[];
}

/** One snapshot for all statements of a transaction. */
export const ISOLATE = sql('isolate_archive_read', 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
const READ_PLACE = sql(
  'read_archive_place',
  `SELECT pg_current_snapshot()::text AS snapshot, (SELECT seq::text FROM (${NEWEST_HEAD}) h) AS journal_seq`,
);
const READ_CHANGES = sql(
  'read_archive_changes',
  `SELECT c.id FROM archive_change c LEFT JOIN outcome o ON o.token_id = c.token_id LEFT JOIN market m ON m.id = o.market_id
   WHERE c.kind = $1 AND c.date = $3::date AND coalesce(c.venue, m.venue) = $2`,
);

/** Writes the rows of a day to `target` as CSV, and returns their summary of the same snapshot. Ends `target`. */
export function copyDay(
  db: Database,
  day: ArchiveDay,
  target: () => Writable,
  signal: AbortSignal,
  trades: TradeTable = 'trade',
): Promise<DaySummary> {
  return db.transaction(async (tx) => {
    await tx.query(ISOLATE);
    const [place] = await tx.query<Pick<DaySummary, 'snapshot' | 'journalSeq'>>(READ_PLACE);
    const changes = await readChanges(tx, day);
    const witness = await readWitness(tx, day);
    const tokenIds = trades === 'trade' ? [] : await readCorrected(tx, day);
    if (place === undefined) throw new OddswireError('no_archive_summary', 'Postgres returned no place of the day');
    const rows = new CsvRows(fileColumns(day.kind), TIME_COLUMN[day.kind]);
    await copyRows(tx, copySql(day, trades), [summing(rows), target()], signal);
    return { ...rows.end(), ...place, changes, witness, tokenIds };
  });
}

/** Sends the answer of a COPY through the streams, and returns the number of its rows as Postgres states it. */
export async function copyRows(
  tx: Tx,
  statement: string,
  streams: [...Transform[], Writable],
  signal?: AbortSignal,
): Promise<number> {
  const client: PoolClient | undefined = await tx.em.queryRunner?.connect();
  if (client === undefined) throw new OddswireError('no_query_runner', 'a transaction has no connection');
  const rows = client.query(copyTo(statement));
  try {
    await pipeline([rows, ...streams], signal === undefined ? {} : { signal });
    return rows.rowCount;
  } catch (error) {
    // The rest of the answer has no reader: Postgres and the roll-back behind it would wait without end.
    connectionOf(client).stream.destroy();
    throw error;
  }
}

/** Sums up the rows that Postgres sends, between it and the disk. */
function summing(rows: CsvRows): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        rows.add(chunk);
        done(null, chunk);
      } catch (error) {
        done(asError(error));
      }
    },
  });
}

/** The summary of a day alone. */
export function summarizeDay(db: Database, day: ArchiveDay, signal: AbortSignal): Promise<DaySummary> {
  return copyDay(db, day, () => new Writable({ write: (_chunk, _encoding, done) => done() }), signal);
}

const DAY_OF = (date: string) =>
  `c.ts >= ${date}::date::timestamp AT TIME ZONE 'UTC' AND c.ts < (${date}::date + 1)::timestamp AT TIME ZONE 'UTC'`;
const READ_CORRECTED = sql(
  'read_corrected_tokens',
  `SELECT DISTINCT c.token_id FROM archive_correction c JOIN outcome o ON o.token_id = c.token_id JOIN market m ON m.id = o.market_id
   WHERE m.venue = $1 AND ${DAY_OF('$2')}`,
);
/** A market that was stored after the snapshot has rows that were not copied. */
const DELETE_CORRECTIONS = sql(
  'delete_archive_corrections',
  `DELETE FROM archive_correction c
   WHERE c.token_id = ANY ($1::bigint[]) AND ${DAY_OF('$2')} AND pg_visible_in_snapshot(c.xid, $3::pg_snapshot)`,
);

async function readCorrected(db: Queryable, { venue, date }: ArchiveDay): Promise<bigint[]> {
  return (await db.query<{ tokenId: bigint }>(READ_CORRECTED, [venue, date])).map(({ tokenId }) => tokenId);
}

/** Removes the corrections of a day that were copied. */
export async function deleteCorrections(
  tx: Queryable,
  { date }: ArchiveDay,
  { tokenIds, snapshot }: Pick<DaySummary, 'tokenIds' | 'snapshot'>,
): Promise<void> {
  await tx.query(DELETE_CORRECTIONS, [tokenIds, date, snapshot]);
}

/** The driver has no call that ends a connection in the middle of an answer. */
function connectionOf(client: PoolClient): { stream: Socket } {
  return (client as unknown as { connection: { stream: Socket } }).connection;
}

async function readChanges(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<bigint[]> {
  const rows = await db.query<{ id: bigint }>(READ_CHANGES, [kind, venue, date]);
  return rows.map(({ id }) => id);
}

/** The hours of a venue sum up its markets. */
const READ_WITNESS = sql(
  'read_day_witness',
  `SELECT EXISTS (SELECT FROM coverage_settled s WHERE s.venue = $1 AND s.kind = 'trades') AS has_totals,
     (SELECT unit FROM venue_completeness WHERE venue = $1) AS unit, trim_scale(coalesce(sum(c.stored), 0))::text AS stored,
     CASE WHEN count(c.total) = 24 THEN trim_scale(sum(c.total))::text END AS total, trim_scale(coalesce(sum(c.missing), 0))::text AS missing,
     (count(*) FILTER (WHERE c.class = 'complete'))::int AS complete, (count(*) FILTER (WHERE c.class = 'quiet'))::int AS quiet,
     (count(*) FILTER (WHERE c.class = 'gap'))::int AS gap, (count(*) FILTER (WHERE c.class = 'unknown'))::int AS unknown
   FROM coverage c
   WHERE c.venue = $1 AND c.kind = 'trades' AND c.market_id = 0 AND c.checked_at IS NOT NULL
     AND c.hour >= $2::date::timestamp AT TIME ZONE 'UTC' AND c.hour < ($2::date::timestamp AT TIME ZONE 'UTC') + interval '24 hours'`,
);

type WitnessRow = Omit<DayWitness, 'hours'> & Omit<DayWitness['hours'], 'open'> & { hasTotals: boolean };

/** The venue's totals of a day of trades, or the reason why there are none. */
async function readWitness(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<DaySummary['witness']> {
  if (kind !== 'trades') return { reason: 'not_trades' };
  const [row] = await db.query<WitnessRow>(READ_WITNESS, [venue, date]);
  if (!row?.hasTotals) return { reason: 'no_total' };
  const { unit, stored, total, missing, complete, quiet, gap, unknown } = row;
  const judged = complete + quiet + gap + unknown;
  if (judged === 0) return { reason: 'not_settled' };
  return { unit, stored, total, missing, hours: { complete, quiet, gap, unknown, open: 24 - judged } };
}
