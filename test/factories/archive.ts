import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ArchiveDay, fileName, folderOf } from '../../src/domain/archive/file.ts';
import { type Queryable, sql } from '../../src/store/db/tx.ts';

const INSERT = sql(
  'test_archive_file',
  `INSERT INTO archive_file (kind, venue, date, revision, file, rows, in_effect, bytes, sha256, checksum, schema_version, start_at, end_at,
     snapshot, made_at)
   VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, '42', 1, $3::date + interval '1 hour', $3::date + interval '2 hours', '1:1:', now())`,
);
const INSERT_EMPTY = sql(
  'test_archive_empty_day',
  `INSERT INTO archive_file (kind, venue, date, revision, rows, in_effect, bytes, checksum, schema_version, snapshot, made_at)
   VALUES ($1, $2, $3, 1, 0, 0, 0, '0', 1, '1:1:', now())`,
);
const SUPERSEDE = sql(
  'test_archive_supersede',
  'UPDATE archive_file SET superseded_at = now() WHERE kind = $1 AND venue = $2 AND date = $3 AND superseded_at IS NULL',
);

/** An empty folder for an archive, and its removal. */
export async function anArchiveFolder(): Promise<{ dir: string; remove(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-archive-'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** Random bytes with the end of a file of Parquet, as far as a reader of the schema version looks at it. */
export function archiveContent(size: number, schemaVersion = 1): Buffer {
  const version = String(schemaVersion);
  const metadata = Buffer.from(`\x18\x0foddswire_schema\x18${String.fromCharCode(version.length)}${version}\0`);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(metadata.length);
  const end = Buffer.concat([metadata, length, Buffer.from('PAR1')]);
  return Buffer.concat([randomBytes(size - end.length), end]);
}

export interface TestFile extends ArchiveDay {
  file: string;
  sha256: string;
  content: Buffer;
  path: string;
}

/** A file in the folder and in the catalog. Its bytes are random before the end, because only their digest counts. */
export async function anArchivedDay(
  db: Queryable,
  dir: string,
  {
    revision = 1,
    content = archiveContent(1_000),
    ...given
  }: Partial<ArchiveDay> & { revision?: number; content?: Buffer } = {},
): Promise<TestFile> {
  const day: ArchiveDay = { kind: 'trades', venue: 'kalshi', date: '2026-01-01', ...given };
  const sha256 = createHash('sha256').update(content).digest('hex');
  const file = fileName(day, revision, sha256);
  const folder = join(dir, folderOf(day));
  const path = join(folder, file);
  await mkdir(folder, { recursive: true });
  await writeFile(path, content);
  await db.query(SUPERSEDE, [day.kind, day.venue, day.date]);
  await db.query(INSERT, [day.kind, day.venue, day.date, revision, file, 10, content.length, sha256]);
  return { ...day, file, sha256, content, path };
}

/** A file in the catalog alone. */
export async function aListedDay(
  db: Queryable,
  { rows, bytes, ...given }: Partial<ArchiveDay> & { rows: number; bytes: number },
): Promise<{ file: string }> {
  const day: ArchiveDay = { kind: 'trades', venue: 'polymarket', date: '2026-01-01', ...given };
  const sha256 = createHash('sha256').update(JSON.stringify(day)).digest('hex');
  const file = fileName(day, 1, sha256);
  await db.query(INSERT, [day.kind, day.venue, day.date, 1, file, rows, bytes, sha256]);
  return { file };
}

/** A day without rows in the catalog. */
export async function anEmptyDay(db: Queryable, given: Partial<ArchiveDay> = {}): Promise<ArchiveDay> {
  const day: ArchiveDay = { kind: 'trades', venue: 'kalshi', date: '2026-01-02', ...given };
  await db.query(INSERT_EMPTY, [day.kind, day.venue, day.date]);
  return day;
}
