import { afterEach, describe, expect, it, vi } from 'vitest';
import { Collectors, MarkAges } from '../../../src/observe/collectors.ts';

describe('collectors', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  function watched(read: () => Promise<void>) {
    const calls = { reads: 0, forgets: 0, failures: [] as string[] };
    let nowMs = 0;
    const collectors = new Collectors((name) => calls.failures.push(name), { now: () => nowMs });
    collectors.add({
      name: 'database',
      read: () => {
        calls.reads += 1;
        return read();
      },
      forget: () => {
        calls.forgets += 1;
      },
    });
    return { collectors, calls, pass: (ms: number) => (nowMs += ms) };
  }

  it('read a source once in five seconds for any number of scrapes', async () => {
    const { collectors, calls, pass } = watched(async () => undefined);
    await Promise.all([collectors.collect(), collectors.collect()]);
    pass(4_999);
    await collectors.collect();
    expect(calls.reads).toBe(1);
    pass(1);
    await collectors.collect();
    expect(calls).toEqual({ reads: 2, forgets: 0, failures: [] });
  });

  it('count a source that cannot be read, drop its figures, and continue', async () => {
    const { collectors, calls } = watched(() => Promise.reject(new Error('away')));
    let others = 0;
    collectors.add({
      name: 'queues',
      read: async () => {
        others += 1;
      },
      forget: () => undefined,
    });
    await collectors.collect();
    expect(calls).toEqual({ reads: 1, forgets: 1, failures: ['database'] });
    expect(others).toBe(1);
  });

  it('wait two seconds for a hanging source, and do not read it again meanwhile', async () => {
    vi.useFakeTimers();
    let answer: () => void = () => undefined;
    const { collectors, calls, pass } = watched(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    for (const _ of [1, 2]) {
      const scrape = collectors.collect();
      await vi.advanceTimersByTimeAsync(2_000);
      await scrape;
      pass(10_000);
    }
    expect(calls).toEqual({ reads: 1, forgets: 2, failures: ['database', 'database'] });
    answer();
    await vi.advanceTimersByTimeAsync(0);
    const scrape = collectors.collect();
    answer();
    await scrape;
    expect(calls.reads).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the age of marks', () => {
  it('is the time since the sample in which the oldest key was already allocated', () => {
    let nowMs = 0;
    const ages = new MarkAges(() => nowMs);
    const look = (atMs: number, oldestId: bigint | null, newestId: bigint) => {
      nowMs = atMs;
      return ages.note('fold-candles', { oldestId, newestId });
    };
    expect(look(0, 5n, 10n)).toBe(0);
    expect(look(5_000, 5n, 20n)).toBe(5_000);
    // The backlog moves: the oldest mark now was created between the first and the second sample.
    expect(look(10_000, 15n, 30n)).toBe(5_000);
    expect(look(15_000, 15n, 30n)).toBe(10_000);
    expect(look(20_000, null, 30n)).toBe(0);
    expect(look(25_000, 31n, 31n)).toBe(0);
    expect(look(30_000, 31n, 31n)).toBe(5_000);
  });

  it('keeps growing, in bounded memory, for a mark that waits long', () => {
    let nowMs = 0;
    const ages = new MarkAges(() => nowMs);
    let age = 0;
    for (let round = 0; round < 5_000; round += 1) {
      nowMs = round * 5_000;
      age = ages.note('fold-candles', { oldestId: 1n, newestId: BigInt(round + 1) });
    }
    expect(age).toBe(4_999 * 5_000);
  });
});
