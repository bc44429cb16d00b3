#!/usr/bin/env node
import { resolve, sep } from 'node:path';
import { isBrokenPipe, print, write } from '../cli/output.ts';
import { type Failure, runProgram } from '../cli/program.ts';
import { ConfigError } from '../src/config/config.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { VERSION } from '../src/config/version.ts';
import { asError, OddswireError } from '../src/domain/values/errors.ts';
import { EXIT_CONFIG } from '../src/runtime/lifecycle.ts';
import { COMMANDS } from './commands.ts';

/** Runs one subcommand and resolves with the exit code. */
function runOddswire(argv: readonly string[]): Promise<number> {
  // Without listeners, the end of the reader of `oddswire … | head` is an uncaught error.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', throwUnlessBrokenPipe);
  return runProgram(argv, {
    name: 'oddswire',
    version: VERSION,
    commands: COMMANDS,
    print,
    printError: (text) => write(process.stderr, text),
    explain,
  });
}

function explain(thrown: unknown): Failure {
  if (thrown instanceof ConfigError) {
    return { messages: thrown.problems.map((problem) => `configuration: ${problem}`), exitCode: EXIT_CONFIG };
  }
  const error = asError(thrown);
  const problem = dataDirProblem(error);
  if (problem !== undefined) return { messages: [problem], exitCode: EXIT_CONFIG };
  // The message of our own errors is complete; any other error needs its stack.
  return { messages: [(error instanceof OddswireError ? error.message : error.stack) ?? error.message], exitCode: 1 };
}

/** Why the file system does not let the commands use DATA_DIR, where they keep all their files; undefined for any other error. */
function dataDirProblem({ code = '', path, syscall }: NodeJS.ErrnoException): string | undefined {
  const dataDir = resolve(process.env['DATA_DIR'] || VARIABLES.DATA_DIR.default || '.data');
  const reason = Object.hasOwn(UNUSABLE, code) ? UNUSABLE[code] : undefined;
  const isBelow = path !== undefined && `${resolve(path)}${sep}`.startsWith(`${dataDir}${sep}`);
  if (reason === undefined || !isBelow) return undefined;
  return `${reason}: ${path} (${code} of ${syscall ?? 'a call'}). Set DATA_DIR to a folder that this user can write; it is ${dataDir}`;
}

const UNUSABLE: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'a file system that is read-only',
  ENOTDIR: 'a file where a folder must be',
  EEXIST: 'a file where a folder must be',
  ENOSPC: 'no space left',
};

function throwUnlessBrokenPipe(error: Error): void {
  if (!isBrokenPipe(error)) throw error;
}

process.exit(await runOddswire(process.argv.slice(2)));
