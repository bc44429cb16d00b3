import type { ArchiveDay, ArchiveFile } from '../../domain/archive/file.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind } from '../../domain/archive/kinds.ts';
import { listPartitions, type Partition, type PartitionedTable, readSeam, seamOf } from '../db/partitions.ts';
import { type Database, type Queryable, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import type { DaySummary } from './copy.ts';

/** The catalog knows the changes of a kind from this transaction on: an earlier one may write rows without a note. */
const SWITCH_ON = sql(
  'switch_archive_on',
  `INSERT INTO archive_switch (kind, xid) SELECT kind, pg_current_xact_id() FROM unnest($1::text[]) AS k (kind)
   WHERE kind NOT IN (SELECT kind FROM archive_switch) ON CONFLICT DO NOTHING`,
);
/** Earlier transactions may still run. */
const READ_SWITCHED = sql(
  'read_switched_archive',
  `SELECT kind FROM archive_switch WHERE kind = ANY ($1::text[]) AND xid < pg_snapshot_xmin(pg_current_snapshot())`,
);

/** Switches the notes of late changes on. Returns the kinds whose changes are noted by every running transaction. */
export async function switchArchiveOn(db: Queryable, kinds: readonly ArchiveKind[]): Promise<ArchiveKind[]> {
  await db.query(SWITCH_ON, [kinds]);
  const rows = await db.query<{ kind: ArchiveKind }>(READ_SWITCHED, [kinds]);
  return ARCHIVE_KIND_NAMES.filter((kind) => rows.some((row) => row.kind === kind));
}

const KEEP_DAYS = sql(
  'set_archive_keep_days',
  'UPDATE archive_switch SET keep_days = $2 WHERE kind = $1 AND keep_days IS DISTINCT FROM $2::int',
);

/** The days for which Postgres keeps the archived rows of a kind, which decide about the length of new partitions; null: its retention. */
export async function setKeepDays(db: Queryable, kind: ArchiveKind, days: number | null): Promise<void> {
  await db.query(KEEP_DAYS, [kind, days]);
}

/** The first UTC day of a venue: of its first 1d candle for trades and candles, of its first settled hour for coverage, else the day of its first outcome. */
const FIRST_DAY = `CASE WHEN a.kind IN ('trades', 'candles') THEN (
     SELECT (to_timestamp(min(c.bucket)) AT TIME ZONE 'UTC')::date
     FROM market m JOIN outcome o ON o.market_id = m.id CROSS JOIN LATERAL (
       SELECT bucket FROM candle c WHERE c.token_id = o.token_id AND c.interval_seconds = 86400 ORDER BY bucket LIMIT 1) c
     WHERE m.venue = a.venue)
   WHEN a.kind = 'coverage' THEN (
     SELECT (min(s.since) AT TIME ZONE 'UTC')::date FROM coverage_settled s WHERE s.venue = a.venue)
   ELSE (
     SELECT (min(t.created_at) AT TIME ZONE 'UTC')::date
     FROM token t LEFT JOIN outcome o ON o.token_id = t.id LEFT JOIN market m ON m.id = o.market_id
     WHERE m.venue = a.venue OR a.venue = 'solana' AND o.token_id IS NULL) END`;

/** A day is over for the archive this long after its end: $3 hours. A day that changed waits an hour for further changes. */
const READ_DUE = sql(
  'read_due_archive_days',
  `WITH asked AS MATERIALIZED (SELECT kind, venue, (from_at AT TIME ZONE 'UTC')::date AS from_day
     FROM unnest($1::text[], $2::text[], $4::timestamptz[]) AS a (kind, venue, from_at)),
   last AS MATERIALIZED (SELECT ((clock_timestamp() - $3 * interval '1 hour') AT TIME ZONE 'UTC')::date - 1 AS day),
   begun AS MATERIALIZED (
     SELECT a.kind, a.venue, a.from_day,
       coalesce((SELECT min(f.date) FROM archive_file f WHERE f.kind = a.kind AND f.venue = a.venue), ${FIRST_DAY}) AS day FROM asked a),
   first AS (SELECT kind, venue, greatest(day, from_day) AS day FROM begun WHERE day IS NOT NULL),
   missing AS (
     SELECT f.kind, f.venue, d.day::date AS date FROM first f CROSS JOIN last
     CROSS JOIN LATERAL generate_series(f.day::timestamp, last.day::timestamp, interval '1 day') AS d (day)
     WHERE isfinite(f.day) AND NOT EXISTS (
       SELECT FROM archive_file a WHERE a.kind = f.kind AND a.venue = f.venue AND a.date = d.day::date AND a.superseded_at IS NULL)),
   changed AS (
     SELECT DISTINCT c.kind, a.venue, c.date FROM archive_change c LEFT JOIN outcome o ON o.token_id = c.token_id
     LEFT JOIN market m ON m.id = o.market_id JOIN asked a ON a.kind = c.kind AND a.venue = coalesce(c.venue, m.venue) CROSS JOIN last
     LEFT JOIN archive_file f ON f.kind = c.kind AND f.venue = a.venue AND f.date = c.date AND f.superseded_at IS NULL
     WHERE c.date <= last.day AND (f.made_at IS NULL OR f.made_at < clock_timestamp() - interval '1 hour')),
   unfolded AS MATERIALIZED (
     SELECT DISTINCT m.venue, (to_timestamp(f.detail) AT TIME ZONE 'UTC')::date AS date
     FROM (SELECT key, detail FROM mark WHERE stage = 'fold-candles'
           UNION ALL SELECT key, detail FROM parked_mark WHERE stage = 'fold-candles') f
     JOIN outcome o ON o.token_id = f.key JOIN market m ON m.id = o.market_id
     WHERE EXISTS (SELECT FROM asked WHERE kind IN ('trades', 'candles'))),
   undropped AS (
     SELECT f.kind, f.venue, f.date FROM asked a JOIN archive_file f ON f.kind = a.kind AND f.venue = a.venue
     WHERE a.kind = 'candles' AND f.superseded_at IS NULL AND f.file IS NOT NULL AND f.dropped_at IS NULL
       AND f.date < (${seamOf('candles')} AT TIME ZONE 'UTC')::date)
   SELECT kind, venue, date::text AS date FROM (SELECT * FROM missing UNION SELECT * FROM changed UNION SELECT * FROM undropped) d
   WHERE kind NOT IN ('trades', 'candles') OR NOT EXISTS (SELECT FROM unfolded u WHERE u.venue = d.venue AND u.date = d.date)
   ORDER BY date, kind, venue LIMIT $5`,
);

interface DueOptions {
  pairs: readonly { kind: ArchiveKind; venue: string }[];
  /** A day is over for the archive this long after its end. */
  afterHours: number;
  limit: number;
}

/** Rows of earlier days are gone with their partitions, so that nothing says whether such a day was empty. */
export const TABLES: Partial<Record<ArchiveKind, PartitionedTable>> = {
  trades: 'trade',
  prices: 'price_history',
  books: 'book_history',
};

/** Days that are over and have no file of their present rows, or whose candles Postgres has to drop, oldest first. */
export async function readDueDays(db: Queryable, { pairs, afterHours, limit }: DueOptions): Promise<ArchiveDay[]> {
  const fromOf = new Map<ArchiveKind, string>();
  for (const kind of new Set(pairs.map((pair) => pair.kind))) {
    const table = TABLES[kind];
    const [oldest] = table === undefined ? [] : await listPartitions(db, table);
    // A table without a partition has no rows. Of days before the seam only those that changed are due.
    const fromMs = oldest && Math.max(oldest.fromMs, (await readSeam(db, kind)) ?? oldest.fromMs);
    if (fromMs !== undefined) fromOf.set(kind, new Date(fromMs).toISOString());
    else fromOf.set(kind, table === undefined ? '-infinity' : 'infinity');
  }
  return db.query<ArchiveDay>(READ_DUE, [
    pairs.map(({ kind }) => kind),
    pairs.map(({ venue }) => venue),
    afterHours,
    pairs.map(({ kind }) => fromOf.get(kind)),
    limit,
  ]);
}

/** Trades of the day that are not in their candles yet, or whose fold failed. */
const READ_UNFOLDED = sql(
  'read_unfolded_day',
  `SELECT EXISTS (
     SELECT FROM (SELECT key, detail FROM mark WHERE stage = 'fold-candles'
                  UNION ALL SELECT key, detail FROM parked_mark WHERE stage = 'fold-candles') f
     JOIN outcome o ON o.token_id = f.key JOIN market m ON m.id = o.market_id
     WHERE m.venue = $1 AND f.detail >= extract(epoch FROM $2::date) AND f.detail < extract(epoch FROM $2::date) + 86400) AS is_unfolded`,
);

/** Whether candles of the day still wait for trades. */
export async function isUnfolded(db: Queryable, { venue, date }: ArchiveDay): Promise<boolean> {
  const [row] = await db.query<{ isUnfolded: boolean }>(READ_UNFOLDED, [venue, date]);
  return row?.isUnfolded ?? false;
}

const FILE_COLUMNS = `kind, venue, date::text AS date, revision, file, rows::float8 AS rows, in_effect::float8 AS in_effect, bytes::float8 AS bytes,
  sha256, checksum, schema_version, start_at AS start, end_at AS "end", snapshot, journal_seq::text AS journal_seq, witness, made_at, stored_in`;

const READ_PRESENT = sql(
  'read_present_archive_file',
  `SELECT ${FILE_COLUMNS} FROM archive_file WHERE kind = $1 AND venue = $2 AND date = $3::date AND superseded_at IS NULL`,
);

/** The present file of a day; undefined for a day that is not in the catalog. */
export async function readPresentFile(
  db: Queryable,
  { kind, venue, date }: ArchiveDay,
): Promise<ArchiveFile | undefined> {
  const [row] = await db.query<ArchiveFile>(READ_PRESENT, [kind, venue, date]);
  return row;
}

const DELETE_CHANGES = sql('delete_archive_changes', 'DELETE FROM archive_change WHERE id = ANY ($1::bigint[])');
const SUPERSEDE = sql(
  'supersede_archive_file',
  `UPDATE archive_file SET superseded_at = clock_timestamp()
   WHERE kind = $1 AND venue = $2 AND date = $3::date AND superseded_at IS NULL AND revision < $4`,
);
const INSERT_FILE = sql(
  'insert_archive_file',
  `INSERT INTO archive_file (kind, venue, date, revision, file, rows, in_effect, bytes, sha256, checksum, schema_version, start_at, end_at,
     snapshot, journal_seq, witness, stored_in, made_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, to_timestamp($12::float8 / 1000), to_timestamp($13::float8 / 1000), $14, $15, $16, $17,
     clock_timestamp()) ON CONFLICT DO NOTHING RETURNING ${FILE_COLUMNS}`,
);

const LOCK_DAY = sql('lock_archive_day', 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))');

