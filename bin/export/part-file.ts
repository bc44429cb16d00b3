import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { asError, OddswireError } from '../../src/domain/values/errors.ts';
import type { TimeRange } from '../../src/domain/values/time-range.ts';
import type { ExportPlace } from '../../src/store/series/export.ts';

/** A later version of the program may not continue the file of an earlier one. */
const VERSION = 2;
const SAVE_EVERY_MS = 500;

/** How far an export has come. */
export interface ExportProgress {
  place: ExportPlace | null;
  rows: number;
  outcomes: number;
}

/** The state beside an unfinished file: its first `bytes` bytes hold the rows up to the place. */
interface State extends ExportProgress {
  version: number;
  /** The options that decide about the content, as they were given. */
  options: Readonly<Record<string, unknown>>;
  /** The range that these options meant at the first start. */
  range: TimeRange;
  bytes: number;
  /** The process that writes. */
  pid: number;
  host: string;
}

/** A file that grows beside its final name, and its state, so that the same command continues after any end of the process. */
export class PartFile {
  readonly #target: string;
  readonly #handle: FileHandle;
  readonly #state: State;
  #savedAtMs = Number.NEGATIVE_INFINITY;

  private constructor(target: string, handle: FileHandle, state: State) {
    this.#target = target;
    this.#handle = handle;
    this.#state = state;
  }

  /**
   * Opens `TARGET.part`: the unfinished one of the same options, or a new one.
   * @throws OddswireError when it belongs to other options or another process, or cannot be written
   */
  static async open(target: string, options: State['options'], range: TimeRange): Promise<PartFile> {
    try {
      const present = await stat(target).catch(() => undefined);
      if (present?.isDirectory()) throw new OddswireError('export_file', `${target} is a folder: name a file in it`);
      const found = await readState(target);
      const state = found && checked(target, found, options);
      const kept = state && (await openKept(target, state.bytes));
      if (state && kept) return await new PartFile(target, kept, { ...state, ...writer() }).#start();
      const handle = await open(partOf(target), 'w');
      const fresh = { version: VERSION, options, range, place: null, rows: 0, outcomes: 0, bytes: 0, ...writer() };
      return await new PartFile(target, handle, fresh).#start();
    } catch (error) {
      throw withFileName(target, error);
    }
  }

  /** The range of the first start: an age such as `24h` has another meaning later. */
  get range(): TimeRange {
    return this.#state.range;
  }

  get progress(): ExportProgress {
    const { place, rows, outcomes } = this.#state;
    return { place, rows, outcomes };
  }

  get bytes(): number {
    return this.#state.bytes;
  }

  /** Appends a text, whose last row is at this place. The state follows the first rows, and then every half second. */
  async append(text: string, progress: ExportProgress): Promise<void> {
    try {
      const bytes = Buffer.from(text);
      for (let written = 0; written < bytes.length; ) {
        const at = this.#state.bytes + written;
        written += (await this.#handle.write(bytes, written, bytes.length - written, at)).bytesWritten;
      }
      Object.assign(this.#state, progress, { bytes: this.#state.bytes + bytes.length });
      if (progress.place === null || performance.now() - this.#savedAtMs < SAVE_EVERY_MS) return;
      await this.#save();
      this.#savedAtMs = performance.now();
    } catch (error) {
      throw withFileName(this.#target, error);
    }
  }

  /** Gives the complete file its name. */
  async finish(): Promise<void> {
    try {
      await this.#handle.sync();
      await this.#handle.close();
      await rename(partOf(this.#target), this.#target);
      await rm(stateOf(this.#target), { force: true });
    } catch (error) {
      throw withFileName(this.#target, error);
    }
  }

  /** Gives the name to a file that was made elsewhere, instead of this one. */
  async replaceBy(path: string): Promise<void> {
    try {
      await this.#handle.close();
      const made = await open(path, 'r');
      await made.sync().finally(() => made.close());
      await rename(path, this.#target);
      for (const other of [partOf(this.#target), stateOf(this.#target)]) await rm(other, { force: true });
    } catch (error) {
      throw withFileName(this.#target, error);
    }
  }

  /** Keeps the unfinished file for the next run. */
  async keep(): Promise<void> {
    await this.#save().catch(() => undefined);
    await this.#handle.close().catch(() => undefined);
  }

  async #start(): Promise<this> {
    await this.#save();
    return this;
  }

  /** The rows are on the disk before the state names them. */
  async #save(): Promise<void> {
    await this.#handle.datasync();
    const next = `${stateOf(this.#target)}.next`;
    await writeFile(next, JSON.stringify(this.#state), { flush: true });
    await rename(next, stateOf(this.#target));
  }
}

const partOf = (target: string) => `${target}.part`;
const stateOf = (target: string) => `${target}.part.json`;
const writer = () => ({ pid: process.pid, host: hostname() });

async function readState(target: string): Promise<State | undefined> {
  try {
    const state = JSON.parse(await readFile(stateOf(target), 'utf8')) as Partial<State> | null;
    if (typeof state?.version === 'number' && typeof state.options === 'object') return state as State;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new OddswireError('export_state', `${stateOf(target)} is not readable: remove it to start again`);
}

function checked(target: string, state: State, options: State['options']): State {
  const place = `${partOf(target)} and ${stateOf(target)}`;
  if (state.version !== VERSION || JSON.stringify(state.options) !== JSON.stringify(options)) {
    const message = `is an unfinished export with other options: ${JSON.stringify(state.options)}`;
    throw new OddswireError('export_state', `${partOf(target)} ${message}. Repeat them, or remove ${place}`);
  }
  if (state.host === hostname() && state.pid !== process.pid && isRunning(state.pid)) {
    const message = `process ${state.pid} writes ${partOf(target)}: wait for it`;
    throw new OddswireError('export_state', `${message}, or remove ${place} when it is another program`);
  }
  return state;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The unfinished file, cut behind the rows that its state names; undefined when it has fewer bytes. */
async function openKept(target: string, bytes: number): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(partOf(target), 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if ((await handle.stat()).size >= bytes) {
    await handle.truncate(bytes);
    return handle;
  }
  await handle.close();
  return undefined;
}

/** A failed write as one line with the name of the file; other errors stay what they are. */
export function withFileName(target: string, thrown: unknown): Error {
  const error = asError(thrown) as NodeJS.ErrnoException;
  const isOfDisk = /^(open|mkdir|write|fsync|fdatasync|ftruncate|close|rename|stat)/.test(error.syscall ?? '');
  if (error instanceof OddswireError || !isOfDisk) return error;
  return new OddswireError('export_file', `cannot write ${partOf(target)}: ${error.message}`);
}
