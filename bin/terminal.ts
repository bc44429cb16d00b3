import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Options, parse } from '../cli/arguments.ts';
import type { Command } from '../cli/program.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { asError } from '../src/domain/values/errors.ts';
import { formatChildLine } from '../src/embedded/log-line.ts';
import { isSmallMachine } from '../src/embedded/machine.ts';
import { type RunnerOptions, runProcesses } from '../src/embedded/runner.ts';
import { createLogger, type Logger } from '../src/observe/logger.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The package folder, relative to a folder of dist. */
const ROOT = resolve(import.meta.dirname, '..', '..');
const PARENT_CHECK_MS = 500;

/** The surroundings of a runner in a terminal. */
export interface Terminal {
  readonly log: Logger;
  readonly dataDir: string;
  /** The environment with its paths absolute. */
  readonly environment: Environment;
  /** Fires at the first SIGINT or SIGTERM, and when the reader of the output ended. */
  readonly signal: AbortSignal;
  /** Prints text for a person, beside the lines of the processes. */
  readonly say: (text: string) => void;
}

interface Extras extends Pick<RunnerOptions, 'environment' | 'dataDir' | 'companions' | 'othersAfter'> {
  /** Runs once every process has been started. A failure is logged. */
  readonly onStarted: (apiUrl: string) => Promise<void>;
  /** Reports a step of the start-up. */
  readonly onStep?: (text: string) => void;
  /** May take a line of a process in place of the output: true when it did. */
  readonly takeLine?: (name: string, line: string) => boolean;
}

/** The differences between `oddswire start` and `oddswire demo`. */
interface RunnerCommand {
  readonly usage: string;
  /** The log level without LOG_LEVEL. */
  readonly logLevel?: string;
  /** May extend the environment and add companions. */
  readonly prepare: (terminal: Terminal) => Promise<Extras>;
}

const OPTIONS: Options = { small: { help: 'run the processes of the service in one' } };

/** A command that runs the Procfile until a stop is requested. Its exit code is 0 after a request, and 1 when it could not run. */
export function runnerCommand({ usage, logLevel, prepare }: RunnerCommand): Command {
  return {
    usage: `${usage}

  --small runs the processes of the service in one, for a machine with one core or less than 2 GB. When one of them fails, all start again.`,
    options: OPTIONS,
    async run(argv) {
      const isSmall = parse(argv, { options: OPTIONS }, ({ flags }) => flags.has('small'));
      const given = { ...process.env, LOG_LEVEL: process.env['LOG_LEVEL'] || logLevel };
      return runInTerminal(prepare, given, isSmall);
    },
  };
}

async function runInTerminal(prepare: RunnerCommand['prepare'], given: Environment, isSmall: boolean): Promise<number> {
  const environment = withAbsolutePaths(given);
  const dataDir = environment['DATA_DIR'] ?? '';
  const log = createLogger({
    process: 'runner',
    level: logLevelOf(environment),
    destination: { write: (line) => printLine('runner', line.trimEnd()) },
  });
  const signal = stopSignal(log);
  if (!isSmall && isSmallMachine()) log.warn('this machine has one core or less than 2 GB: use the option --small');
  const say = (text: string) => void process.stdout.write(`${text}\n`);
  signal.addEventListener('abort', () => {
    const database = environment['DATABASE_URL'] ? '' : ' and the embedded database';
    say(`stopping every process${database}; the next start continues with the same data`);
  });
  const { onStarted, takeLine, ...extras } = await prepare({ log, dataDir, environment, signal, say });
  const outcome = await runProcesses({
    ...extras,
    root: ROOT,
    procfileText: await readFile(join(ROOT, 'Procfile'), 'utf8'),
    isSmall,
    log,
    onLine(name, line, isError) {
      if (takeLine?.(name, line) !== true) printLine(name, line, isError);
    },
    signal,
    onStarted(apiUrl) {
      onStarted(apiUrl).catch((error: unknown) => {
        if (!signal.aborted) log.warn({ reason: asError(error).message }, 'the start-up report ended');
      });
    },
  });
  return outcome.fatal === undefined ? 0 : 1;
}

function printLine(name: string, line: string, isError = false): void {
  const stream = isError ? process.stderr : process.stdout;
  stream.write(`${formatChildLine(name, line, stream.isTTY)}\n`);
}

/** A terminal signals the whole group and npm forwards the signal again: only the first counts. */
function stopSignal(log: Logger): AbortSignal {
  const stopping = new AbortController();
  const stop = (reason: string) => {
    if (stopping.signal.aborted) return;
    log.info({ reason }, 'stopping');
    stopping.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal));
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', () => stop('the reader of the output ended'));
  // npm signals the shell that started this process, and the shell ends without passing the signal on.
  if (process.env['npm_lifecycle_event'] !== undefined) {
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) stop('npm ended');
    }, PARENT_CHECK_MS).unref();
  }
  return stopping.signal;
}

/** The processes run in the package folder, so relative paths are resolved against the caller's folder first. */
function withAbsolutePaths(given: Environment): Environment {
  const { WEBHOOK_CA_FILE: caFile, KALSHI_PRIVATE_KEY_FILE: keyFile } = given;
  return {
    ...given,
    DATA_DIR: resolve(given['DATA_DIR'] || VARIABLES.DATA_DIR.default || '.data'),
    ...(caFile && { WEBHOOK_CA_FILE: resolve(caFile) }),
    ...(keyFile && { KALSHI_PRIVATE_KEY_FILE: resolve(keyFile) }),
  };
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** LOG_LEVEL before the configuration is checked. A working logger reports an unknown level later. */
export function logLevelOf(environment: Readonly<Record<string, string | undefined>>): string {
  const level = environment['LOG_LEVEL'] ?? '';
  return LEVELS.includes(level) ? level : (VARIABLES.LOG_LEVEL.default ?? 'info');
}

/**
 * A call of a subcommand that a user can paste: in the way in which the user called this one (by npm, or by the executable), and
 * with the data folder of this one. A command finds the default folder by itself, and DATABASE_URL is a secret.
 */
export function callOf(command: string, rest: string, environment: Environment): string {
  const folder = environment['DATABASE_URL'] ? undefined : environment['DATA_DIR'];
  const script = environment['npm_lifecycle_event'];
  const call =
    script === undefined || script === 'npx'
      ? `${script === undefined ? '' : 'npx '}oddswire ${command} ${rest}`
      : `npm run --silent ${command} -- ${rest}`;
  return folder ? `DATA_DIR=${folder} ${call}` : call;
}
