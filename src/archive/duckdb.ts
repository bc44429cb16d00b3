import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
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

/** Starts the process. It is killed when the signal fires, and it ends with this process. */
export async function openDuckdb(limits: ChildLimits, signal: AbortSignal): Promise<Duckdb> {
  signal.throwIfAborted();
  const child = fork(programPath(), [JSON.stringify(limits)], {
    // The values of a row group are alive together: a small space of new objects would copy them again and again.
    execArgv: ['--max-old-space-size=256', '--max-semi-space-size=64'],
    // It needs no secret of this process.
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Long texts pass faster than as JSON.
    serialization: 'advanced',
  });
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-2_000);
  });
  const waiting = new Map<number, (answer: ChildAnswer) => void>();
  const exited = once(child, 'exit').then(([code, endedBy]: (number | string | null)[]) => {
    const error = `the process of DuckDB ended (${endedBy ?? code}) ${complaint}`.trim();
    for (const [id, settle] of waiting) settle({ id, error });
    waiting.clear();
    return error;
  });
  const kill = () => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  const [ready] = (await Promise.race([once(child, 'message'), exited.then((error) => [error])])) as [unknown];
  if (typeof ready === 'string') throw new OddswireError('archive_failed', ready);
  child.on('message', (answer: ChildAnswer) => {
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  const ask = asking(child, waiting, exited);
  const rowsOf = (answer: Answered) => ('rows' in answer ? answer.rows : []);
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
      signal.removeEventListener('abort', kill);
      child.kill('SIGKILL');
      await exited;
    },
  };
}

type Answered = Exclude<ChildAnswer, { error: string }>;

function asking(child: ChildProcess, waiting: Map<number, (answer: ChildAnswer) => void>, exited: Promise<string>) {
  let last = 0;
  return async (make: (id: number) => ChildRequest): Promise<Answered> => {
    last += 1;
    const request = make(last);
    if (child.exitCode !== null || child.signalCode !== null) throw new OddswireError('archive_failed', await exited);
    const answered = new Promise<ChildAnswer>((resolve) => waiting.set(request.id, resolve));
    // A process that ends meanwhile answers through its exit.
    child.send(request, () => undefined);
    const answer = await answered;
    if ('error' in answer) throw new OddswireError('archive_failed', answer.error);
    return answer;
  };
}
