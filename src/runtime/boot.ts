import { type Config, ConfigError, loadConfig, secretsOf } from '../config/config.ts';
import { createLogger, type Logger } from '../observe/logger.ts';
import { EXIT_CONFIG, runProcess } from './lifecycle.ts';

interface BootOptions {
  /** The name in logs, metrics and messages. It decides which secrets the process reads. */
  name: string;
  environment: Readonly<Record<string, string | undefined>>;
  exit(code: number): void;
  printLine(line: string): void;
  /** Tells the runner that the process has started. */
  onStarted?(): void;
  start(config: Config, log: Logger, signal: AbortSignal): Promise<{ stop(): Promise<void> }>;
}

/** The first step of every process: parse the configuration, print every problem or create a logger, and start the life cycle. */
export async function bootProcess(options: BootOptions): Promise<void> {
  const { name, environment, exit, printLine, onStarted, start } = options;
  let config: Config;
  try {
    config = loadConfig(environment, name);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) printLine(`configuration: ${problem}`);
    exit(EXIT_CONFIG);
    return;
  }
  const log = createLogger({ process: name, level: config.logLevel, secrets: secretsOf(config) });
  await runProcess({
    log,
    exit,
    printLine,
    ...(onStarted && { onStarted }),
    start: (signal) => start(config, log, signal),
  });
}