/** Does some work while no other process adds, describes or repairs a file of the day. It must end within seconds. */
export function lockingDay<T>(
  db: Database,
  { kind, venue, date }: ArchiveDay,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(LOCK_DAY, [`archive ${kind} ${venue} ${date}`]);
    return work(tx);
  });
}

/** A finished file, which the object store of the address `storedIn` has. */
interface MadeFile {
  readonly day: ArchiveDay;
  readonly revision: number;
  readonly file: string | null;
  readonly bytes: number;
  readonly sha256: string | null;
  readonly schemaVersion: number;
  readonly storedIn: string | null;
  /** Moves it to its folder. */
  place(): Promise<void>;
}

const LOCK_SEAM = sql(
  'lock_archive_seam',
  `SELECT until > $2::date::timestamp AT TIME ZONE 'UTC' AS is_behind FROM archive_seam WHERE kind = $1 FOR SHARE`,
);

/**
 * Moves a file to its place, adds it to the catalog and removes the changes that it contains: from then on it counts. Undefined when another
 * process was first, or when Postgres dropped the rows of the day meanwhile; then the file is not moved. `merged`, for a file with the rows of the former one and corrections, finishes them.
 */
export function addFile(
  db: Database,
  made: MadeFile,
  summary: DaySummary,
  merged?: (tx: Tx) => Promise<void>,
): Promise<ArchiveFile | undefined> {
  const { kind, venue, date } = made.day;
  return lockingDay(db, made.day, async (tx) => {
    const [seam] = await tx.query<{ isBehind: boolean }>(LOCK_SEAM, [kind, date]);
    if (merged === undefined && seam?.isBehind) return undefined;
    await tx.query(SUPERSEDE, [kind, venue, date, made.revision]);
    const [added] = await tx.query<ArchiveFile>(INSERT_FILE, [
      ...[kind, venue, date, made.revision, made.file, summary.rows, summary.inEffect, made.bytes, made.sha256],
      ...[summary.checksum, made.schemaVersion, summary.startMs, summary.endMs, summary.snapshot, summary.journalSeq],
      ...[JSON.stringify(summary.witness), made.file === null ? null : made.storedIn],
    ]);
    if (added === undefined) return undefined;
    await tx.query(DELETE_CHANGES, [summary.changes]);
    await merged?.(tx);
    // At the end: engines read the rows of the day twice while two files lie in its folder.
    await made.place();
    return added;
  });
}

