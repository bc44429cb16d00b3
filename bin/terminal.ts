import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { VARIABLES } from '../src/config/variables.ts';
import { asError, OddswireError } from '../src/domain/values/errors.ts';
import { formatChildLine } from '../src/embedded/log-line.ts';
import { type RunnerOptions, runProcesses } from '../src/embedded/runner.ts';
import { createLogger, type Logger } from '../src/observe/logger.ts';
import { logLevelOf } from './log-level.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The package folder, relative to dist/bin. */
const ROOT = resolve(import.meta.dirname, '..', '..');
const PARENT_CHECK_MS = 500;

/** The options of a runner in a terminal. */
interface Terminal {
  readonly log: Logger;
  readonly dataDir: string;
  /** The environment with its paths absolute. */
  readonly environment: Environment;
  /** Fires at the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
}

/** The differences between `npm start` and `npm run demo`. */
type Extras = Pick<RunnerOptions, 'environment' | 'dataDir' | 'companions' | 'onStarted'>;

/**
 * Runs the Procfile until a stop is requested, and ends this process: with 0 after a request, with 1 and one line with the
 * reason when it could not run. `prepare` may extend the environment and add companions.
 */
export async function runInTerminal(prepare: (terminal: Terminal) => Promise<Extras>): Promise<void> {
  const environment = withAbsolutePaths(process.env);
  const dataDir = environment['DATA_DIR'] ?? '';
  const log = createLogger({
    process: 'runner',
    level: logLevelOf(environment),
    destination: { write: (line) => print('runner', line.trimEnd()) },
  });
  const signal = stopSignal(log);
  try {
    const extras = await prepare({ log, dataDir, environment, signal });
    const outcome = await runProcesses({
      ...extras,
      root: ROOT,
      procfileText: await readFile(join(ROOT, 'Procfile'), 'utf8'),
      log,
      onLine: print,
      signal,
    });
    process.exit(outcome.fatal === undefined ? 0 : 1);
  } catch (thrown) {
    const error = asError(thrown);
    // The message of our own errors is complete; any other error needs its stack.
    process.stderr.write(`oddswire: ${error instanceof OddswireError ? error.message : error.stack}\n`);
    process.exit(1);
  }
}

function print(name: string, line: string, isError = false): void {
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
  const caFile = given['WEBHOOK_CA_FILE'];
  return {
    ...given,
    DATA_DIR: resolve(given['DATA_DIR'] || VARIABLES.DATA_DIR.default || '.data'),
    ...(caFile && { WEBHOOK_CA_FILE: resolve(caFile) }),
  };
}
