import { asError, OddswireError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';

/** sysexits(3) EX_CONFIG: the runner stops at once instead of restarting into the same fault. */
export const EXIT_CONFIG = 78;
/** A process ends at most this long after the first signal, even when one of its parts hangs. */
const STOP_LIMIT_MS = 17_000;

/** A fault that a restart cannot repair: bad configuration, a taken port, the wrong key ring. */
export class StartupError extends OddswireError {
  constructor(message: string, cause?: unknown) {
    super('startup', message, { cause });
  }
}

interface ProcessOptions {
  log: Logger;
  /** Starts the process. The signal fires when a stop is requested during the start. */
  start(signal: AbortSignal): Promise<{ stop(): Promise<void> }>;
  /** `process.exit`, passed in by the executable: a library does not end its caller. */
  exit(code: number): void;
  /** Receives a start-up fault as one line. */
  printLine(line: string): void;
  onStarted?(): void;
}

/**
 * The life of one process: start, run until a stop is requested, stop in order, end. SIGTERM, SIGINT and the loss of the runner
 * (IPC disconnect) mean the same. Repeated signals are ignored, because a terminal signals the whole group and npm forwards the
 * signal again.
 */
export async function runProcess(options: ProcessOptions): Promise<void> {
  const { log, exit } = options;
  const stopping = new AbortController();
  const stopRequested = new Promise<void>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  let limit: NodeJS.Timeout | undefined;
  const end = (code: number) => {
    clearTimeout(limit);
    exit(code);
  };
  const stop = (reason: string) => {
    if (stopping.signal.aborted) return;
    log.info({ reason }, 'stopping');
    limit = setTimeout(() => {
      log.error('not stopped in time');
      exit(1);
    }, STOP_LIMIT_MS).unref();
    stopping.abort();
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  process.once('disconnect', () => stop('runner gone'));
  const die = (error: unknown) => {
    log.fatal({ err: asError(error) }, 'unexpected error');
    exit(1);
  };
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);

  try {
    const running = await options.start(stopping.signal);
    log.info('started');
    options.onStarted?.();
    await stopRequested;
    await running.stop().then(
      () => {
        log.info('stopped');
        end(0);
      },
      (error: unknown) => {
        log.error({ err: asError(error) }, 'not stopped cleanly');
        end(1);
      },
    );
  } catch (error) {
    if (stopping.signal.aborted) {
      // The end of a wait is no fault, and has no stack.
      const isWait = error instanceof OddswireError && error.code === 'aborted';
      log.info(isWait ? { reason: error.message } : { err: asError(error) }, 'stopped while starting');
      end(0);
    } else if (error instanceof StartupError) {
      options.printLine(error.message);
      exit(EXIT_CONFIG);
    } else {
      die(error);
    }
  }
}

/**
 * Runs all steps in order, also after a failed step, and throws the first failure at the end: a connection that does not close
 * must not keep the others open.
 */
export async function inOrder(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: Error[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(asError(error));
    }
  }
  const [first] = failures;
  if (first) throw first;
}
