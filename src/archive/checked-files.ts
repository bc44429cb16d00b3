import { createHash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveDay, folderOf, formerPlaceOf } from '../domain/archive/file.ts';
import { boundedCache } from '../domain/values/caches.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { FetchedFiles } from './store/fetched-files.ts';
import { takingTurns } from './turns.ts';

const CHUNK_BYTES = 256 * 1024;
/** Files whose content is known to be right, or wrong. */
const MAX_KNOWN = 50_000;
/** Files that a process reads at once to check them. */
const MAX_CHECKS = 2;

/** Why a file cannot be read. */
export const FILE_FAULTS = {
  no_folder: 'the folder of the archive is not on this server',
  no_file: 'the file is missing',
  not_readable: 'the file cannot be read',
  store_unavailable: 'the object store of the archive does not send the file',
  other_size: 'the file has another size than in the catalog',
  other_content: 'the content of the file has another sha256 than in the catalog',
} as const;
type FileFault = keyof typeof FILE_FAULTS;

/** A file of the catalog that this process cannot read, or whose content is not that of the catalog. */
export class ArchiveFileError extends OddswireError {
  readonly file: string;
  readonly fault: FileFault;

  constructor(file: string, fault: FileFault, cause?: unknown) {
    super('archive_unavailable', `${FILE_FAULTS[fault]}: ${file}`, { cause });
    this.file = file;
    this.fault = fault;
  }
}

/** The facts of a file that its check needs. */
interface StatedFile extends ArchiveDay {
  readonly file: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  /** Whether the day has a later revision: then the file may be removed. */
  readonly isSuperseded: boolean;
}

interface OpenFile {
  readonly path: string;
  readonly isFetched: boolean;
  readonly handle: FileHandle;
}

interface Known {
  /** Of the file on disk: a changed file has another one. */
  readonly identity: string;
  readonly isRight: boolean;
}

/**
 * The files of the archive whose content has the sha256 of the catalog: a process reads each file once to check this, and again when the
 * file on disk has changed.
 */
export class CheckedFiles {
  readonly #dir: string;
  readonly #fetched: FetchedFiles | undefined;
  readonly #known = boundedCache<Known>(MAX_KNOWN);
  readonly #checks = new Map<string, Promise<boolean>>();
  readonly #inTurn = takingTurns(MAX_CHECKS);

  /** `dir`: an absolute path. `fetched`: files of the object store, which stand in for those that the folder lacks. */
  constructor(dir: string, fetched?: FetchedFiles) {
    this.#dir = dir;
    this.#fetched = fetched;
  }

  /**
   * Opens a file; the caller closes it. Null when the file was superseded and is removed.
   * @throws ArchiveFileError
   */
  async open(file: StatedFile): Promise<OpenFile | null> {
    const opened = await this.#find(file);
    if (opened === null) return null;
    try {
      await this.#check(file, opened);
      return opened;
    } catch (error) {
      await opened.handle.close();
      if (opened.isFetched) await this.#fetched?.drop(file);
      if (error instanceof ArchiveFileError) throw error;
      throw new ArchiveFileError(file.file, 'not_readable', error);
    }
  }

  /**
   * The path of a file whose content is that of the catalog.
   * @throws ArchiveFileError
   */
  async pathOf(file: StatedFile): Promise<string> {
    const opened = await this.open(file);
    if (opened === null) throw new ArchiveFileError(file.file, 'no_file');
    await opened.handle.close();
    return opened.path;
  }

  async #find(file: StatedFile): Promise<OpenFile | null> {
    try {
      return await this.#openAt(`${folderOf(file)}/${file.file}`);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw new ArchiveFileError(file.file, 'not_readable', error);
      // A later revision may have moved it meanwhile.
      const former = await this.#openAt(formerPlaceOf(file.file)).catch(() => null);
      if (former !== null) return former;
      const fetched = await this.#fetch(file);
      if (fetched !== null) return fetched;
      // A folder that is not mounted has no folder of any kind.
      const hasKind = await stat(join(this.#dir, file.kind)).then(
        (found) => found.isDirectory(),
        () => false,
      );
      const isThere = hasKind || this.#fetched !== undefined;
      if (isThere && file.isSuperseded) return null;
      throw new ArchiveFileError(file.file, isThere ? 'no_file' : 'no_folder', error);
    }
  }

  async #openAt(place: string): Promise<OpenFile> {
    const path = join(this.#dir, place);
    return { path, isFetched: false, handle: await open(path, 'r') };
  }

  /** Null without an object store, or when it does not have the file. */
  async #fetch(file: StatedFile): Promise<OpenFile | null> {
    try {
      const path = await this.#fetched?.pathOf(file);
      return path ? { path, isFetched: true, handle: await open(path, 'r') } : null;
    } catch (error) {
      const isStore = (error as { code?: unknown }).code === 'store_unavailable';
      throw new ArchiveFileError(file.file, isStore ? 'store_unavailable' : 'not_readable', error);
    }
  }

  async #check(file: StatedFile, { handle, isFetched }: OpenFile): Promise<void> {
    const found = await handle.stat({ bigint: true });
    if (!found.isFile()) throw new ArchiveFileError(file.file, 'not_readable');
    if (Number(found.size) !== file.bytes) throw new ArchiveFileError(file.file, 'other_size');
    // The note of a use changes the last time of a fetched file.
    const times = isFetched ? [found.mtimeNs] : [found.mtimeNs, found.ctimeNs];
    const identity = [found.dev, found.ino, ...times].join(' ');
    const known = this.#known.get(file.file);
    const isRight = known?.identity === identity ? known.isRight : await this.#compare(file, handle, identity);
    if (!isRight) throw new ArchiveFileError(file.file, 'other_content');
  }

  /** Requests for one file share its check. */
  #compare(file: StatedFile, handle: FileHandle, identity: string): Promise<boolean> {
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
