import { describe, expect, it } from 'vitest';
import { TapeMemory } from '../../../workers/polling/tape-memory.ts';
import { aTrade } from '../../factories/trades.ts';

const page = (position: unknown, ids: readonly string[] = []) => ({
  records: ids.map((tradeId) => aTrade({ tradeId, tsMs: 0 })),
  rejected: [],
  position,
  more: false,
});

describe('the memory of a tape', () => {
  it('goes on at the position that it stored, and forgets its trades at another one', () => {
    const memory = new TapeMemory();
    memory.begin(null);
    expect(memory.knowledge.isContinued).toBe(false);
    memory.committed(page({ at: 1 }, ['a']), true, 0);
    memory.begin({ at: 1 });
    expect(memory.knowledge).toMatchObject({ isContinued: true });
    expect(memory.knowledge.isStored?.('a')).toBe(true);
    memory.begin({ at: 0 });
    expect(memory.knowledge.isContinued).toBe(false);
    expect(memory.has('a')).toBe(false);
  });

  it('does not go on after a failure, and at each tick while the feed loses trades', () => {
    const memory = new TapeMemory();
    memory.committed(page({ at: 1 }, ['a']), true, 0);
    memory.fail();
    memory.begin({ at: 1 });
    expect([memory.knowledge.isContinued, memory.has('a')]).toEqual([false, true]);
    memory.committed(page({ at: 2 }), true, 0);
    memory.note(true);
    memory.begin({ at: 2 });
    expect(memory.knowledge.isContinued).toBe(false);
    memory.note(false);
    memory.committed(page({ at: 3 }), true, 0);
    memory.begin({ at: 3 });
    expect(memory.knowledge.isContinued).toBe(true);
  });

  it('remembers no trade of a page of which Postgres refused one', () => {
    const memory = new TapeMemory();
    memory.committed(page({ at: 1 }, ['a']), false, 0);
    expect(memory.has('a')).toBe(false);
  });

  it('keeps at most 300,000 ids, the latest 150,000 of them for three minutes', () => {
    const memory = new TapeMemory();
    for (let at = 0; at < 400; at += 1) {
      const ids = Array.from({ length: 1_000 }, (_, each) => `id-${at * 1_000 + each}`);
      memory.committed(page({ at }, ids), true, at * 1_000);
      expect(memory.size).toBeLessThanOrEqual(300_000);
    }
    expect(memory.has('id-250000')).toBe(true);
    expect(memory.has('id-0')).toBe(false);
    for (const nowMs of [600_000, 800_000]) memory.committed(page({ at: nowMs }, [`${nowMs}`]), true, nowMs);
    expect(memory.size).toBe(2);
  });
});
