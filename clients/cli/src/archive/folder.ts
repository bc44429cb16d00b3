import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveDay, fileName, folderOf, isFileName } from '../../../../src/domain/archive/file.ts';
import { footerBytes, TAIL_BYTES } from '../../../../src/domain/archive/schema.ts';
import type { ArchiveFile } from '../../../typescript/src/index.ts';
import { CommandError, EXIT } from '../exit-codes.ts';

export const MANIFEST = 'manifest.json';
/** Engines skip files whose name begins with a point. */
export const PART = /^\..*\.part$/;

/** A file of a manifest. */
export interface DescribedFile {
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
export async function readManifest(dir: string, day: ArchiveDay): Promise<DescribedFile[] | null | undefined> {
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
export async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** The metadata at the end of a file of Parquet. @throws OddswireError `archive_file_unreadable`, or the error of the disk */
export async function footerOf(path: string): Promise<Uint8Array> {
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
