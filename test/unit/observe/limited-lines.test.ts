import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { logLimited } from '../../../src/observe/limited-lines.ts';
import { createLogger } from '../../../src/observe/logger.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function aLog(level = 'info') {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (text: string) => void lines.push(JSON.parse(text)) };
  const log = createLogger({ process: 'test', level, destination });
  const shown = () => lines.splice(0).map(({ level: of, msg, n, suppressed }) => [of, msg, n, suppressed]);
  const write = (n: number, message = 'answer not completed', kind = 'a') =>
    logLimited(log, { level: 'warn', fields: { n }, message, kind });
  return { shown, write };
}

describe('logLimited', () => {
  it('logs the first line at once, and at the end of the minute the last one with the count of the others', () => {
    const { shown, write } = aLog();
    for (let n = 1; n <= 130; n++) write(n);
    expect(shown()).toEqual([['warn', 'answer not completed', 1, undefined]]);
    vi.advanceTimersByTime(60_000);
    expect(shown()).toEqual([['warn', 'answer not completed', 130, 129]]);
  });

  it('logs at most a line per minute while a client goes on', () => {
    const { shown, write } = aLog();
    for (let second = 0; second < 600; second++) {
      write(second);
      vi.advanceTimersByTime(1_000);
    }
    const lines = shown();
    expect(lines).toHaveLength(11);
    const counted = lines.reduce((sum, [, , , suppressed = 0]) => sum + 1 + Math.max(0, Number(suppressed) - 1), 0);
    expect(counted).toBe(600);
  });

  it('logs a line at once again when the minute had no other', () => {
    const { shown, write } = aLog();
    write(1);
    vi.advanceTimersByTime(60_000);
    write(2);
    expect(shown()).toEqual([
      ['warn', 'answer not completed', 1, undefined],
      ['warn', 'answer not completed', 2, undefined],
    ]);
  });

  it('keeps messages and kinds apart', () => {
    const { shown, write } = aLog();
    write(1);
    write(2, 'request failed');
    write(3, 'request failed', 'b');
    write(4);
    expect(shown().map(([, , n]) => n)).toEqual([1, 2, 3]);
  });

  it('shows every line at the level debug', () => {
    const { shown, write } = aLog('debug');
    for (let n = 1; n <= 3; n++) write(n);
    expect(shown()).toEqual([
      ['warn', 'answer not completed', 1, undefined],
      ['debug', 'answer not completed', 2, undefined],
      ['debug', 'answer not completed', 3, undefined],
    ]);
  });
});
