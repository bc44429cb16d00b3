import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { folderOf } from '../../../../src/domain/archive/file.ts';
import {
  type ArchiveFile,
  OddswireApiError,
  type OddswireClient,
  OddswireConnectionError,
} from '../../../typescript/src/index.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { checkRow, hasFile, type ListedFile, namesIn, revisionOf, writeManifest } from './folder.ts';

/** Tries without a new byte between them. */
const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 500;
/** A longer wait ends the command: a later one continues. */
const MAX_PAUSE_MS = 60_000;

interface CopyOptions {
  readonly client: OddswireClient<string>;
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Called after each piece of a file with the bytes that the file has so far. */
  onBytes(bytes: number): void;
  /** Resolves after this time, or rejects with the reason of the signal. */
  pause(ms: number): Promise<void>;
}

/** `present`: the file was there. `empty`: the day has no rows. */
export type Copied = 'copied' | 'present' | 'empty';

/**
 * Makes the folder of a day as the list describes it: file, `manifest.json`, no files of former revisions. A part of an interrupted copy is
 * continued.
 * @throws OddswireApiError, OddswireConnectionError, CommandError, or the reason of the signal
 */
export async function copyDay(row: ArchiveFile, options: CopyOptions): Promise<Copied> {
  try {
    return await copyRevision(row, options);
  } catch (error) {
    if (!(error instanceof OddswireApiError && error.code === 'archive_file_not_found')) throw error;
    // The day got a later revision after it was listed.
    const { kind, venue, date } = row;
    const day = { kind: [kind], venue: [venue], from: date, to: date } as Parameters<
      typeof options.client.archive.list
    >[0];
    const { data } = await options.client.archive.list(day, { signal: options.signal });
    const present = data.find(({ file }) => file !== row.file);
    if (!present) throw error;
    return copyRevision(present, options);
  }
}

async function copyRevision(row: ArchiveFile, options: CopyOptions): Promise<Copied> {
  checkRow(row);
  const { dir } = options;
  const folder = join(dir, folderOf(row));
  const copied = hasFile(row) ? await copyFile(row, folder, options) : 'empty';
  await writeManifest(dir, row);
  // Engines read every file of the folder.
  for (const name of await namesIn(folder)) {
    const revision = revisionOf(row, name);
    const isFormer = revision !== undefined && name !== row.file && revision <= row.revision;
    if (isFormer) await rm(join(folder, name), { force: true });
  }
  return copied;
}

async function copyFile(row: ListedFile, folder: string, options: CopyOptions): Promise<Copied> {
  const path = join(folder, row.file);
  // It was compared before it got this name, and `verify` compares it again.
  if ((await sizeOf(path)) === row.bytes) return 'present';
  await mkdir(folder, { recursive: true });
  const part = join(folder, `.${row.file}.part`);
  let wrong = 0;
  for (let tries = 0; ; ) {
    const before = await sizeOf(part);
    try {
      const sha256 = await receive(row, part, options);
      if (sha256 === row.sha256) break;
      await rm(part, { force: true });
      wrong += 1;
      // An older part may belong to another content. A whole copy that differs again is a fault of the way or the server.
      if (wrong > 1) throw new CommandError(`${row.file}: the received bytes have another sha256`, EXIT.failed);
    } catch (error) {
      const waitMs = waitBefore(error, tries);
      tries = (await sizeOf(part)) > before ? 0 : tries + 1;
      if (waitMs === undefined || tries >= MAX_TRIES) throw error;
      await options.pause(waitMs);
    }
  }
  await rename(part, path);
  await syncFolder(folder);
  return 'copied';
}

/** Milliseconds until another try; undefined when it would fail too. */
function waitBefore(error: unknown, tries: number): number | undefined {
  if (!(error instanceof OddswireConnectionError) && !(error instanceof OddswireApiError && error.retryable))
    return undefined;
  const asked = error instanceof OddswireApiError ? error.retryAfterSeconds : undefined;
  const waitMs = asked === undefined ? FIRST_PAUSE_MS * 2 ** tries : asked * 1_000;
  return waitMs > MAX_PAUSE_MS ? undefined : waitMs;
}

/** Appends the missing bytes to the part. Returns the sha256 of all of them, hexadecimal. */
async function receive(row: ListedFile, part: string, options: CopyOptions): Promise<string> {
  const handle = await open(part, 'a+');
  try {
    let { size } = await handle.stat();
    if (size > row.bytes) {
      await handle.truncate(0);
      size = 0;
    }
    let hash = await hashOf(handle, size, options.signal);
    if (size < row.bytes) {
      const { client, signal } = options;
      const answer = await client.archive.download({ file: row.file, start: size, sha256: row.sha256 }, { signal });
      const isRest = answer.status === 206 && answer.headers.get('content-range')?.startsWith(`bytes ${size}-`);
      if (size > 0 && !isRest) {
        await handle.truncate(0);
        size = 0;
        hash = createHash('sha256');
      }
      await append(answer, { handle, hash, size, row }, options);
    }
    await handle.sync();
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}

interface Open {
  handle: FileHandle;
  hash: Hash;
  size: number;
  row: ListedFile;
}

async function append(answer: Response, { handle, hash, size, row }: Open, options: CopyOptions): Promise<void> {
  const reader = answer.body?.getReader();
  let received = size;
  for (;;) {
    const chunk = await reader?.read().catch((error: unknown) => {
      if (options.signal.aborted) throw options.signal.reason;
      throw new OddswireConnectionError('connection_failed', 'the answer broke off', error);
    });
    if (chunk?.value === undefined) break;
    received += chunk.value.length;
    if (received > row.bytes)
      throw new CommandError(`${row.file}: the server sent more bytes than it lists`, EXIT.failed);
    await handle.appendFile(chunk.value);
    hash.update(chunk.value);
    options.onBytes(received);
  }
  if (received < row.bytes) throw new OddswireConnectionError('connection_failed', 'the answer broke off');
}

async function hashOf(handle: FileHandle, size: number, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(256 * 1024);
  for (let position = 0; position < size; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, size - position), position);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
  return hash;
}

/** 0 without the file. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
