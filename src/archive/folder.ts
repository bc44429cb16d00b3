import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type ArchiveDay, type ArchiveFile, fileName, folderOf } from '../domain/archive/file.ts';
import { SCHEMA_VERSION } from '../domain/archive/kinds.ts';

/** Unfinished files of runs. No reader looks into it: its name begins with a point, and engines skip such folders. */
const WORK_FOLDER = '.work';
/** No run lasts so long: its files are those of a process that died. */
const LEFT_BEHIND_MS = 7_200_000;

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

/** Moves a finished file to its place, so that a loss of power keeps it whole. Returns its name, size and digest. */
export async function placeFile(
  dir: string,
  day: ArchiveDay,
  revision: number,
  madePath: string,
): Promise<{ file: string; bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(madePath), hash);
  const sha256 = hash.digest('hex');
  const { size: bytes } = await stat(madePath);
  const file = fileName(day, revision, sha256);
  const folder = join(dir, folderOf(day));
  await sync(madePath);
  await mkdir(folder, { recursive: true });
  await rename(madePath, join(folder, file));
  await sync(folder);
  return { file, bytes, sha256 };
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
    made_at: file.madeAt.toISOString(),
  };
}

/** Writes `manifest.json` of a day: the files that count, as the catalog has them. */
export async function writeManifest(dir: string, day: ArchiveDay, files: readonly ArchiveFile[]): Promise<void> {
  const { kind, venue, date } = day;
  const folder = join(dir, folderOf(day));
  const text = `${JSON.stringify({ schema_version: SCHEMA_VERSION, kind, venue, date, files: files.map(described) }, null, 2)}\n`;
  const made = join(await workFolder(dir), `manifest-${process.pid}-${kind}-${venue}-${date}.json`);
  await writeFile(made, text);
  await sync(made);
  await mkdir(folder, { recursive: true });
  await rename(made, join(folder, 'manifest.json'));
  await sync(folder);
}

/** Removes a file that does not count. A file that is gone is no error. */
export async function removeFile(dir: string, day: ArchiveDay, file: string): Promise<void> {
  await rm(join(dir, folderOf(day), file), { force: true });
}

/** Removes unfinished files of processes that died. Returns their number. */
export async function removeLeftBehind(dir: string, nowMs: number): Promise<number> {
  const folder = await workFolder(dir);
  let removed = 0;
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || nowMs - found.mtimeMs < LEFT_BEHIND_MS) continue;
    await rm(path, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}
