import { createLogger, type Logger } from '../../../src/observe/logger.ts';

/** A logged or printed line. */
interface Recorded {
  /** The child that printed it, or `log`. */
  readonly from: string;
  /** The line of a child, or the message of a log record. */
  readonly text: string;
  /** Log records only. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Collects log records and child lines in one order, and lets a test wait for one. */
export function createRecorder() {
  const all: Recorded[] = [];
  const waiting = new Set<() => void>();

  function add(recorded: Recorded): void {
    all.push(recorded);
    for (const check of [...waiting]) check();
  }

  const log: Logger = createLogger({
    process: 'runner',
    level: 'debug',
    destination: {
      write(line) {
        const fields = JSON.parse(line) as Record<string, unknown>;
        add({ from: 'log', text: String(fields['msg']), fields });
      },
    },
  });

  return {
    all,
    log,
    onLine: (name: string, line: string) => add({ from: name, text: line, fields: {} }),
    /** The first `count` matching records, once they exist. The test's own timeout limits the wait. */
    until(count: number, matches: (recorded: Recorded) => boolean): Promise<Recorded[]> {
      return new Promise((resolve) => {
        const check = () => {
          const found = all.filter(matches);
          if (found.length < count) return;
          waiting.delete(check);
          resolve(found.slice(0, count));
        };
        waiting.add(check);
        check();
      });
    },
  };
}
