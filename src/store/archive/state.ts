import type { ArchiveDay } from '../../domain/archive/file.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind } from '../../domain/archive/kinds.ts';
import { VENUE_NAMES, VENUES, type VenueName } from '../../domain/markets/venue.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** The facts that decide whether this database may write into a folder. */
export interface ArchiveOwner {
  /** The identity of the database: a standby that takes over keeps it, a restored dump has another one. */
  readonly id: string;
  /** Whether the catalog has files. */
  readonly hasFiles: boolean;
  /** Whether a present file among them is not in the object store. */
  readonly hasUnstored: boolean;
  readonly clock: Date;
}

const READ_OWNER = sql(
  'read_archive_owner',
  `SELECT (SELECT system_identifier FROM pg_control_system()) || '.' || oid AS id,
     EXISTS (SELECT FROM archive_file WHERE file IS NOT NULL) AS has_files, clock_timestamp() AS clock,
     EXISTS (SELECT FROM archive_file WHERE file IS NOT NULL AND superseded_at IS NULL AND stored_in IS DISTINCT FROM $1) AS has_unstored
   FROM pg_database WHERE datname = current_database()`,
);

/** The identity of this database, with its time. `storeUrl`: the address of its object store. */
export async function readOwner(db: Queryable, storeUrl: string | null): Promise<ArchiveOwner | undefined> {
  const [owner] = await db.query<ArchiveOwner>(READ_OWNER, [storeUrl]);
  return owner;
}

/** A failure of the archive. Without a kind and a venue it is one of the folder. */
export interface ArchiveFailure {
  readonly kind: ArchiveKind | '';
  readonly venue: string;
  readonly date: string | null;
  readonly code: string;
  readonly message: string;
  readonly failures: number;
  readonly since: Date;
  readonly at: Date;
}

const MAX_MESSAGE = 500;
const NOTE = sql(
  'note_archive_failure',
  `INSERT INTO archive_failure AS f (kind, venue, date, code, message) VALUES ($1, $2, $3::date, $4, $5)
   ON CONFLICT (kind, venue) DO UPDATE SET date = excluded.date, code = excluded.code, message = excluded.message,
     failures = f.failures + 1, at = excluded.at`,
);
const CLEAR = sql('clear_archive_failure', 'DELETE FROM archive_failure WHERE kind = $1 AND venue = $2');

/** Keeps the failure of a day, or of the folder, until one succeeds. */
export async function noteFailure(db: Queryable, day: ArchiveDay | null, error: Error): Promise<void> {
  const { code } = error as { code?: unknown };
  const message = scrubText(error.message).slice(0, MAX_MESSAGE);
  const known = typeof code === 'string' ? code : 'error';
  await db.query(NOTE, [day?.kind ?? '', day?.venue ?? '', day?.date ?? null, known, message]);
}

export async function clearFailure(db: Queryable, day: ArchiveDay | null): Promise<void> {
  await db.query(CLEAR, [day?.kind ?? '', day?.venue ?? '']);
}

/** The state of a kind, as operators see it. */
export interface ArchiveKindState {
  readonly kind: ArchiveKind;
  /** The last archived day of the venue that is the furthest behind, and the venue. */
  readonly last: string;
  readonly venue: string;
}

const LAST = sql(
  'read_last_archive_days',
  `SELECT DISTINCT ON (kind) kind, venue, last::text AS last FROM (
     SELECT kind, venue, max(date) AS last FROM archive_file WHERE superseded_at IS NULL GROUP BY kind, venue) f
   ORDER BY kind, f.last, venue`,
);
const FAILURES = sql(
  'read_archive_failures',
  `SELECT kind, venue, date::text AS date, code, message, failures, since, at FROM archive_failure ORDER BY since, kind, venue`,
);

/** The last archived day of each kind, and the failures. */
export async function readArchiveState(
  db: Queryable,
): Promise<{ kinds: ArchiveKindState[]; failures: ArchiveFailure[] }> {
  return { kinds: await db.query<ArchiveKindState>(LAST), failures: await db.query<ArchiveFailure>(FAILURES) };
}

/** The kinds that a venue has. */
function kindsOf(venue: VenueName): ArchiveKind[] {
  const { markets, trades, prices, books, tokens } = VENUES[venue].capabilities;
  const has = {
    trades,
    candles: trades,
    prices: prices || tokens,
    books,
    markets,
    resolutions: markets,
    coverage: true,
  };
  return ARCHIVE_KIND_NAMES.filter((kind) => has[kind]);
}

/** The kinds of all venues, also of those that are disabled by now. */
export function archivedPairs(kinds: readonly ArchiveKind[]): { kind: ArchiveKind; venue: VenueName }[] {
  return VENUE_NAMES.flatMap((venue) =>
    kindsOf(venue)
      .filter((kind) => kinds.includes(kind))
      .map((kind) => ({ kind, venue })),
  );
}
