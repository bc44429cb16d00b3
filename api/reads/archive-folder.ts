import { createHash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { folderOf, formerPlaceOf } from '../../src/domain/archive/file.ts';
import { boundedCache } from '../../src/domain/values/bounded-cache.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { CatalogFile } from '../../src/store/archive/file-list.ts';
import { ApiError } from '../errors.ts';
import type { ByteRange } from '../http/byte-range.ts';

const CHUNK_BYTES = 256 * 1024;
const RETRY_AFTER_SECONDS = '30';
/** Files whose content is known to be right, or wrong. */
const MAX_KNOWN = 50_000;
/** Files that a process reads at once to check them. */
const MAX_CHECKS = 2;

/** The reasons for `archive_unavailable`. */
const FAULTS = {
  no_folder: 'the folder of the archive is not on this server',
  no_file: 'the file is missing',
  not_readable: 'the file cannot be read',
  other_size: 'the file has another size than in the catalog',
  other_content: 'the content of the file has another sha256 than in the catalog',
  newer_schema: 'the file has the columns of a newer release',
  read_failed: 'the read of the files failed',
  busy: 'too many reads of the archive wait, or this one lasted too long',
  merging: 'many late trades of this time are not in the files yet',
  off: 'the older history of this market is in the archive, which this server does not have',
} as const;
type Fault = keyof typeof FAULTS;

/** The answer to a request that needs files which this server cannot read. */
export function archiveUnavailable(fault: Fault, cause?: unknown): ApiError {
  return new ApiError('archive_unavailable', FAULTS[fault], {
    details: [{ path: 'file', message: fault }],
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    cause,
  });
}

interface OpenFile {
  readonly path: string;
  readonly handle: FileHandle;
}

interface Known {
  /** Of the file on disk: a changed file has another one. */
  readonly identity: string;
  readonly isRight: boolean;
}

/**
 * The folder of the archive, for downloads. A file is sent only when its content has the sha256 of the catalog: a process reads each file
 * once to check this, and again when the file on disk has changed.
 */
export class ArchiveFolder {
  readonly #dir: string;
  readonly #log: Logger;
  readonly #known = boundedCache<Known>(MAX_KNOWN);
  readonly #checks = new Map<string, Promise<boolean>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** `dir`: an absolute path. */
  constructor(dir: string, log: Logger) {
    this.#dir = dir;
    this.#log = log;
  }

  /**
   * Opens a file; the caller closes it, or gives it to `read`. Null when the file was superseded and is removed.
   * @throws ApiError `archive_unavailable`
   */
  async open(file: CatalogFile): Promise<FileHandle | null> {
    return (await this.#opened(file))?.handle ?? null;
  }

  /**
   * The path of a file whose content is that of the catalog.
   * @throws ApiError `archive_unavailable`
   */
  async pathOf(file: CatalogFile): Promise<string> {
    const opened = await this.#opened(file);
    if (opened === null) throw this.#unavailable(file, 'no_file');
    await opened.handle.close();
    return opened.path;
  }

  async #opened(file: CatalogFile): Promise<OpenFile | null> {
    const opened = await this.#find(file);
    if (opened === null) return null;
    try {
      await this.#check(file, opened.handle);
      return opened;
    } catch (error) {
      await opened.handle.close();
      if (error instanceof ApiError) throw error;
      throw this.#unavailable(file, 'not_readable', error);
    }
  }

  async #find(file: CatalogFile): Promise<OpenFile | null> {
    try {
      return await this.#openAt(`${folderOf(file)}/${file.file}`);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw this.#unavailable(file, 'not_readable', error);
      // A later revision may have moved it meanwhile.
      const former = await this.#openAt(formerPlaceOf(file.file)).catch(() => null);
      if (former !== null) return former;
      // A folder that is not mounted has no folder of any kind.
      const hasKind = await stat(join(this.#dir, file.kind)).then(
        (found) => found.isDirectory(),
        () => false,
      );
      if (hasKind && file.isSuperseded) return null;
      throw this.#unavailable(file, hasKind ? 'no_file' : 'no_folder', error);
    }
  }

  async #openAt(place: string): Promise<OpenFile> {
    const path = join(this.#dir, place);
    return { path, handle: await open(path, 'r') };
  }

  async #check(file: CatalogFile, handle: FileHandle): Promise<void> {
    const found = await handle.stat({ bigint: true });
    if (!found.isFile()) throw this.#unavailable(file, 'not_readable');
    if (Number(found.size) !== file.bytes) throw this.#unavailable(file, 'other_size');
    const identity = [found.dev, found.ino, found.mtimeNs, found.ctimeNs].join(' ');
    const known = this.#known.get(file.file);
    const isRight = known?.identity === identity ? known.isRight : await this.#compare(file, handle, identity);
    if (!isRight) throw this.#unavailable(file, 'other_content');
  }

  /** Requests for one file share its check. */
  #compare(file: CatalogFile, handle: FileHandle, identity: string): Promise<boolean> {
    const key = `${file.file} ${identity}`;
    let check = this.#checks.get(key);
    if (!check) {
      check = this.#inTurn(async () => {
        const isRight = (await digestOf(handle)) === file.sha256;
        this.#known.set(file.file, { identity, isRight });
        return isRight;
      }).finally(() => this.#checks.delete(key));
      this.#checks.set(key, check);
    }
    return check;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_CHECKS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  #unavailable({ file }: CatalogFile, fault: Fault, cause?: unknown): ApiError {
    const code = (cause as { code?: unknown } | undefined)?.code;
    const fields = { file, cause: fault, ...(typeof code === 'string' && { code }) };
    logLimited(this.#log, { level: 'error', fields, message: 'archive file not available', kind: fault });
    return archiveUnavailable(fault, cause);
  }
}

/** Hexadecimal. */
async function digestOf(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
}

/** The bytes of a part of a file. It closes the file when it ends, also early. */
export class FilePart extends Readable {
  readonly #handle: FileHandle;
  #position: number;
  #left: number;
  /** Bytes that left the file so far. */
  sent = 0;

  constructor(handle: FileHandle, { start, length }: ByteRange) {
    super({ highWaterMark: CHUNK_BYTES });
    this.#handle = handle;
    this.#position = start;
    this.#left = length;
  }

  override _read(): void {
    if (this.#left === 0) {
      this.push(null);
      return;
    }
    const length = Math.min(CHUNK_BYTES, this.#left);
    this.#handle.read(Buffer.allocUnsafe(length), 0, length, this.#position).then(
      ({ bytesRead, buffer }) => {
        if (bytesRead === 0) {
          // A body shorter than its Content-Length would hold the connection.
          this.destroy(
            new OddswireError('archive_file_short', 'a file of the archive became shorter while it was sent'),
          );
          return;
        }
        this.#position += bytesRead;
        this.#left -= bytesRead;
        this.sent += bytesRead;
        this.push(buffer.subarray(0, bytesRead));
      },
      (error: Error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#handle.close().then(
      () => done(error),
      (failed: Error) => done(error ?? failed),
    );
  }
}
