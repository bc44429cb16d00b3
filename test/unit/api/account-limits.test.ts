import { describe, expect, it } from 'vitest';
import { type AccountLimits, createAccountLimits } from '../../../api/access/account-limits.ts';
import type { AddUsage, UsageEntry } from '../../../src/domain/values/usage.ts';
import { createLogger } from '../../../src/observe/logger.ts';

const log = createLogger({ process: 'test', level: 'silent' });

/** An in-memory store of the contract. */
function sharedCounts() {
  const rows = new Map<string, { windowStartMs: number; used: number }>();
  const calls: UsageEntry[][] = [];
  let answer: (totals: (number | null)[]) => Promise<(number | null)[]> = async (totals) => totals;
  const add: AddUsage = (entries) => {
    calls.push([...entries]);
    const totals = entries.map(({ kind, subject, windowStartMs, used }) => {
      const key = `${kind} ${subject}`;
      const row = rows.get(key);
      if (row && row.windowStartMs > windowStartMs) return null;
      const total = used + (row?.windowStartMs === windowStartMs ? row.used : 0);
      rows.set(key, { windowStartMs, used: total });
      return total;
    });
    return answer(totals);
  };
  return {
    add,
    calls,
    rows,
    answerWith: (next: typeof answer) => {
      answer = next;
    },
  };
}

function setUp(over: { requests?: number; coldReads?: number; syncLimitMs?: number } = {}) {
  const counts = sharedCounts();
  // The start of a window of account 0.
  const clock = { nowMs: 1_800_000_000_000 - (1_800_000_000_000 % 60_000) };
  const lines: string[] = [];
  const note = (_fields: unknown, text?: string) => void lines.push(String(text ?? _fields));
  const process = () =>
    createAccountLimits({
      addUsage: counts.add,
      defaults: { requests: over.requests ?? 5, cold_reads: over.coldReads ?? 2 },
      log: Object.assign(Object.create(log), { warn: note, info: note }),
      now: () => clock.nowMs,
      ...(over.syncLimitMs !== undefined && { syncLimitMs: over.syncLimitMs }),
    });
  return { counts, clock, lines, process };
}

/** The number of admitted requests out of `times`. */
function admitted(limits: AccountLimits, times: number, accountId = 0n): number {
  return Array.from({ length: times }, () => limits.take('requests', accountId, null)).filter((one) => one?.isAdmitted)
    .length;
}

describe('the limits of accounts', () => {
  it('admit a number of requests per minute, and report the rest and its end', () => {
    const { process, clock } = setUp();
    const limits = process();
    expect(limits.take('requests', 0n, null)).toEqual({ isAdmitted: true, limit: 5, remaining: 4, resetSeconds: 60 });
    clock.nowMs += 30_001;
    expect(limits.take('requests', 0n, null)).toMatchObject({ remaining: 3, resetSeconds: 30 });
    expect(admitted(limits, 10)).toBe(3);
    expect(limits.take('requests', 0n, null)).toEqual({ isAdmitted: false, limit: 5, remaining: 0, resetSeconds: 30 });
    clock.nowMs += 29_998;
    expect(limits.take('requests', 0n, null)).toMatchObject({ isAdmitted: false, resetSeconds: 1 });
    clock.nowMs += 1;
    expect(admitted(limits, 10)).toBe(5);
  });

  it('are separate per account and kind, and an account may have its own limit or none', () => {
    const { process } = setUp();
    const limits = process();
    expect(admitted(limits, 9, 1n)).toBe(5);
    expect(admitted(limits, 9, 2n)).toBe(5);
    expect(limits.take('cold_reads', 1n, null)).toMatchObject({ isAdmitted: true, remaining: 1 });
    expect(limits.take('requests', 1n, 7)).toMatchObject({ isAdmitted: true, limit: 7, remaining: 1 });
    expect(limits.take('requests', 1n, 0)).toBeNull();
    expect(limits.take('cold_reads', 3n, 0)).toMatchObject({ isAdmitted: false, limit: 0 });
    const off = setUp({ requests: 0, coldReads: 0 }).process();
    expect(off.take('requests', 1n, null)).toBeNull();
    expect(off.take('requests', 1n, 1)).toMatchObject({ isAdmitted: true, remaining: 0 });
    expect(off.take('cold_reads', 1n, null)).toMatchObject({ isAdmitted: false });
  });

  it('start windows in different seconds per account, but equal in every process', () => {
    const { process, clock } = setUp();
    clock.nowMs += 12_345;
    const resets = [0n, 1n, 20n, 60n].map((account) => process().take('requests', account, null)?.resetSeconds);
    expect(resets).toEqual([48, 49, 8, 48]);
  });

  it('keep the length of their windows when the clock is set back', () => {
    const { process, clock } = setUp();
    const limits = process();
    admitted(limits, 5);
    clock.nowMs -= 3_600_000;
    expect(limits.take('requests', 0n, null)).toMatchObject({ isAdmitted: true, resetSeconds: 60 });
  });
});

