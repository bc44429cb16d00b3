import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ProcessLag } from '../../../src/observe/process-lag.ts';

const SAMPLE_MS = 100;

describe('ProcessLag', () => {
  let nowMs: number;
  let lag: ProcessLag;

  beforeEach(() => {
    vi.useFakeTimers();
    nowMs = 5_000;
    lag = new ProcessLag(() => nowMs);
    return () => vi.useRealTimers();
  });

  /** Samples that are each late by so many milliseconds. */
  function run(samples: number, lateMs: number): void {
    for (let i = 0; i < samples; i += 1) {
      nowMs += SAMPLE_MS + lateMs;
      lag.sample();
    }
  }

  it('measures no lateness when its timer fires in time', () => {
    const meter = lag.begin();
    run(100, 5);
    expect([meter.lateMs(), meter.wasLate(), meter.stretched(8_000), lag.share()]).toEqual([0, false, 8_000, 0]);
  });

  it('counts a delay that lasts before its own timer fires', () => {
    const meter = lag.begin();
    nowMs += SAMPLE_MS + 3_000;
    expect([meter.lateMs(), meter.wasLate(), meter.stretched(8_000)]).toEqual([3_000, true, 11_000]);
    lag.sample();
    expect(meter.lateMs()).toBe(3_000);
  });

  it('has the longest single lateness of the last ten seconds', () => {
    run(10, 30);
    expect(lag.longestMs()).toBe(30);
    run(1, 1_500);
    expect(lag.longestMs()).toBe(1_500);
    run(120, 0);
    expect(lag.longestMs()).toBe(0);
    nowMs += SAMPLE_MS + 700;
    expect(lag.longestMs()).toBe(700);
  });

  it('counts only the lateness since the begin of a measurement', () => {
    run(10, 900);
    const meter = lag.begin();
    run(10, 0);
    expect([meter.lateMs(), meter.wasLate()]).toEqual([0, false]);
  });

  it('adds up many short delays', () => {
    const meter = lag.begin();
    run(50, 100);
    expect([meter.lateMs(), meter.wasLate(), lag.share()]).toEqual([5_000, true, 0.5]);
    expect(lag.stretched(10_000)).toBe(20_000);
  });

  it('stretches a limit to four times its length at most', () => {
    const meter = lag.begin();
    run(10, 90_000);
    expect([meter.stretched(8_000), lag.stretched(8_000)]).toEqual([32_000, 32_000]);
  });

  it('calls a process late only when it was late for half a second and for a fifth of the time', () => {
    const short = lag.begin();
    run(2, 200);
    expect(short.wasLate()).toBe(false);
    const long = lag.begin();
    run(1, 1_000);
    run(60, 0);
    expect(long.wasLate()).toBe(false);
  });

  it('forgets the share after ten seconds', () => {
    run(10, 1_000);
    expect(lag.share()).toBeGreaterThan(0.8);
    run(110, 0);
    expect(lag.share()).toBe(0);
  });
});
