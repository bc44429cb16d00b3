import { Readable } from 'node:stream';
import type { Io, Output } from '../../clients/cli/src/io.ts';
import { runCli } from '../../clients/cli/src/run-cli.ts';

export interface CliIo extends Io {
  /** The text that was written so far. */
  readonly written: { stdout: string; stderr: string };
  /** As Ctrl-C. */
  stop(): void;
  /** Resolves when the output contains the text. */
  until(stream: 'stdout' | 'stderr', text: string | RegExp): Promise<void>;
}

interface CliIoOptions {
  env?: Record<string, string | undefined>;
  isTerminal?: boolean;
  columns?: number;
  rows?: number;
  nowMs?: number;
  /** Standard input. */
  input?: Readable;
}

/** The surroundings of `oddswire-cli` in memory. */
export function cliIo({
  env = {},
  isTerminal = false,
  columns = 120,
  rows = 24,
  nowMs,
  input = Readable.from([]),
}: CliIoOptions = {}): CliIo {
  const written = { stdout: '', stderr: '' };
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  const output = (name: 'stdout' | 'stderr'): Output => ({
    async write(text) {
      written[name] += text;
      for (const check of waiting) check();
    },
    isTerminal,
    columns,
    rows,
  });
  return {
    env,
    stdin: input,
    stdout: output('stdout'),
    stderr: output('stderr'),
    signal: stopping.signal,
    now: () => nowMs ?? Date.now(),
    written,
    stop: () => stopping.abort(),
    until: (stream, text) =>
      new Promise((resolve) => {
        const check = () => {
          if (typeof text === 'string' ? !written[stream].includes(text) : !text.test(written[stream])) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs `oddswire-cli` in this process until it ends. */
export async function oddswireCli(argv: readonly string[], options: CliIoOptions = {}): Promise<CliResult> {
  const io = cliIo(options);
  const code = await runCli(argv, io);
  return { code, ...io.written };
}
