import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BusySessions, closeUnresponsive } from '../../../src/observe/silent-connections.ts';

const LIMIT_MS = 3_000;
const LOOK_MS = LIMIT_MS / 15;

class FakeSocket extends EventEmitter {
  bytesRead = 0;
  destroyed: Error | undefined;

  destroy(error: Error): void {
    this.destroyed = error;
    this.emit('close');
  }
}

class FakeClient {
  readyForQuery = true;
  readonly processID: number;
  readonly stream = new FakeSocket();
  readonly connection = { stream: this.stream };

  constructor(processID: number) {
    this.processID = processID;
  }

  ask(): void {
    this.readyForQuery = false;
  }

  answer(): void {
    this.stream.bytesRead += 10;
    this.readyForQuery = true;
  }
}

let clockMs: number;
let lines: object[];
const log = { warn: (fields: object, msg: string) => lines.push({ ...fields, msg }) };

beforeEach(() => {
  clockMs = 1_000;
  lines = [];
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => clockMs);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Advances time as a running process sees it. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += LOOK_MS) {
    clockMs += LOOK_MS;
    await vi.advanceTimersByTimeAsync(LOOK_MS);
  }
}

type Options = Partial<Parameters<typeof closeUnresponsive>[0]>;

function watch(count: number, options: Options = {}): FakeClient[] {
  const onConnect = closeUnresponsive({ limitMs: LIMIT_MS, log: log as never, ...options });
  const clients = Array.from({ length: count }, (_, index) => new FakeClient(index + 1));
  for (const client of clients) onConnect(client);
  return clients;
}

const ended = (clients: FakeClient[]) =>
  clients.filter(({ stream }) => stream.destroyed).map(({ processID }) => processID);

describe('closeUnresponsive', () => {
  it('ends a connection that waits too long and all silent ones, and no other', async () => {
    const clients = watch(4);
    const [silent, , answering, late] = clients;
    await pass(LIMIT_MS);
    silent?.ask();
    await pass(LIMIT_MS / 2);
    answering?.ask();
    await pass(LOOK_MS);
    answering?.answer();
    await pass(LIMIT_MS / 2 - LOOK_MS);
    late?.ask();
    await pass(3 * LOOK_MS);
    expect(ended(clients)).toEqual([1, 2, 4]);
    expect(silent?.stream.destroyed).toMatchObject({ code: 'ETIMEDOUT' });
    expect(lines).toMatchObject([{ connections: 3, limitMs: LIMIT_MS }]);
  });

  it('counts from the last data of an answer that stops half-way', async () => {
    const clients = watch(1);
    clients[0]?.ask();
    await pass(LIMIT_MS / 2);
    if (clients[0]) clients[0].stream.bytesRead += 5;
    await pass(LIMIT_MS - LOOK_MS);
    expect(ended(clients)).toEqual([]);
    await pass(3 * LOOK_MS);
    expect(ended(clients)).toEqual([1]);
  });

  it('ends no connection that the server is working for, at any age, and asks about all that wait', async () => {
    const asked: number[][] = [];
    const findBusy = async (pids: readonly number[]) => {
      asked.push([...pids]);
      return new Set(pids);
    };
    const clients = watch(3, { findBusy });
    clients[0]?.ask();
    await pass(LIMIT_MS / 2);
    clients[1]?.ask();
    await pass(3 * LIMIT_MS);
    expect(ended(clients)).toEqual([]);
    expect(asked[0]).toEqual([1, 2]);
    // An answer about a session counts as a sign of life: it is not asked about again until another limit has passed.
    expect(asked.length).toBeLessThanOrEqual(4);
  });

  it('ends no connection when the server cannot tell, and asks again after a pause', async () => {
    let answer: BusySessions = 'unknown';
    const findBusy = vi.fn(async () => answer);
    const clients = watch(2, { findBusy });
    clients[0]?.ask();
    await pass(2 * LIMIT_MS);
    expect(ended(clients)).toEqual([]);
    expect(lines).toEqual([]);
    expect(findBusy.mock.calls.length).toBeGreaterThan(1);
    expect(findBusy.mock.calls.length).toBeLessThanOrEqual(1 + LIMIT_MS / 1_000);
    answer = new Set();
    await pass(1_000 + 2 * LOOK_MS);
    expect(ended(clients)).toEqual([1, 2]);
  });

  it('keeps asking after a failed question', async () => {
    let isBroken = true;
    const findBusy = async () => {
      if (isBroken) throw new Error('broken');
      return new Set<number>();
    };
    const clients = watch(1, { findBusy });
    clients[0]?.ask();
    await pass(LIMIT_MS + 2 * LOOK_MS);
    expect(lines.length).toBeGreaterThan(0);
    isBroken = false;
    await pass(1_000 + 2 * LOOK_MS);
    expect(ended(clients)).toEqual([1]);
  });

  it('skips a statement that began during the question to the server', async () => {
    let answer: (busy: BusySessions) => void = () => undefined;
    const findBusy = () =>
      new Promise<BusySessions>((resolve) => {
        answer = resolve;
      });
    const clients = watch(3, { findBusy });
    const [silent, idle, begins] = clients;
    silent?.ask();
    await pass(LIMIT_MS + 2 * LOOK_MS);
    begins?.ask();
    await pass(5 * LOOK_MS);
    answer(new Set());
    await pass(LOOK_MS);
    expect(ended([silent, idle, begins] as FakeClient[])).toEqual([1, 2]);
  });

  it('does not count the time in which this process was stopped', async () => {
    const clients = watch(1);
    clients[0]?.ask();
    await pass(LIMIT_MS / 2);
    // Stopped and continued: the answer has arrived, and is not read yet.
    clockMs += 10 * LIMIT_MS;
    await vi.advanceTimersByTimeAsync(LOOK_MS);
    expect(ended(clients)).toEqual([]);
    clients[0]?.answer();
    await pass(2 * LIMIT_MS);
    expect(ended(clients)).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('detects silence although the process is stopped now and then', async () => {
    const clients = watch(1);
    clients[0]?.ask();
    for (let turn = 0; turn < 6; turn++) {
      await pass(LIMIT_MS / 4);
      clockMs += LIMIT_MS;
      await vi.advanceTimersByTimeAsync(LOOK_MS);
    }
    expect(ended(clients)).toEqual([1]);
  });

  it('waits for a shorter time once the process is stopping', async () => {
    const stopping = new AbortController();
    const clients = watch(1, { limitMs: 60_000, stopping: stopping.signal });
    clients[0]?.ask();
    await pass(10_000);
    expect(ended(clients)).toEqual([]);
    stopping.abort();
    await pass(1_000);
    expect(ended(clients)).toEqual([1]);
  });

  it('keeps no timer without connections, and checks again with one', async () => {
    const onConnect = closeUnresponsive({ limitMs: LIMIT_MS, log: log as never });
    const [first, second] = [new FakeClient(1), new FakeClient(2)];
    onConnect(first);
    expect(vi.getTimerCount()).toBe(1);
    first.stream.emit('close');
    expect(vi.getTimerCount()).toBe(0);
    await pass(LIMIT_MS);
    onConnect(second);
    second.ask();
    await pass(LIMIT_MS + 2 * LOOK_MS);
    expect(ended([second])).toEqual([2]);
  });
});
