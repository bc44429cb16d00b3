import type { Readable } from 'node:stream';
import { write } from '../../../cli/output.ts';

/** One output of the program. */
export interface Output {
  /** Resolves after the text was handed on. @throws an error with the code EPIPE when the reader ended */
  write(text: string): Promise<void>;
  readonly isTerminal: boolean;
  /** Columns and rows of a terminal; the variable COLUMNS wins. */
  readonly columns: number;
  readonly rows: number;
}

/** The surroundings of the program: the process, or a test. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Fires at the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** Epoch milliseconds. */
  now(): number;
}

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

export function processIo(): Io {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, stop);
  // Without listeners, the end of the reader of `oddswire-cli … | head` is an uncaught error.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', stop);
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
    signal: stopping.signal,
    now: Date.now,
  };
}

function outputOf(stream: NodeJS.WriteStream): Output {
  return {
    write: (text) => write(stream, text),
    get isTerminal() {
      return stream.isTTY === true;
    },
    get columns() {
      return Number(process.env['COLUMNS']) || stream.columns || DEFAULT_COLUMNS;
    },
    get rows() {
      return stream.rows || DEFAULT_ROWS;
    },
  };
}
