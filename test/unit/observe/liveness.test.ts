import { describe, expect, it } from 'vitest';
import { LivenessTracker } from '../../../src/observe/liveness.ts';

const QUEUE_STILL_MS = 120_000;
const LONG_MS = 86_400_000;

/** A tracker with a clock that the test sets, and the reasons that it gives when the oldest job waits for `oldestMs`. */
function aTracker() {
  let nowMs = 10_000_000;
  const tracker = new LivenessTracker(() => nowMs);
  return {
    tracker,
    pass: (ms: number) => {
      nowMs += ms;
    },
    reasons: (oldestMs = 0) => tracker.stallReasons(async () => oldestMs),
  };
}

describe('stallReasons', () => {
  it('is empty for an idle process', async () => {
    expect(await aTracker().reasons()).toEqual([]);
  });

  it.each([
    ['just in time', 12 * 5_000, []],
    ['overdue', 12 * 5_000 + 1, ['loop restore has not run for 60 s']],
  ])('a loop %s', async (_when, ago, why) => {
    const { tracker, pass, reasons } = aTracker();
    tracker.loop('restore', 5_000);
    pass(ago);
    expect(await reasons()).toEqual(why);
  });

  it.each([
    ['at its deadline', 30_000, []],
    ['in the grace after it', 30_000 + 60_000, []],
    ['long after it', 30_001 + 60_000, ['job fold-candles has run for 90 s']],
  ])('a job %s', async (_when, ago, why) => {
    const { tracker, pass, reasons } = aTracker();
    tracker.job('candles', 'fold-candles', 30_000);
    pass(ago);
    expect(await reasons()).toEqual(why);
  });

  it.each<[string, { takenAgoMs?: number; running?: number; oldestMs?: number }, boolean]>([
    ['whose work waits although the process has free capacity', {}, true],
    ['that is empty', { oldestMs: 0 }, false],
    ['whose work is fresh', { oldestMs: QUEUE_STILL_MS }, false],
    ['that this process works on', { takenAgoMs: QUEUE_STILL_MS }, false],
    ['whose jobs use the whole capacity', { running: 5 }, false],
    ['with free capacity', { running: 4 }, true],
  ])('a queue %s', async (_label, part, isStalled) => {
    const { takenAgoMs = QUEUE_STILL_MS + 1, running = 0, oldestMs = QUEUE_STILL_MS + 1 } = part;
    const { tracker, pass, reasons } = aTracker();
    tracker.queue('alerts', 5);
    for (let count = 0; count < running; count += 1) tracker.job('alerts', 'evaluate-alerts', LONG_MS);
    pass(takenAgoMs);
    expect(await reasons(oldestMs)).toEqual(isStalled ? ['queue alerts: a job waits for 120 s, none is taken'] : []);
  });
});

describe('a tracker', () => {
  it('reports loops, jobs and queues, and asks a queue only when it is idle', async () => {
    let nowMs = 0;
    const asked: string[] = [];
    const tracker = new LivenessTracker(() => nowMs);
    const age = async (name: string) => {
      asked.push(name);
      return QUEUE_STILL_MS * 2;
    };
    const beat = tracker.loop('restore', 5_000);
    tracker.queue('alerts', 1);
    expect(await tracker.stallReasons(age)).toEqual([]);

    nowMs = QUEUE_STILL_MS;
    beat();
    const ended = tracker.job('alerts', 'evaluate-alerts', 1_000);
    expect(await tracker.stallReasons(age)).toEqual([]);
    nowMs += QUEUE_STILL_MS + 1;
    beat();
    // Its one slot is occupied by a job that hangs.
    expect(await tracker.stallReasons(age)).toEqual(['job evaluate-alerts has run for 120 s']);
    ended();
    ended();
    expect(asked).toEqual([]);
    expect(await tracker.stallReasons(age)).toEqual(['queue alerts: a job waits for 240 s, none is taken']);
    expect(asked).toEqual(['alerts']);
    tracker.job('alerts', 'evaluate-alerts', 1_000)();
    expect(await tracker.stallReasons(age)).toEqual([]);
    nowMs += 12 * 5_000 + 1;
    expect(await tracker.stallReasons(age)).toEqual(['loop restore has not run for 60 s']);
  });

  it('ignores a queue store that does not answer', async () => {
    let nowMs = 0;
    const tracker = new LivenessTracker(() => nowMs);
    tracker.queue('alerts', 1);
    nowMs = QUEUE_STILL_MS * 2;
    expect(await tracker.stallReasons(() => Promise.reject(new Error('away')))).toEqual([]);
  });
});
