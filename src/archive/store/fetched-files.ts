import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { takingTurns } from '../turns.ts';
import { fetchTo, type StoredFile } from './day.ts';
import { type ObjectStore, storeOf } from './s3.ts';

/** Beside the files of an aggregator, so that a removal here never concerns those. Engines skip a name that begins with a point. */
const FOLDER = '.fetched';
const PART = '.part';
/** No fetch lasts so long: older parts are those of a process that died. */
const PART_LEFT_MS = 7_200_000;
const MAX_FETCHES = 4;
/** A request waits this long; the fetch goes on for the next one. */
const WAIT_MS = 10_000;
/** A read ends within this time after its file was asked for. */
const IN_USE_MS = 60_000;

interface Options {
  /** An absolute path, the folder of the archive. */
  readonly dir: string;
  readonly store: ObjectStore;
  readonly maxBytes: number;
  /** Ends fetches. */
  readonly signal: AbortSignal;
  readonly waitMs?: number;
  readonly inUseMs?: number;
}

/** The files of the object store of a configuration; undefined without a store. */
export function fetchedFilesOf({ archive }: Pick<Config, 'archive'>, signal: AbortSignal): FetchedFiles | undefined {
  const store = storeOf({ archive });
  const { dir, cacheBytes: maxBytes } = archive;
  return store && dir !== undefined ? new FetchedFiles({ dir, store, maxBytes, signal }) : undefined;
}

/** Files of the object store on this machine. Several processes may share the folder. */
export class FetchedFiles {
  readonly #options: Options;
  readonly #folder: string;
  readonly #fetches = new Map<string, Promise<string | null>>();
  readonly #inTurn = takingTurns(MAX_FETCHES);

  constructor(options: Options) {
    this.#options = options;
    this.#folder = join(options.dir, FOLDER);
  }

  /**
   * The path of a file, which is fetched when this machine does not have it. Requests for one file share its fetch. Null when the store does
   * not have it.
   * @throws OddswireError `store_unavailable`, also when the fetch lasts too long, or the error of the disk
   */
  async pathOf(file: StoredFile): Promise<string | null> {
    const path = join(this.#folder, file.file);
    if (await this.#use(path)) return path;
    let fetch = this.#fetches.get(file.file);
    if (fetch === undefined) {
      fetch = this.#inTurn(() => this.#fetch(file, path)).finally(() => this.#fetches.delete(file.file));
      // Each waiting request reports it.
      fetch.catch(() => undefined);
      this.#fetches.set(file.file, fetch);
    }
    return this.#inTime(fetch, file.file);
  }

  /** Removes a file that changed on the disk: the next request fetches it. */
  async drop({ file }: Pick<StoredFile, 'file'>): Promise<void> {
    await rm(join(this.#folder, file), { force: true });
  }

  /** Notes the use of a file for all processes of this machine. The time of its last change stays. */
  async #use(path: string): Promise<boolean> {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) return false;
    return utimes(path, new Date(), found.mtime).then(
      () => true,
      () => false,
    );
  }

  async #fetch(file: StoredFile, path: string): Promise<string | null> {
    const { store, signal } = this.#options;
    await mkdir(this.#folder, { recursive: true });
    const part = `${path}.${randomUUID()}${PART}`;
    try {
      if (!(await fetchTo(part, file, store, signal))) return null;
      // Whole seconds survive the note of a use.
      await utimes(part, new Date(), Math.floor(Date.now() / 1000));
      await rename(part, path);
    } finally {
      await rm(part, { force: true });
    }
    await this.#prune(file.file);
    return path;
  }

  /** Removes the least recently used files while all are larger than the limit. Files that a read may have in use stay. */
  async #prune(present: string): Promise<void> {
    const { maxBytes, inUseMs = IN_USE_MS } = this.#options;
    const now = Date.now();
    const files: { path: string; name: string; bytes: number; usedMs: number }[] = [];
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const found = await stat(path).catch(() => undefined);
      if (found === undefined) continue;
      if (!name.endsWith(PART)) files.push({ path, name, bytes: found.size, usedMs: found.atimeMs });
      else if (now - found.ctimeMs > PART_LEFT_MS) await rm(path, { force: true });
    }
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of files.toSorted((a, b) => a.usedMs - b.usedMs)) {
      if (bytes <= maxBytes) return;
      if (file.name === present || now - file.usedMs < inUseMs) continue;
      await rm(file.path, { force: true });
      bytes -= file.bytes;
    }
  }

  async #inTime<T>(work: Promise<T>, name: string): Promise<T> {
    const { waitMs = WAIT_MS } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new OddswireError('store_unavailable', `the object store has not sent all of ${name} in time`);
      timer = setTimeout(() => reject(error), waitMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
