import { execFile } from 'node:child_process';
import { resolve } from 'node:path';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** The executable of the build. */
export const ODDSWIRE = resolve('dist/bin/oddswire.js');

export interface CommandResult {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `oddswire` with these arguments and these variables only; `input` is its standard input. */
export function oddswire(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd?: string,
  input = '',
): Promise<CommandResult> {
  const env = { PATH: process.env['PATH'], ...environment };
  return new Promise((done) => {
    const child = execFile(
      process.execPath,
      [ODDSWIRE, ...argv],
      { env, maxBuffer: MAX_OUTPUT_BYTES, ...(cwd !== undefined && { cwd }) },
      (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}
