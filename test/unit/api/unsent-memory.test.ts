import { describe, expect, it } from 'vitest';
import { type SlowReader, UnsentMemory } from '../../../api/streams/outbox.ts';

class Reader implements SlowReader {
  readonly writtenAtMs: number;
  unsentBytes = 0;
  relieved = 0;
  readonly #keptBytes: number;

  constructor(writtenAtMs: number, keptBytes = 0) {
    this.writtenAtMs = writtenAtMs;
    this.#keptBytes = keptBytes;
  }

  relieve(): void {
    this.relieved += 1;
    this.unsentBytes = this.relieved === 1 ? this.#keptBytes : 0;
  }
}

function hold(memory: UnsentMemory, reader: Reader, bytes: number): void {
  reader.unsentBytes = bytes;
  memory.note(reader);
}

describe('UnsentMemory', () => {
  it('relieves the readers that accepted nothing for the longest time when all together exceed the limit', () => {
    const memory = new UnsentMemory(1_000);
    const [never, old, recent] = [new Reader(Number.NEGATIVE_INFINITY), new Reader(5), new Reader(9)];
    hold(memory, old, 400);
    hold(memory, recent, 400);
    hold(memory, never, 100);
    expect([never.relieved, old.relieved, recent.relieved]).toEqual([0, 0, 0]);
    hold(memory, recent, 800);
    expect([never.relieved, old.relieved, recent.relieved]).toEqual([1, 1, 0]);
    expect(memory.bytes).toBe(800);
  });

  it('counts all readers again before it relieves one, because readers accept bytes without notice', () => {
    const memory = new UnsentMemory(1_000);
    const [first, second] = [new Reader(1), new Reader(2)];
    hold(memory, first, 900);
    first.unsentBytes = 100;
    hold(memory, second, 800);
    expect([first.relieved, second.relieved, memory.bytes]).toEqual([0, 0, 900]);
  });

  it('relieves a reader again when the bytes in its connection remain after the end of its stream', () => {
    const memory = new UnsentMemory(1_000);
    const [ended, other] = [new Reader(1, 300), new Reader(2)];
    hold(memory, ended, 600);
    hold(memory, other, 500);
    expect([ended.relieved, memory.bytes]).toEqual([1, 800]);
    hold(memory, other, 800);
    expect([ended.relieved, other.relieved, memory.bytes]).toEqual([2, 0, 800]);
  });

  it('does not count a reader that was forgotten', () => {
    const memory = new UnsentMemory(1_000);
    const [gone, other] = [new Reader(1), new Reader(2)];
    hold(memory, gone, 900);
    memory.forget(gone);
    hold(memory, other, 900);
    expect([gone.relieved, other.relieved, memory.bytes]).toEqual([0, 0, 900]);
  });
});
