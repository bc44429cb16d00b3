import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveDay, type ArchiveFile, folderOf, formerPlaceOf } from '../../domain/archive/file.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { MANIFEST, placeFile, workFolder } from '../folder.ts';
import type { Content, ObjectStore } from './s3.ts';

/** The facts of a file that its upload and its download need. */
export interface StoredFile extends ArchiveDay, Content {
  readonly file: string;
}

/** The place of a file, relative to the folder of the archive and to the prefix of the store. */
export const placeOf = (file: Pick<StoredFile, 'file'> & ArchiveDay) => `${folderOf(file)}/${file.file}`;

/** The file of a row of the catalog; undefined for an empty day. */
export function storedFile(
  row: Pick<ArchiveFile, keyof ArchiveDay | 'file' | 'bytes' | 'sha256'>,
): StoredFile | undefined {
  const { kind, venue, date, file, bytes, sha256 } = row;
  return file === null || sha256 === null ? undefined : { kind, venue, date, file, bytes, sha256 };
}

/**
 * Writes a file of the store to a path: from the folder of its day, or from the former ones. False when the store does not have it.
 * @throws OddswireError `store_unavailable`
 */
export async function fetchTo(
  path: string,
  file: StoredFile,
  store: ObjectStore,
  signal: AbortSignal,
): Promise<boolean> {
  for (const key of [placeOf(file), formerPlaceOf(file.file)]) {
    if (await store.fetchFile(key, path, file, signal)) return true;
  }
  return false;
}

/**
 * Brings a file that the folder lacks back from the store: the aggregator moved to another machine.
 * @throws OddswireError `store_unavailable`, or the error of the disk
 */
export async function restoreFile(
  dir: string,
  file: StoredFile,
  store: ObjectStore,
  signal: AbortSignal,
): Promise<void> {
  const made = join(await workFolder(dir), `fetched-${process.pid}-${file.file}`);
  try {
    if (!(await fetchTo(made, file, store, signal))) {
      throw new OddswireError('archive_failed', `neither the folder nor the object store has ${file.file}`);
    }
    await placeFile(dir, file, file.file, made);
  } finally {
    await rm(made, { force: true });
  }
}

/** The path of a file in the folder, among those of its day or the former ones; undefined when the folder lacks it. */
export async function pathIn(dir: string, file: StoredFile): Promise<string | undefined> {
  for (const path of [placeOf(file), formerPlaceOf(file.file)].map((place) => join(dir, place))) {
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined) return path;
  }
  return undefined;
}

/**
 * Makes the objects of a day as the catalog says: the file that counts, and its manifest. Others move to the former ones.
 * @throws OddswireError `store_unavailable`, also when the store does not have the file that counts
 */
export async function describeStored(
  store: ObjectStore,
  { day, file, manifest }: { day: ArchiveDay; file: StoredFile | undefined; manifest: string },
  signal: AbortSignal,
): Promise<void> {
  if (file !== undefined && !(await store.holds(placeOf(file), file, signal))) {
    throw new OddswireError('store_unavailable', `the object store does not have ${file.file} yet`);
  }
  for (const { key } of await store.list(`${folderOf(day)}/`, signal)) {
    const name = key.slice(folderOf(day).length + 1);
    if (!name.endsWith('.parquet') || name === file?.file) continue;
    await store.copy(key, formerPlaceOf(name), signal);
    await store.remove(key, signal);
  }
  await store.putText(`${folderOf(day)}/${MANIFEST}`, manifest, signal);
}

/** Removes a file that does not count. @throws OddswireError `store_unavailable` */
export async function removeStored(
  store: ObjectStore,
  file: Pick<StoredFile, 'file'> & ArchiveDay,
  signal: AbortSignal,
): Promise<void> {
  for (const key of [placeOf(file), formerPlaceOf(file.file)]) await store.remove(key, signal);
}
