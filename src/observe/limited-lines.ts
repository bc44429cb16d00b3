import type { Logger } from './logger.ts';

const WINDOW_MS = 60_000;

/** A line, with fields that tell its occurrences apart. */
interface Line {
  level: 'info' | 'warn' | 'error';
  fields: object;
  message: string;
  /** Lines of different kinds do not suppress each other. The set of kinds must be limited, such as the routes. */
  kind?: string;
}

interface Window {
  suppressed: number;
  last: Line;
}

/** Lines that clients or a troubled store can cause as often as they like: at most one per kind and minute, with the number of the others. */
class LimitedLines {
  readonly #log: Logger;
  readonly #windows = new Map<string, Window>();

  constructor(log: Logger) {
    this.#log = log;
  }

  write(line: Line): void {
    const key = `${line.message}\n${line.kind ?? ''}`;
    const open = this.#windows.get(key);
    if (!open) {
      this.#log[line.level](line.fields, line.message);
      this.#begin(key, line);
      return;
    }
    open.suppressed += 1;
    open.last = line;
    this.#log.debug(line.fields, line.message);
  }

  #begin(key: string, last: Line): void {
    this.#windows.set(key, { suppressed: 0, last });
    setTimeout(() => this.#end(key), WINDOW_MS).unref();
  }

  /** The line at the end of the minute is one of the next minute. */
  #end(key: string): void {
    const ended = this.#windows.get(key);
    this.#windows.delete(key);
    if (!ended || ended.suppressed === 0) return;
    const { suppressed, last } = ended;
    this.#log[last.level]({ ...last.fields, suppressed }, last.message);
    this.#begin(key, last);
  }
}

const linesOf = new WeakMap<Logger, LimitedLines>();

/**
 * Logs a line that a client or a troubled store can cause without limit. Of several in a minute, the first is logged at once, and the last one at the end of the
 * minute with the count `suppressed` of all after the first. The level `debug` shows each. `log` is the logger of the process.
 */
export function logLimited(log: Logger, line: Line): void {
  const lines = linesOf.get(log) ?? new LimitedLines(log);
  linesOf.set(log, lines);
  lines.write(line);
}

/** A log line for each cancelled delivery, so that the log shows the end of each alert. */
export function logCancelledDeliveries(
  log: Logger,
  webhookId: string,
  reason: string,
  cancelled: readonly { deliveryId: string; eventId: string; alertId?: string }[],
): void {
  for (const ids of cancelled) log.info({ ...ids, webhookId, reason }, 'delivery cancelled');
}