describe('limits shared by processes', () => {
  it('cover all processes from the next sync on, and admit extra requests only until then', async () => {
    const { process, counts } = setUp();
    const [a, b] = [process(), process()];
    expect([admitted(a, 4), admitted(b, 3)]).toEqual([4, 3]);
    await a.sync();
    await b.sync();
    // Seven of five: b knows it at once, a only after its next sync. Until then a admits its own rest.
    expect(admitted(b, 10)).toBe(0);
    expect(admitted(a, 10)).toBe(1);
    await a.sync();
    expect(admitted(a, 10)).toBe(0);
    expect(counts.rows.get('requests 0')?.used).toBe(8);
  });

  it('cost one statement per sync for all accounts, and none without usage', async () => {
    const { process, counts, clock } = setUp();
    const limits = process();
    for (const account of [1n, 2n, 3n]) admitted(limits, 2, account);
    limits.take('cold_reads', 1n, null);
    await limits.sync();
    await limits.sync();
    expect(counts.calls.map((entries) => entries.length)).toEqual([4]);
    // Rejected requests are not published, because they are not usage.
    admitted(limits, 9, 1n);
    admitted(limits, 9, 1n);
    await limits.sync();
    expect(counts.calls[1]).toMatchObject([{ kind: 'requests', subject: 1n, used: 3 }]);
    clock.nowMs += 60_000;
    await limits.sync();
    expect(counts.calls).toHaveLength(2);
  });

  it('keep usage that is recorded during a sync', async () => {
    const { process, counts } = setUp();
    const limits = process();
    let answer: () => void = () => undefined;
    counts.answerWith(
      (totals) =>
        new Promise((resolve) => {
          answer = () => resolve(totals);
        }),
    );
    expect(admitted(limits, 2)).toBe(2);
    const syncing = limits.sync();
    expect(admitted(limits, 1)).toBe(1);
    answer();
    await syncing;
    counts.answerWith(async (totals) => totals);
    await limits.sync();
    expect(counts.rows.get('requests 0')?.used).toBe(3);
    expect(admitted(limits, 9)).toBe(2);
  });

  it('work alone while the store is unavailable, log this once, and publish all usage afterwards', async () => {
    const { process, counts, lines } = setUp();
    const limits = process();
    counts.answerWith(() => Promise.reject(new Error('away')));
    counts.rows.clear();
    expect(admitted(limits, 2)).toBe(2);
    await limits.sync();
    await limits.sync();
    expect(admitted(limits, 9)).toBe(3);
    expect(lines).toEqual(['account limits are not shared between processes']);
    counts.rows.clear();
    counts.answerWith(async (totals) => totals);
    await limits.sync();
    expect(counts.rows.get('requests 0')?.used).toBe(5);
    expect(lines).toHaveLength(2);
    expect(admitted(limits, 9)).toBe(0);
  });

  it('treat a hanging store as unavailable, and ignore a lower count of a store', async () => {
    const { process, counts, lines } = setUp({ syncLimitMs: 5 });
    const limits = process();
    counts.answerWith(() => new Promise(() => undefined));
    admitted(limits, 2);
    await limits.sync();
    expect(lines).toHaveLength(1);
    counts.answerWith(async (totals) => totals.map(() => 1));
    await limits.sync();
    expect(admitted(limits, 9)).toBe(3);
  });

  it('are published a last time when a process ends', async () => {
    const { process, counts } = setUp();
    const limits = process();
    admitted(limits, 3);
    await limits.close();
    expect(counts.rows.get('requests 0')?.used).toBe(3);
  });
});

describe('the limits of failures', () => {
  const failed = (limits: AccountLimits, source: string, limit = 3) =>
    limits.takeFailure('failed_keys', source, limit).isAdmitted;

  it('count per source and kind, in all processes from the next sync on', async () => {
    const { process } = setUp();
    const [a, b] = [process(), process()];
    expect([1, 2, 3, 4].map(() => failed(a, '203.0.113.7'))).toEqual([true, true, true, false]);
    expect(failed(a, '203.0.113.8')).toBe(true);
    expect(a.takeFailure('failed_logins', '203.0.113.7', 3).remaining).toBe(2);
    expect(failed(b, '203.0.113.7')).toBe(true);
    await a.sync();
    await b.sync();
    expect(failed(b, '203.0.113.7')).toBe(false);
    expect(failed(b, '203.0.113.8')).toBe(true);
  });

  it('count sources beyond the first ten thousand together', () => {
    const { process } = setUp();
    const limits = process();
    for (let i = 0; i < 10_000; i++) expect(failed(limits, `source ${i}`)).toBe(true);
    expect(['x', 'y', 'z', 'more'].map((source) => failed(limits, source))).toEqual([true, true, true, false]);
    expect(failed(limits, 'source 0')).toBe(true);
  });
});
