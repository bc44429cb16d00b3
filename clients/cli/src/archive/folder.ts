import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { type ArchiveDay, fileName, folderOf, isFileName } from '../../../../src/domain/archive/file.ts';
import type { ArchiveKind } from '../../../../src/domain/archive/kinds.ts';
import { checkSchema, footerBytes, TAIL_BYTES } from '../../../../src/domain/archive/schema.ts';
import { OddswireError } from '../../../../src/domain/values/errors.ts';
import type { ArchiveFile } from '../../../typescript/src/index.ts';
import { CommandError, EXIT } from '../exit-codes.ts';

const MANIFEST = 'manifest.json';
/** Engines skip files whose name begins with a point. */
const PART = /^\..*\.part$/;

/** A file of a manifest. */
interface DescribedFile {
  readonly file: string;
  readonly revision: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** A row of the list with a file. */
export type ListedFile = ArchiveFile & { file: string; sha256: string };

export function hasFile(row: ArchiveFile): row is ListedFile {
  return row.file !== null && row.sha256 !== null;
}

/**
 * Rejects a row that would lead to another place than the folder of its day. A server is not trusted with paths.
 * @throws CommandError
 */
export function checkRow(row: ArchiveFile): void {
  const { kind, venue, date } = row;
  const isDay = /^[a-z]+$/.test(kind) && /^[a-z]+$/.test(venue) && /^\d{4}-\d\d-\d\d$/.test(date);
  const isName = !hasFile(row) || (isFileName(row.file) && row.file === fileName(row, row.revision, row.sha256));
  if (!isDay || !isName) throw new CommandError('the server sent a file name that does not fit its day', EXIT.failed);
}

const isoOf = (seconds: number | null) =>
  seconds === null ? null : `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`;

/** Writes `manifest.json` of a day as the list describes it; an empty day has no files in it. */
export async function writeManifest(dir: string, row: ArchiveFile): Promise<void> {
  const { kind, venue, date, schema_version, ...described } = row;
  const file = {
    ...described,
    schema_version,
    start: isoOf(row.start),
    end: isoOf(row.end),
    made_at: isoOf(row.made_at),
  };
  const files = row.file === null ? [] : [file];
  const text = `${JSON.stringify({ schema_version, kind, venue, date, files }, null, 2)}\n`;
  const path = join(dir, folderOf(row), MANIFEST);
  if ((await readFile(path, 'utf8').catch(() => '')) === text) return;
  const made = join(dir, folderOf(row), `.${MANIFEST}.${randomUUID()}.part`);
  await mkdir(join(dir, folderOf(row)), { recursive: true });
  const handle = await open(made, 'wx');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(made, path);
}

/** The files of a manifest; undefined without one, null for a text that is no manifest. */
async function readManifest(dir: string, day: ArchiveDay): Promise<DescribedFile[] | null | undefined> {
  let text: string;
  try {
    text = await readFile(join(dir, folderOf(day), MANIFEST), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { files } = JSON.parse(text) as { files?: unknown };
    return Array.isArray(files) && files.every(isDescribed) ? files : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

function isDescribed(value: unknown): value is DescribedFile {
  const { file, revision, bytes, sha256 } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof file === 'string' &&
    isFileName(file) &&
    typeof revision === 'number' &&
    typeof bytes === 'number' &&
    typeof sha256 === 'string'
  );
}

/** The names in a folder; none when it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** The revision in the name of a file of this day; undefined for another name. */
export function revisionOf(day: ArchiveDay, name: string): number | undefined {
  const begin = `${day.kind}-${day.venue}-${day.date}-r`;
  return isFileName(name) && name.startsWith(begin) ? Number.parseInt(name.slice(begin.length), 10) : undefined;
}

/** Hexadecimal. @throws the error of the disk, or the reason of the signal */
async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** The metadata at the end of a file of Parquet. @throws OddswireError `archive_file_unreadable`, or the error of the disk */
async function footerOf(path: string): Promise<Uint8Array> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const bytes = async (from: number, length: number) =>
      (await handle.read(Buffer.alloc(Math.max(0, length)), 0, Math.max(0, length), Math.max(0, from))).buffer;
    const length = footerBytes(await bytes(size - TAIL_BYTES, Math.min(TAIL_BYTES, size)), size);
    return await bytes(size - TAIL_BYTES - length, length);
  } finally {
    await handle.close();
  }
}

type Problem = 'wrong' | 'newer' | 'missing' | 'unknown' | 'superseded' | 'unfinished' | 'no_manifest';

export interface Finding {
  readonly problem: Problem;
  /** Relative to the folder of the archive, with `/`. */
  readonly path: string;
  readonly detail: string;
}

/** The days that are compared; an absent field means all. */
export interface DayFilter {
  readonly kinds?: readonly string[] | undefined;
  readonly venues?: readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

interface Verified {
  readonly findings: readonly Finding[];
  readonly days: number;
  readonly files: number;
}

const DAY = /^([a-z]+)\/venue=([a-z]+)\/date=(\d{4}-\d\d-\d\d)$/;

/**
 * Compares a folder with its manifests and, when `listed` is given, with the list of a server.
 * @throws the error of the disk, CommandError for an impossible list, or the reason of the signal
 */
export async function verifyFolder(
  dir: string,
  filter: DayFilter,
  listed: readonly ArchiveFile[] | undefined,
  signal: AbortSignal,
): Promise<Verified> {
  const findings: Finding[] = [];
  const onDisk = await daysOf(dir, findings);
  const byFolder = new Map(listed?.map((row) => [folderOf(row), row]));
  for (const row of byFolder.values()) checkRow(row);
  const asked = new Map([...onDisk, ...byFolder].map(([folder, day]) => [folder, day as ArchiveDay]));
  let days = 0;
  let files = 0;
  for (const [folder, day] of [...asked].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!isAsked(day, filter)) continue;
    days += 1;
    const row = listed === undefined ? undefined : (byFolder.get(folder) ?? null);
    const check = new DayCheck(dir, day, row, findings);
    files += await check.run(signal);
  }
  return { findings, days, files };
}

function isAsked({ kind, venue, date }: ArchiveDay, { kinds, venues, from, to }: DayFilter): boolean {
  return (
    (kinds?.includes(kind) ?? true) &&
    (venues?.includes(venue) ?? true) &&
    (from ?? date) <= date &&
    (to ?? date) >= date
  );
}

/** The folders of days; everything else in the folder of the archive is unknown. */
async function daysOf(dir: string, findings: Finding[]): Promise<Map<string, ArchiveDay>> {
  const days = new Map<string, ArchiveDay>();
  for (const entry of await readdir(dir, { withFileTypes: true, recursive: true })) {
    const path = relative(dir, join(entry.parentPath, entry.name)).split(sep).join('/');
    const [kind, venue, date, file] = path.split('/');
    // Engines skip such folders; an archive has one for unfinished files.
    if (kind?.startsWith('.')) continue;
    const match = DAY.exec([kind, venue, date].join('/'));
    if (match && entry.isDirectory() && file === undefined) {
      days.set(path, { kind: match[1] as ArchiveKind, venue: match[2] ?? '', date: match[3] ?? '' });
    } else if (!entry.isDirectory() && (!match || path.split('/').length !== 4)) {
      findings.push({ problem: 'unknown', path, detail: 'no file of an archive' });
    }
  }
  return days;
}

/** The comparison of one day. `row`: of the list; null when the list has no such day, undefined without a list. */
class DayCheck {
  readonly #dir: string;
  readonly #day: ArchiveDay;
  readonly #row: ArchiveFile | null | undefined;
  readonly #findings: Finding[];