/** Removes changes that turned out to leave the rows of their day as they are in its file. */
export async function dropChanges(db: Queryable, { changes }: Pick<DaySummary, 'changes'>): Promise<void> {
  if (changes.length > 0) await db.query(DELETE_CHANGES, [changes]);
}

/** The first revision of a day without rows has no folder. */
const READ_UNDESCRIBED = sql(
  'read_undescribed_files',
  `SELECT kind, venue, date::text AS date FROM archive_file
   WHERE (described_at IS NULL AND (file IS NOT NULL OR revision > 1) OR file IS NOT NULL AND $2::text <> coalesce(stored_in, ''))
     AND superseded_at IS NULL ORDER BY made_at LIMIT $1`,
);
const SET_DESCRIBED = sql(
  'set_archive_described',
  `UPDATE archive_file SET described_at = clock_timestamp()
   WHERE kind = $1 AND venue = $2 AND date = $3::date AND described_at IS NULL AND revision <= $4`,
);
const SET_STORED = sql(
  'set_archive_stored',
  'UPDATE archive_file SET stored_in = $5 WHERE kind = $1 AND venue = $2 AND date = $3::date AND revision = $4 AND file IS NOT NULL',
);
/**
 * Days whose folder may differ from the catalog, because a process died before it described them, and days whose file is not in the object
 * store of this address.
 */
