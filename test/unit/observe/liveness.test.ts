import { describe, expect, it } from 'vitest';
import { type QueueBeat, stallReasons } from '../../../src/observe/liveness.ts';
import { LivenessTracker } from '../../../src/observe/liveness-tracker.ts';

type Vitals = Parameters<typeof stallReasons>[0];

const QUEUE_STILL_MS = 120_000;

const NOW = 10_000_000;
const vitals = (part: Partial<Vitals> = {}): Vitals => ({ nowMs: NOW, loops: [], jobs: [], queues: [], ...part });
const queue = (part: Partial<QueueBeat> = {}): QueueBeat => ({
  name: 'alerts',
  takenAtMs: NOW - QUEUE_STILL_MS - 1,
  running: 0,
  concurrency: 5,
  oldestWaitingMs: QUEUE_STILL_MS + 1,
  ...part,
});

describe('stallReasons', () => {
  it('is empty for an idle process', () => {
    expect(stallReasons(vitals())).toEqual([]);
  });

  it.each([
    ['just in time', 12 * 5_000, []],
    ['overdue', 12 * 5_000 + 1, ['loop restore has not run for 60 s']],
  ])('a loop %s', (_when, ago, why) => {
    expect(stallReasons(vitals({ loops: [{ name: 'restore', everyMs: 5_000, endedAtMs: NOW - ago }] }))).toEqual(why);
  });

  it.each([
    ['at its deadline', 30_000, []],
    ['in the grace after it', 30_000 + 60_000, []],
    ['long after it', 30_001 + 60_000, ['job fold-candles has run for 90 s']],
  ])('a job %s', (_when, ago, why) => {
    const job = { name: 'fold-candles', startedAtMs: NOW - ago, deadlineMs: 30_000 };
    expect(stallReasons(vitals({ jobs: [job] }))).toEqual(why);
  });

  it.each<[string, Partial<QueueBeat>, boolean]>([
    ['whose work waits although the process has free capacity', {}, true],
    ['that is empty', { oldestWaitingMs: 0 }, false],
    ['whose work is fresh', { oldestWaitingMs: QUEUE_STILL_MS }, false],
    ['that this process works on', { takenAtMs: NOW - QUEUE_STILL_MS }, false],
    ['whose jobs use the whole capacity', { running: 5 }, false],
    ['with free capacity', { running: 4 }, true],
  ])('a queue %s', (_label, part, isStalled) => {
    expect(stallReasons(vitals({ queues: [queue(part)] }))).toEqual(
      isStalled ? ['queue alerts: a job waits for 120 s, none is taken'] : [],
    );
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
