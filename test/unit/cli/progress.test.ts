import { describe, expect, it } from 'vitest';
import { countText, Progress } from '../../../cli/progress.ts';

function shown(isTTY: boolean) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const write = (text: string) => written.push(text) > 0;
  return { written, clock, progress: new Progress({ write, isTTY } as never, () => clock.nowMs) };
}

describe('Progress', () => {
  it('draws a bar in one line when its stream is a terminal', () => {
    const { written, clock, progress } = shown(true);
    progress.report({ done: 0, total: 4, text: 'none' });
    clock.nowMs = 1_000;
    progress.report({ done: 1, total: 4, text: 'one' });
    clock.nowMs = 1_050;
    progress.report({ done: 2, total: 4, text: 'soon' });
    clock.nowMs = 200_000;
    progress.report({ done: 2, total: 4, text: 'two' });
    progress.end('all');
    expect(written).toEqual([
      '\r\x1b[K######------------------  25%  one  3 s left',
      '\r\x1b[K############------------  50%  two  3 min left',
      '\r\x1b[Kall\n',
    ]);
  });

  it('writes a line now and then when its stream is no terminal', () => {
    const { written, clock, progress } = shown(false);
    for (const nowMs of [0, 5_000, 10_000, 15_000, 20_000]) {
      clock.nowMs = nowMs;
      progress.report({ done: 100, total: 1_000, text: `at ${nowMs}` });
    }
    progress.end('all');
    expect(written).toEqual(['10%  at 10000\n', '10%  at 20000\n', 'all\n']);
  });

  it('estimates the rest by the speed of this run, not by the work of an earlier one', () => {
    const { written, clock, progress } = shown(false);
    progress.report({ done: 900, total: 1_000, text: '' });
    clock.nowMs = 10_000;
    progress.report({ done: 901, total: 1_000, text: 'slow' });
    clock.nowMs = 10_010_000;
    progress.report({ done: 1_001, total: 1_000, text: 'more' });
    expect(written).toEqual(['90%  slow  17 min left\n', '100%  more\n']);
  });

  it('separates the thousands of a count', () => {
    expect([0, 999, 1_234_567].map(countText)).toEqual(['0', '999', '1,234,567']);
  });
});
