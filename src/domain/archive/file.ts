import type { ArchiveKind } from './kinds.ts';

/** A day of a venue: the unit of the archive. `date` is a UTC day, `YYYY-MM-DD`. */
export interface ArchiveDay {
  readonly kind: ArchiveKind;
  readonly venue: string;
  readonly date: string;
}

/** The venue's totals of a day of trades, as the coverage of its hours had them when the file was made. Volumes are decimals as text. */
export interface DayWitness {
  /** Of the venue's totals; null before it is measured. */
  readonly unit: string | null;
  readonly stored: string;
  /** Null when the totals of an hour prove no bound. */
  readonly total: string | null;
  readonly missing: string;
  /** Hours by their class; `open` ones are not judged. */
  readonly hours: Readonly<Record<'complete' | 'quiet' | 'gap' | 'unknown' | 'open', number>>;
}

/** Why a file has no totals: of another kind, of a venue that states none, of a day before the coverage, or of a former release. */
type NoWitnessReason = 'not_trades' | 'no_total' | 'not_settled' | 'not_recorded';

/** A file of the archive, as the catalog and the manifest describe it. */
export interface ArchiveFile extends ArchiveDay {
  /** Counts from 1 for each day: a day whose rows changed has a file of a later revision. */
  readonly revision: number;
  /** The name of the file; null for a day without rows. */
  readonly file: string | null;
  readonly rows: number;
  /** Rows among them that hold the value in effect at the start of the day. */
  readonly inEffect: number;
  readonly bytes: number;
  /** Hexadecimal, of the bytes of the file; null without a file. */
  readonly sha256: string | null;
  /** The sum of the digests of all rows: see `RowSum`. */
  readonly checksum: string;
  readonly schemaVersion: number;
  /** The first and the last time of its rows; null without rows. */
  readonly start: Date | null;
  readonly end: Date | null;
  /** The snapshot of Postgres from which the file was made: `pg_current_snapshot()`. */
  readonly snapshot: string;
  /** The last change in the journal at that moment; null before the first one. */
  readonly journalSeq: string | null;
  /** Null: the process of a former release made the file. */
  readonly witness: DayWitness | { readonly reason: NoWitnessReason } | null;
  readonly madeAt: Date;
  /** The address of the object store that has the file; null without one. */
  readonly storedIn: string | null;
}

/** The folder of a day, relative to the archive, with `/`. */
export function folderOf({ kind, venue, date }: ArchiveDay): string {
  return `${kind}/venue=${venue}/date=${date}`;
}

/** The place of a file of a former revision, relative to the archive. Engines skip a folder whose name begins with a point. */
export function formerPlaceOf(file: string): string {
  return `.former/${file}`;
}

/** The name of a file: unique in the archive, because it contains the digest of its bytes. */
export function fileName(day: ArchiveDay, revision: number, sha256: string): string {
  return `${day.kind}-${day.venue}-${day.date}-r${revision}-${sha256.slice(0, 12)}.parquet`;
}

const NAME = /^([a-z]+)-([a-z]+)-(\d{4}-\d\d-\d\d)-r(\d+)-([0-9a-f]{12})\.parquet$/;

/** Whether a name has the form of a file of the archive. */
export function isFileName(name: string): boolean {
  return NAME.test(name);
}
