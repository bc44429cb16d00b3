import { OddswireError } from '../domain/values/errors.ts';
import { type Duckdb, openDuckdb } from './duckdb.ts';

/** DuckDB reads files of any length within this memory. */
const MEMORY_MB = 384;
/** Reads that wait for their turn; more are refused at once. */
const MAX_WAITING = 64;
/** From the request of a read to its answer. */
const DEADLINE_MS = 10_000;

type Rows = readonly Record<string, unknown>[];

/** Reads of the files of the archive, one after the other, by one process of DuckDB that starts with the first read. */
export class ArchiveReader {
  readonly #dir: string;
  #opening: Promise<Duckdb> | undefined;
  /** Kills the process, also one that does not finish its start. */
  #stop = new AbortController();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** @throws OddswireError `archive_busy` when too many reads wait or this one lasts too long, `archive_failed` with the message of DuckDB */
  async run(statement: string, deadlineMs = DEADLINE_MS): Promise<Rows> {
    if (this.#isClosed) throw new OddswireError('archive_busy', 'this process stops');
    if (this.#waiting >= MAX_WAITING) throw new OddswireError('archive_busy', 'too many reads of the archive wait');
    this.#waiting += 1;
    const endsAtMs = performance.now() + deadlineMs;
    const read = this.#last.then(() => this.#run(statement, endsAtMs - performance.now()));
    this.#last = read.catch(() => undefined);
    try {
      return await read;
    } finally {
      this.#waiting -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #run(statement: string, leftMs: number): Promise<Rows> {
    if (leftMs <= 0 || this.#isClosed) throw tooSlow();
    this.#opening ??= this.#open();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooSlow()), leftMs);
    });
    try {
      const duckdb = await Promise.race([this.#opening, late]);
      return await Promise.race([duckdb.run(statement), late]);
    } catch (error) {
      // A process that is late or gone is replaced; DuckDB goes on after an error in a statement, but a new process costs little.
      await this.#end();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #open(): Promise<Duckdb> {
    // Reads need no folder to spill to: a read that exceeds the memory fails.
    const limits = { folders: [`${this.#dir}/`], spillFolder: '', memoryMb: MEMORY_MB, threads: 1 };
    this.#stop = new AbortController();
    const opening = openDuckdb(limits, this.#stop.signal);
    // Reported by the read that waits for it.
    opening.catch(() => undefined);
    return opening;
  }

  async #end(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#stop.abort();
    const duckdb = await opening?.catch(() => undefined);
    await duckdb?.close();
  }
}

function tooSlow(): OddswireError {
  return new OddswireError('archive_busy', 'the read of the archive lasted too long');
}
