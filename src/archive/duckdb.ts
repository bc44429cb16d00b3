import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import type { FileColumn } from '../domain/archive/kinds.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { ChildAnswer, ChildLimits, ChildRequest, LineGroup } from './duckdb-child.ts';

/** The packages are optional: without them the archive is off. */
export function hasDuckdb(): boolean {
  const { resolve } = createRequire(import.meta.url);
  try {
    return ['@duckdb/node-api', 'hyparquet', 'hyparquet-compressors'].every((name) => resolve(name) !== '');
  } catch {
    return false;
  }
}

/** The built program of the child, which both the sources and the build have below a folder above them. */
function programPath(): string {
  let folder = import.meta.dirname;
  const inside = join('dist', 'archive', 'duckdb.js');
  while (!existsSync(join(folder, inside))) {
    const parent = dirname(folder);
    if (parent === folder) throw new OddswireError('archive_unavailable', `no folder above the program has ${inside}`);
    folder = parent;
  }
  return join(folder, inside);
}

/** Statements of DuckDB in a process of its own, so that neither their memory nor a crash of native code concerns this one. */
export interface Duckdb {
  /** @throws OddswireError `archive_failed` with the message of DuckDB, or when the process ended */
  run(statement: string): Promise<readonly Record<string, unknown>[]>;
  /** The rows and the checksum of a file, by a reader other than DuckDB. */
  digest(path: string, columns: readonly FileColumn[]): Promise<{ rows: string; checksum: string }>;
  /** The lines of a statement: the first column, keys, and the line. No other statement may run before the last ones. */
  lines(statement: string): AsyncGenerator<readonly LineGroup[]>;
  close(): Promise<void>;
}

/** A process without a DuckDB stays this long for the next one. */
const REST_MS = 2_000;

/** The process that ended its work last, for the next work: its start takes as much CPU as the file of a small day. */
let resting: { readonly child: Child; readonly timer: NodeJS.Timeout } | undefined;

/** Opens DuckDB in a process of its own. It is killed when the signal fires, and it ends with this process. */
export async function openDuckdb(limits: ChildLimits, signal: AbortSignal): Promise<Duckdb> {
  signal.throwIfAborted();
  const rested = takeResting();
  let child = rested ?? new Child();
  const kill = () => child.kill();
  signal.addEventListener('abort', kill, { once: true });
  const end = async () => {
    signal.removeEventListener('abort', kill);
    child.kill();
    await child.exited;
  };
  let isClosed = false;
  // Its process may work for the next one by then.
  const ask: Child['ask'] = async (make) => {
    if (isClosed) throw new OddswireError('archive_failed', 'DuckDB is closed');
    return child.ask(make);
  };
  const rowsOf = (answer: Answered) => ('rows' in answer ? answer.rows : []);
  const open: Parameters<Child['ask']>[0] = (id) => ({ id, open: limits });
  try {
    await child.ask(open).catch(async (error: unknown) => {
      // The system may have killed a resting process for its memory.
      if (child !== rested || child.isAlive || signal.aborted) throw error;
      child = new Child();
      await child.ask(open);
    });
  } catch (error) {
    await end();
    throw error;
  }
  return {
    run: async (run) => rowsOf(await ask((id) => ({ id, run }))),
    digest: async (digest, columns) => {
      const [row] = rowsOf(await ask((id) => ({ id, digest, columns })));
      return row as unknown as { rows: string; checksum: string };
    },
    async *lines(statement) {
      const next = () => ask((id) => ({ id, nextLines: true }));
      await ask((id) => ({ id, lines: statement }));
      // The process makes the next lines while these are used.
      for (let asked = next(); ; ) {
        const answer = await asked;
        const groups = 'groups' in answer ? answer.groups : [];
        if (groups.length === 0) return;
        asked = next();
        // Reported when these lines are asked for.
        asked.catch(() => undefined);
        yield groups;
      }
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      // A process that is at work, or gone, or has lines that nobody reads, is of no use to the next one.
      const closed = (id: number) => ({ id, close: true }) as const;
      const canRest = child.isIdle && (await child.ask(closed).catch(() => undefined)) !== undefined;
      if (!canRest || signal.aborted) return end();
      signal.removeEventListener('abort', kill);
      rest(child);
    },
  };
}

function rest(child: Child): void {
  resting?.child.kill();
  clearTimeout(resting?.timer);
  child.unref();
  const timer = setTimeout(() => takeResting()?.kill(), REST_MS).unref();
  resting = { child, timer };
}

function takeResting(): Child | undefined {
  const taken = resting?.child;
  clearTimeout(resting?.timer);
  resting = undefined;
  taken?.ref();
  return taken?.isAlive ? taken : undefined;
}

type Answered = Exclude<ChildAnswer, { error: string }>;

/** A process, and the requests to it. */
class Child {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (answer: ChildAnswer) => void>();
  #last = 0;
  /** Resolves with the reason at its end. */
  readonly exited: Promise<string>;

  constructor() {
    this.#process = fork(programPath(), [], {
      // The values of a row group are alive together: a small space of new objects would copy them again and again.
      execArgv: ['--max-old-space-size=256', '--max-semi-space-size=64'],
      // It needs no secret of this process.
      env: {},
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Long texts pass faster than as JSON.
      serialization: 'advanced',
    });
    let complaint = '';
    this.#process.stderr?.on('data', (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(-2_000);
    });
    this.exited = once(this.#process, 'exit').then(([code, endedBy]: (number | string | null)[]) => {
      const error = `the process of DuckDB ended (${endedBy ?? code}) ${complaint}`.trim();
      for (const [id, settle] of this.#waiting) settle({ id, error });
      this.#waiting.clear();
      return error;
    });
    this.#process.on('message', (answer: ChildAnswer) => {
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
  }

  get isAlive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Whether it answered all requests. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  async ask(make: (id: number) => ChildRequest): Promise<Answered> {
    this.#last += 1;
    const request = make(this.#last);
    if (!this.isAlive) throw new OddswireError('archive_failed', await this.exited);
    const answered = new Promise<ChildAnswer>((resolve) => this.#waiting.set(request.id, resolve));
    // A process that ends meanwhile answers through its exit.
    this.#process.send(request, () => undefined);
    const answer = await answered;
    if ('error' in answer) throw new OddswireError('archive_failed', answer.error);
    return answer;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** Without it this process may end. */
  unref(): void {
    this.#process.unref();
    this.#process.channel?.unref();
    (this.#process.stderr as Socket | null)?.unref();
  }

  ref(): void {
    this.#process.ref();
    this.#process.channel?.ref();
    (this.#process.stderr as Socket | null)?.ref();
  }
}
