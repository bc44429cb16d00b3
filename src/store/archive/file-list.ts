import type { ArchiveFile } from '../../domain/archive/file.ts';
import type { ArchiveKind } from '../../domain/archive/kinds.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A file or an empty day, as readers of the archive see it. */
export type ListedFile = Omit<ArchiveFile, 'snapshot' | 'journalSeq' | 'witness' | 'storedIn'>;

/** The day behind which a page of the list begins. */
interface FilePlace {
  readonly kind: string;
  readonly venue: string;
  readonly date: string;
}

interface FileFilter {
  readonly kinds?: readonly ArchiveKind[] | undefined;
  readonly venues?: readonly string[] | undefined;
  /** First and last UTC day, `YYYY-MM-DD`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

type ListedRow = Omit<ListedFile, 'rows' | 'inEffect' | 'bytes'> & { rows: bigint; inEffect: bigint; bytes: bigint };

const LIST = sql(
  'list_archive_files',
  `SELECT kind, venue, date::text AS date, revision, file, rows, in_effect, bytes,
     sha256, checksum, schema_version, start_at AS start, end_at AS "end", made_at
   FROM archive_file
   WHERE superseded_at IS NULL AND ($1::text[] IS NULL OR kind = ANY ($1)) AND ($2::text[] IS NULL OR venue = ANY ($2))
     AND ($3::date IS NULL OR date >= $3) AND ($4::date IS NULL OR date <= $4)
     AND ($5::text IS NULL OR (kind, venue, date) > ($5, $6::text, $7::date))
   ORDER BY kind, venue, date LIMIT $8`,
);

/** The present files and the empty days, by kind, venue and day. `next` is set when more follow. */
export async function listFiles(
  db: Queryable,
  { kinds, venues, from, to }: FileFilter,
  { limit, after }: { limit: number; after?: FilePlace | undefined },
): Promise<{ files: ListedFile[]; next?: FilePlace }> {
  const rows = await db.query<ListedRow>(LIST, [
    kinds ?? null,
    venues ?? null,
    from ?? null,
    to ?? null,
    after?.kind ?? null,
    after?.venue ?? null,
    after?.date ?? null,
    limit + 1,
  ]);
  const files = rows.slice(0, limit).map((row) => ({
    ...row,
    rows: Number(row.rows),
    inEffect: Number(row.inEffect),
    bytes: Number(row.bytes),
  }));
  const last = files.at(-1);
  if (rows.length <= limit || !last) return { files };
  return { files, next: { kind: last.kind, venue: last.venue, date: last.date } };
}

/** The facts of a file that its download needs. */
export interface CatalogFile {
  readonly kind: ArchiveKind;
  readonly venue: string;
  readonly date: string;
  readonly file: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  /** Whether the day has a later revision: then the file may be removed. */
  readonly isSuperseded: boolean;
}

/** The facts of a `CatalogFile` and the version of its schema, of `archive_file f`. */
const FACTS = {
  kind: 'f.kind',
  venue: 'f.venue',
  date: 'f.date::text',
  file: 'f.file',
  bytes: 'f.bytes::float8',
  sha256: 'f.sha256',
  schemaVersion: 'f.schema_version',
  isSuperseded: 'f.superseded_at IS NOT NULL',
} as const;

/** SQL of these facts as columns. */
export const CATALOG_FILE = Object.entries(FACTS)
  .map(([name, value]) => `${value} AS "${name}"`)
  .join(', ');
/** SQL of them as the arguments of `json_build_object`. */
export const CATALOG_FILE_JSON = Object.entries(FACTS)
  .map(([name, value]) => `'${name}', ${value}`)
  .join(', ');

const FIND = sql('find_archive_file', `SELECT ${CATALOG_FILE} FROM archive_file f WHERE f.file = $1`);

/** The file of this name in the catalog, or null. */
export async function findFile(db: Queryable, name: string): Promise<CatalogFile | null> {
  const [row] = await db.query<CatalogFile>(FIND, [name]);
  return row ?? null;
}
