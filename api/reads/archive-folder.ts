import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { ArchiveFileError, CheckedFiles, FILE_FAULTS } from '../../src/archive/checked-files.ts';
import type { FetchedFiles } from '../../src/archive/store/fetched-files.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { CatalogFile } from '../../src/store/archive/file-list.ts';
import { ApiError } from '../errors.ts';
import type { ByteRange } from '../http/byte-range.ts';

const CHUNK_BYTES = 256 * 1024;
const RETRY_AFTER_SECONDS = '30';

/** The reasons for `archive_unavailable`. */
const FAULTS = {
  ...FILE_FAULTS,
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

/**
 * The folder of the archive, for downloads and reads. A file is used only when its content has the sha256 of the catalog.
 */
export class ArchiveFolder {
  readonly #files: CheckedFiles;
  readonly #log: Logger;

  /** `dir`: an absolute path. `fetched`: files of the object store, which stand in for those that the folder lacks. */
  constructor(dir: string, log: Logger, fetched?: FetchedFiles) {
    this.#files = new CheckedFiles(dir, fetched);
    this.#log = log;
  }

  /**
   * Opens a file; the caller closes it, or gives it to `read`. Null when the file was superseded and is removed.
   * @throws ApiError `archive_unavailable`
   */
  async open(file: CatalogFile): Promise<FileHandle | null> {
    return (await this.#answered(this.#files.open(file)))?.handle ?? null;
  }

  /**
   * The path of a file whose content is that of the catalog.
   * @throws ApiError `archive_unavailable`
   */
  pathOf(file: CatalogFile): Promise<string> {
    return this.#answered(this.#files.pathOf(file));
  }

  async #answered<T>(read: Promise<T>): Promise<T> {
    try {
      return await read;
    } catch (error) {
      if (!(error instanceof ArchiveFileError)) throw error;
      const { file, fault, cause } = error;
      const code = (cause as { code?: unknown } | undefined)?.code;
      const fields = { file, cause: fault, ...(typeof code === 'string' && { code }) };
      logLimited(this.#log, { level: 'error', fields, message: 'archive file not available', kind: fault });
      throw archiveUnavailable(fault, cause);
    }
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