export function readUndescribedDays(
  db: Queryable,
  limit: number,
  storeUrl: string | null = null,
): Promise<ArchiveDay[]> {
  return db.query<ArchiveDay>(READ_UNDESCRIBED, [limit, storeUrl]);
}

/**
 * Describes a day with its present file, also in the object store of an address. One process at a time does, so that the last one has the
 * last revision.
 */
export function describing(
  db: Database,
  day: ArchiveDay,
  storeUrl: string | null,
  describe: (present: ArchiveFile) => Promise<void>,
): Promise<void> {
  const { kind, venue, date } = day;
  return lockingDay(db, day, async (tx) => {
    const present = await readPresentFile(tx, day);
    if (present === undefined) return;
    await describe(present);
    await tx.query(SET_DESCRIBED, [kind, venue, date, present.revision]);
    if (storeUrl !== null) await tx.query(SET_STORED, [kind, venue, date, present.revision, storeUrl]);
  });
}

const READ_SUPERSEDED = sql(
  'read_superseded_files',
  `SELECT ${FILE_COLUMNS} FROM archive_file
   WHERE superseded_at < clock_timestamp() - $1 * interval '1 hour' AND file IS NOT NULL ORDER BY superseded_at LIMIT $2`,
);
const FORGET_FILE = sql(
  'forget_archive_file',
  `UPDATE archive_file SET file = NULL WHERE kind = $1 AND venue = $2 AND date = $3::date AND revision = $4`,
);

/** Files of former revisions that nobody needs to find any more. */
export function readSuperseded(db: Queryable, keptHours: number, limit: number): Promise<ArchiveFile[]> {
  return db.query<ArchiveFile>(READ_SUPERSEDED, [keptHours, limit]);
}