  constructor(dir: string, day: ArchiveDay, row: ArchiveFile | null | undefined, findings: Finding[]) {
    this.#dir = dir;
    this.#day = day;
    this.#row = row;
    this.#findings = findings;
  }

  #note(problem: Problem, name: string, detail: string): void {
    this.#findings.push({ problem, path: `${folderOf(this.#day)}/${name}`, detail });
  }

  /** The number of compared files. */
  async run(signal: AbortSignal): Promise<number> {
    const manifest = await readManifest(this.#dir, this.#day);
    const names = await namesIn(join(this.#dir, folderOf(this.#day)));
    if (manifest === null) this.#note('wrong', MANIFEST, 'not a manifest');
    if (manifest === undefined && names.length > 0) this.#note('no_manifest', MANIFEST, 'the folder has no manifest');
    const known = this.#known(manifest ?? []);
    let compared = 0;
    for (const name of names) {
      if (name === MANIFEST) continue;
      const described = known.get(name);
      if (described) {
        compared += 1;
        await this.#compare(described, signal);
      } else this.#nameOther(name);
    }
    for (const { file } of known.values()) if (!names.includes(file)) this.#note('missing', file, 'no such file');
    return compared;
  }

  /** The files that must be there: those of the list, else those of the manifest. */
  #known(manifest: readonly DescribedFile[]): Map<string, DescribedFile> {
    const row = this.#row;
    const files = row === undefined ? manifest : row !== null && hasFile(row) ? [row] : [];
    for (const { file, sha256 } of row === undefined ? [] : manifest) {
      const present = files.find((each) => each.file === file);
      if (present && present.sha256 !== sha256)
        this.#note('wrong', MANIFEST, `another sha256 for ${file} than the server`);
    }
    if (row && hasFile(row) && manifest.length > 0 && !manifest.some(({ file }) => file === row.file)) {
      this.#note('superseded', MANIFEST, `the server has revision ${row.revision}`);
    }
    return new Map(files.map((file) => [file.file, file]));
  }

  async #compare({ file, bytes, sha256 }: DescribedFile, signal: AbortSignal): Promise<void> {
    const path = join(this.#dir, folderOf(this.#day), file);
    const { size } = await stat(path);
    if (size !== bytes) this.#note('wrong', file, `${size} bytes in place of ${bytes}`);
    else if ((await sha256Of(path, signal)) !== sha256) this.#note('wrong', file, 'another sha256');
    else await this.#checkSchema(file, path);
  }

  async #checkSchema(file: string, path: string): Promise<void> {
    try {
      checkSchema(await footerOf(path));
    } catch (error) {
      if (!(error instanceof OddswireError)) throw error;
      this.#note(error.code === 'archive_schema_newer' ? 'newer' : 'wrong', file, error.message);
    }
  }

  #nameOther(name: string): void {
    const revision = revisionOf(this.#day, name);
    const present = this.#row?.revision;
    if (PART.test(name)) this.#note('unfinished', name, '`archive get` continues it');
    else if (revision === undefined) this.#note('unknown', name, 'no file of this day');
    else if (present !== undefined && revision < present)
      this.#note('superseded', name, `the server has revision ${present}`);
    else this.#note('unknown', name, this.#row === undefined ? 'not in the manifest' : 'not in the list of the server');
  }
}
