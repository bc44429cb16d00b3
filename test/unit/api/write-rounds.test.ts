import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAccountUses } from '../../../api/streams/account-use.ts';
import { type Sink, StreamClient } from '../../../api/streams/client.ts';
import type { Message } from '../../../api/streams/frame.ts';
import { UnsentMemory, WriteRounds } from '../../../api/streams/outbox.ts';

const LIMITS = { maxConnections: 10, connectionsPerAccount: 10, subscriptionsPerAccount: 10, messagesPerSecond: 0 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aClient(limits = LIMITS) {
  const writes: { atMs: number; seqs: (number | undefined)[] }[] = [];
  const sink: Sink = {
    isBlocked: false,
    unsentBytes: 0,
    send: (messages) => void writes.push({ atMs: performance.now(), seqs: messages.map(({ message }) => message.seq) }),
    end: () => undefined,
  };
  const use = createAccountUses(limits).open(1n);
  const memory = new UnsentMemory(1_000_000);
  const options = {
    sink,
    use,
    heartbeatMs: 15_000,
    keyId: 'k',
    memory,
    onEnd: () => undefined,
    onConflated: () => undefined,
    finalMessages: () => [],
  };
  return { client: new StreamClient(options), writes };
}

const message = (seq: number): Message => ({
  type: 'trade',
  seq,
  head: '',
  data: '',
  cursor: '',
  sse: Buffer.alloc(0),
});

describe('WriteRounds', () => {
  it('writes to a connection at most once in 20 ms', async () => {
    const rounds = new WriteRounds<StreamClient>(() => []);
    const { client, writes } = aClient();
    for (let seq = 1; seq <= 100; seq++) {
      client.push(message(seq), 's');
      rounds.mark(client);
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(50);
    expect(writes.flatMap(({ seqs }) => seqs)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    const gaps = writes.slice(1).map(({ atMs }, i) => atMs - (writes[i]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(19);
    expect(writes.length).toBeLessThanOrEqual(7);
  });

  it('sends the message of an idle client behind all others only', async () => {
    const idle = { message: message(999), subscriptions: ['s'], conflated: 0 };
    const rounds = new WriteRounds<StreamClient>(() => [idle]);
    const { client, writes } = aClient({ ...LIMITS, messagesPerSecond: 100 });
    for (let seq = 1; seq <= 150; seq++) client.push(message(seq), 's');
    rounds.mark(client);
    await vi.advanceTimersByTimeAsync(300);
    expect(writes.flatMap(({ seqs }) => seqs)).not.toContain(999);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(writes.flatMap(({ seqs }) => seqs).at(-1)).toBe(999);
  });
});

describe('the messages of an account', () => {
  it('are limited per second over all of its connections', async () => {
    const uses = createAccountUses({ ...LIMITS, messagesPerSecond: 100 });
    const [first, second] = [uses.open(1n), uses.open(1n)];
    expect([first.takeMessages(80), second.takeMessages(80), uses.open(2n).takeMessages(80)]).toEqual([80, 20, 80]);
    await vi.advanceTimersByTimeAsync(500);
    expect(second.takeMessages(80)).toBe(50);
  });
});