/** The file of a former revision is gone; its row stays. */
export async function noteRemoved(
  db: Queryable,
  { kind, venue, date, revision }: ArchiveDay & Pick<ArchiveFile, 'revision'>,
): Promise<void> {
  await db.query(FORGET_FILE, [kind, venue, date, revision]);
}

/** Days of venues with more rows than their file, or without one. A history of a token without a market is in the files of Solana. */
const lackingSql = (partition: string, kind: ArchiveKind) => {
  const isTrades = kind === 'trades';
  // Retention carries rows to the first moment of a partition of history; each file begins with the same values.
  const [column, first] = isTrades ? ['ts', '>='] : ['received_at', '>'];
  return sqlPlannedPerCall(
    'count_partition_rows',
    `SELECT EXISTS (
       SELECT FROM (
         SELECT coalesce(m.venue, ${isTrades ? 'NULL' : `'solana'`}) AS venue, (r.${column} AT TIME ZONE 'UTC')::date AS date, count(*) AS rows
         FROM ${partition} r LEFT JOIN outcome o ON o.token_id = r.token_id LEFT JOIN market m ON m.id = o.market_id
         WHERE r.${column} ${first} $2 GROUP BY 1, 2) s
       LEFT JOIN archive_file f ON f.kind = $1 AND f.venue = s.venue AND f.date = s.date AND f.superseded_at IS NULL
       WHERE f.rows IS NULL OR f.rows - f.in_effect < s.rows) AS is_lacking`,
  );
};
const hasRowsSql = (partition: string) =>
  sqlPlannedPerCall('has_partition_rows', `SELECT EXISTS (SELECT FROM ${partition}) AS has_rows`);

/** Work that reads or writes the trades of a time in Postgres: folds, and two passes over all trades. */
const IS_NAMED = sql(
  'is_partition_named',
  `SELECT EXISTS (SELECT FROM archive_change c WHERE c.kind = $1 AND c.date >= ($2::timestamptz AT TIME ZONE 'UTC')::date
       AND c.date < ($3::timestamptz AT TIME ZONE 'UTC')::date)
     OR $1 = 'trades' AND (
       EXISTS (SELECT FROM (SELECT detail FROM mark WHERE stage = 'fold-candles'
                            UNION ALL SELECT detail FROM parked_mark WHERE stage = 'fold-candles') f
               WHERE f.detail < extract(epoch FROM $3::timestamptz))
       OR EXISTS (SELECT FROM candle_refold WHERE finished_at IS NULL)
       OR EXISTS (SELECT FROM trade_reread WHERE ended_at IS NULL AND since_at < $3::timestamptz)) AS is_named`,
);

const isoOf = (ms: number) => new Date(ms).toISOString();

/** Whether the files of each venue have every row of a partition, no day of it changed since, and no work names it. */
export async function isPartitionArchived(db: Queryable, kind: ArchiveKind, partition: Partition): Promise<boolean> {
  if (!(await isPartitionUnchanged(db, kind, partition))) return false;
  const [found] = await db.query<{ isLacking: boolean }>(lackingSql(partition.name, kind), [
    kind,
    isoOf(partition.fromMs),
  ]);
  return found?.isLacking === false;
}

/**
 * Whether no day of a partition changed since its file was made, and no work names it: every write into the past leaves a note. A process of the
 * former release makes empty partitions before the seam.
 */
export async function isPartitionUnchanged(db: Queryable, kind: ArchiveKind, partition: Partition): Promise<boolean> {
  const seamMs = await readSeam(db, kind);
  if (seamMs !== undefined && partition.untilMs <= seamMs) {
    const [stored] = await db.query<{ hasRows: boolean }>(hasRowsSql(partition.name));
    if (stored?.hasRows === false) return true;
  }
  const [named] = await db.query<{ isNamed: boolean }>(IS_NAMED, [
    kind,
    isoOf(partition.fromMs),
    isoOf(partition.untilMs),
  ]);
  return named?.isNamed === false;
}
