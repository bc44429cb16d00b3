import type { Queue } from 'bullmq';
import { expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import type { QueueBackend } from '../../../src/queues/port.ts';
import { createProducer } from '../../../src/queues/producer.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const laneData = (data: unknown) => (data as { lane: number }).lane;

/** A queue that records its jobs; each is stored when `release` is called. */
function recordedQueue({ isHeld = false } = {}) {
  const added: string[] = [];
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const queue = {
    async add(name: string, data: unknown) {
      added.push(`${name} ${laneData(data)}`);
      if (isHeld) await held;
    },
    close: async () => undefined,
  };
  return { added, release, backend: { queue: () => queue as unknown as Queue } as unknown as QueueBackend };
}

it('producer adds a job for each lane that no job waits for when it signals several', async () => {
  const { added, backend } = recordedQueue();
  const signalled: (readonly [readonly string[], boolean])[] = [];
  const producer = createProducer({
    backend,
    log,
    async signal(lanes, wakesPublisher) {
      signalled.push([lanes.map(({ job, lane }) => `${job} ${lane}`).sort(), wakesPublisher]);
      return lanes.filter(({ lane }) => lane === 1);
    },
  });
  producer.wakeStage('fold-candles', [0, 1, 4]);
  producer.wakeStage('evaluate-alerts', [2]);
  producer.wakePublisher();
  await producer.idle();
  expect(signalled.flatMap(([lanes]) => lanes).sort()).toEqual([
    'evaluate-alerts 2',
    'fold-candles 0',
    'fold-candles 1',
  ]);
  expect(signalled.some(([, wakesPublisher]) => wakesPublisher)).toBe(true);
  expect(added).toEqual(['fold-candles 1']);
});

it('producer wakes the publisher of its process without a signal while that one publishes', async () => {
  const { backend } = recordedQueue();
  let signals = 0;
  let woken = 0;
  let isPublishing = true;
  const producer = createProducer({
    backend,
    log,
    async signal() {
      signals += 1;
      return [];
    },
  });
  producer.hostPublisher(() => {
    woken += 1;
    return isPublishing;
  });
  producer.wakePublisher();
  await producer.idle();
  expect([woken, signals]).toEqual([1, 0]);
  isPublishing = false;
  producer.wakePublisher();
  await producer.idle();
  expect([woken, signals]).toEqual([2, 1]);
});

it('producer adds the job of a requested poll only when no process keeps it', async () => {
  const added: string[] = [];
  const queue = { add: async (name: string, data: unknown) => void added.push(`${name} ${JSON.stringify(data)}`) };
  const backend = { queue: () => ({ ...queue, close: async () => undefined }) } as unknown as QueueBackend;
  const isKept = ({ job }: { job: string }) => job.endsWith('.kalshi');
  const producer = createProducer({ backend, log, signal: async (lanes) => lanes.filter((lane) => !isKept(lane)) });
  producer.requestPoll('poll-trades', 'kalshi');
  producer.requestPoll('poll-trades', 'limitless');
  await producer.idle();
  expect(added).toEqual(['poll-trades {"venue":"limitless"}']);
});

it('producer sends one signal for all wake-ups that come while another one is in flight', async () => {
  const { backend } = recordedQueue();
  const sizes: number[] = [];
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const producer = createProducer({
    backend,
    log,
    async signal(lanes) {
      sizes.push(lanes.length);
      await answered;
      return [];
    },
  });
  producer.wakeStage('fold-candles', [0]);
  for (let call = 0; call < 50; call += 1) producer.wakeStage('fold-candles', [call % 3]);
  answer();
  await producer.idle();
  expect(sizes).toEqual([1, 3]);
});

it('producer adds a job for each lane when the signal fails', async () => {
  const { added, backend } = recordedQueue();
  const producer = createProducer({ backend, log, signal: () => Promise.reject(new Error('no database')) });
  producer.wakeStage('evaluate-alerts', [2, 3]);
  await producer.idle();
  expect(added.sort()).toEqual(['evaluate-alerts 2', 'evaluate-alerts 3']);
});

it('producer adds one more job for all equal wake-ups that come while a job is being added', async () => {
  const { added, release, backend } = recordedQueue({ isHeld: true });
  const producer = createProducer({ backend, log });
  for (let call = 0; call < 20; call += 1) producer.wakeStage('fold-candles', [0]);
  producer.wakeStage('fold-candles', [1]);
  release();
  await producer.idle();
  expect(added.sort()).toEqual(['fold-candles 0', 'fold-candles 0', 'fold-candles 1']);
});
