import { resolve, sep } from 'node:path';
import { UsageError } from '../cli/arguments.ts';
import { isBrokenPipe, print } from '../cli/output.ts';
import { ConfigError } from '../src/config/config.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { VERSION } from '../src/config/version.ts';
import { asError, OddswireError } from '../src/domain/values/errors.ts';
import { nearest } from '../src/domain/values/nearest.ts';
import { EXIT_CONFIG } from '../src/runtime/lifecycle.ts';
import type { Command } from './command.ts';
import { COMMANDS } from './commands.ts';

const EXIT_USAGE = 2;
/** 128 and the number of SIGPIPE, as a shell reports a program whose reader ended. */
const EXIT_BROKEN_PIPE = 141;
const HELP = new Set(['--help', '-h', 'help']);

/** Runs one subcommand and resolves with the exit code. It reports nothing when the reader of the output ended. */
export async function runOddswire([name, ...argv]: readonly string[]): Promise<number> {
  // Without listeners, the end of the reader of `oddswire … | head` is an uncaught error.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', throwUnlessBrokenPipe);
  try {
    if (name === undefined) {
      process.stderr.write(list());
      return EXIT_USAGE;
    }
    if (name === '--version') return await printed(`${VERSION}\n`);
    const isHelp = HELP.has(name);
    if (isHelp && argv[0] === undefined) return await printed(list());
    const wanted = isHelp ? (argv[0] ?? '') : name;
    const entry = Object.hasOwn(COMMANDS, wanted) ? COMMANDS[wanted] : undefined;
    if (entry === undefined) return reportUnknown(wanted);
    const { command } = await entry.load();
    if (isHelp || asksForHelp(argv)) return await printed(`${command.usage}\n`);
    return await run(name, command, argv);
  } catch (error) {
    if (isBrokenPipe(error)) return EXIT_BROKEN_PIPE;
    throw error;
  }
}

/** Runs a command. A failure prints lines that state the reason. */
async function run(name: string, command: Command, argv: readonly string[]): Promise<number> {
  const printProblem = (text: string) => process.stderr.write(`oddswire ${name}: ${text}\n`);
  try {
    return await command.run(argv);
  } catch (thrown) {
    if (isBrokenPipe(thrown)) throw thrown;
    if (thrown instanceof UsageError) {
      thrown.problems.forEach(printProblem);
      process.stderr.write(`${command.usage}\n`);
      return EXIT_USAGE;
    }
    if (thrown instanceof ConfigError) {
      for (const problem of thrown.problems) printProblem(`configuration: ${problem}`);
      return EXIT_CONFIG;
    }
    const error = asError(thrown);
    const problem = dataDirProblem(error);
    if (problem !== undefined) {
      printProblem(problem);
      return EXIT_CONFIG;
    }
    // The message of our own errors is complete; any other error needs its stack.
    printProblem((error instanceof OddswireError ? error.message : error.stack) ?? error.message);
    return 1;
  }
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

async function printed(text: string): Promise<number> {
  await print(text);
  return 0;
}

/** The list of all commands. */
function list(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `usage: oddswire COMMAND [ARGUMENTS]\n\n${lines.join('')}\n\`oddswire COMMAND --help\` describes a command.\n`;
}

function reportUnknown(name: string): number {
  const close = nearest(name, Object.keys(COMMANDS));
  const hint = close === undefined ? '' : `; did you mean "${close}"?`;
  process.stderr.write(`oddswire: unknown command "${name}"${hint}\n\`oddswire --help\` lists the commands.\n`);
  return EXIT_USAGE;
}

/** Whether the arguments ask for help. Text behind `--` belongs to the command. */
function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((each) => each === '--help' || each === '-h');
}

function throwUnlessBrokenPipe(error: Error): void {
  if (!isBrokenPipe(error)) throw error;
}
