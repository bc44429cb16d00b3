import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type ArchiveDay, type ArchiveFile, fileName, folderOf, formerPlaceOf } from '../domain/archive/file.ts';
import { SCHEMA_VERSION } from '../domain/archive/kinds.ts';

/** Unfinished files of runs. No reader looks into it: its name begins with a point, and engines skip such folders. */
const WORK_FOLDER = '.work';
/** No run lasts so long: older files are those of a process that died. */
const WORK_LEFT_MS = 7_200_000;

/** The folder of unfinished files, which exists then. */
export async function workFolder(dir: string): Promise<string> {
  const folder = join(dir, WORK_FOLDER);
  await mkdir(folder, { recursive: true });
  return folder;
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The sha256 of the content of a file, hexadecimal. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** The name, size and digest of a finished file, whose content the disk has then. */
export async function nameFile(
  day: ArchiveDay,
  revision: number,
  madePath: string,
): Promise<{ file: string; bytes: number; sha256: string }> {
  await sync(madePath);
  const sha256 = await sha256Of(madePath);
  const { size: bytes } = await stat(madePath);
  return { file: fileName(day, revision, sha256), bytes, sha256 };
}

/** Moves a finished file to its place, so that a loss of power keeps it whole. */
export async function placeFile(dir: string, day: ArchiveDay, file: string, madePath: string): Promise<void> {
  const folder = join(dir, folderOf(day));
  await sync(madePath);
  await mkdir(folder, { recursive: true });
  await rename(madePath, join(folder, file));
  await sync(folder);
}

/** A file as `manifest.json` and the API name its fields. */
function described(file: ArchiveFile) {
  return {
    file: file.file,
    revision: file.revision,
    schema_version: file.schemaVersion,
    rows: file.rows,
    in_effect: file.inEffect,
    bytes: file.bytes,
    sha256: file.sha256,
    checksum: file.checksum,
    start: file.start?.toISOString() ?? null,
    end: file.end?.toISOString() ?? null,
    snapshot: file.snapshot,
    journal_seq: file.journalSeq,
    ...witnessOf(file),
    made_at: file.madeAt.toISOString(),
  };
}

/** The totals of the venue, or null and the reason. */
function witnessOf({ witness }: ArchiveFile) {
  if (witness !== null && !('reason' in witness)) return { witness, witness_reason: null };
  return { witness: null, witness_reason: witness?.reason ?? 'not_recorded' };
}

export const MANIFEST = 'manifest.json';

/** Writes `manifest.json` of a day: the files that count, as the catalog has them. Returns its text. */
export async function writeManifest(dir: string, day: ArchiveDay, files: readonly ArchiveFile[]): Promise<string> {
  const { kind, venue, date } = day;
  const folder = join(dir, folderOf(day));
  const text = `${JSON.stringify({ schema_version: SCHEMA_VERSION, kind, venue, date, files: files.map(described) }, null, 2)}\n`;
  const made = join(await workFolder(dir), `manifest-${process.pid}-${kind}-${venue}-${date}.json`);
  await writeFile(made, text);
  await sync(made);
  await mkdir(folder, { recursive: true });
  await rename(made, join(folder, MANIFEST));
  await sync(folder);
  return text;
}

/**
 * Leaves in the folder of a day the file that counts, or none, and moves the others to the former ones: a reader of the folder finds each
 * row once. A file that counts comes back from there.
 */
export async function keepOnly(dir: string, day: ArchiveDay, file: string | null): Promise<void> {
  const folder = join(dir, folderOf(day));
  const names = await readdir(folder).catch(noneWhenAbsent);
  const others = names.filter((name) => name.endsWith('.parquet') && name !== file);
  if (others.length > 0) await mkdir(join(dir, formerPlaceOf('')), { recursive: true });
  for (const name of others) await rename(join(folder, name), join(dir, formerPlaceOf(name)));
  if (file !== null && !names.includes(file)) await rename(join(dir, formerPlaceOf(file)), join(folder, file));
}

function noneWhenAbsent(error: { code?: unknown }): string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}

/** Removes a file that does not count. A file that is gone is no error. */
export async function removeFile(dir: string, day: ArchiveDay, file: string): Promise<void> {
  for (const place of [`${folderOf(day)}/${file}`, formerPlaceOf(file)]) await rm(join(dir, place), { force: true });
}

/** Removes the unfinished files that processes left when they died. Returns their number. */
export async function removeLeftBehind(dir: string, nowMs: number): Promise<number> {
  let removed = 0;
  for (const name of await readdir(join(dir, WORK_FOLDER)).catch(noneWhenAbsent)) {
    const path = join(dir, WORK_FOLDER, name);
    const found = await stat(path).catch(() => undefined);
    // A move changes this time.
    if (found === undefined || nowMs - found.ctimeMs < WORK_LEFT_MS) continue;
    await rm(path, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}
