import { expect, it } from 'vitest';
import { JournalView } from '../../../api/reads/journal-view.ts';
import { QuoteChecks } from '../../../api/reads/quote-checks.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import type { JournalBatch } from '../../../src/store/journal/tail.ts';
import type { CheckBlock } from '../../../src/store/prices/checks.ts';

const log = createLogger({ process: 'test', level: 'silent' });

function world() {
  let deliver: (batch: JournalBatch) => void = () => undefined;
  const tail = {
    staleMs: () => 0,
    on(listener: typeof deliver) {
      deliver = listener;
      return () => undefined;
    },
  };
  const stored: CheckBlock[][] = [];
  const asked: unknown[][] = [];
  const db = {
    query: async (_statement: unknown, values: unknown[]) => {
      asked.push(values);
      return stored.shift() ?? [];
    },
  } as unknown as Queryable;
  let nowMs = 0;
  const checks = new QuoteChecks({ db, journal: new JournalView(tail), log, now: () => nowMs });
  /** The journal is confirmed `afterMs` after the confirmation before. */
  async function confirm(checkedAtMs: number, { epoch = 'e', afterMs = 2_000 } = {}) {
    nowMs += afterMs;
    const head = { epoch, seq: 1, checkedAt: new Date(checkedAtMs), readAt: new Date(checkedAtMs), oldestSeq: 1 };
    deliver({ changes: [], head, upTo: 1 });
    // The read that this confirmation begins.
    await new Promise(setImmediate);
  }
  return { checks, stored, asked, confirm };
}

/** The block of the tokens 256 to 511 with a confirmation of the first one. */
function block(version: string, checked: number, readAtMs: number): CheckBlock[] {
  return [{ block: 1n, version, checked: [checked, ...Array<number>(255).fill(0)], readAt: new Date(readAtMs) }];
}

it('QuoteChecks applies a read of confirmations when the journal is confirmed at a later moment', async () => {
  const { checks, stored, asked, confirm } = world();
  stored.push(block('1', 500, 2_000), block('2', 600, 4_000));
  await confirm(1_000);
  expect(checks.of(256n)).toBe(0);
  await confirm(1_999);
  expect(checks.of(256n)).toBe(0);
  await confirm(2_000);
  expect(checks.of(256n)).toBe(500);
  expect([checks.of(257n), checks.of(512n)]).toEqual([0, 0]);
  expect(asked.at(-1)).toEqual([[1n], ['2']]);
  await confirm(4_000);
  expect(checks.of(256n)).toBe(600);
});

it('QuoteChecks forgets confirmations of another epoch', async () => {
  const { checks, stored, asked, confirm } = world();
  stored.push(block('1', 500, 1_000));
  await confirm(1_000);
  await confirm(1_000);
  expect(checks.of(256n)).toBe(500);
  await confirm(2_000, { epoch: 'f' });
  expect(checks.of(256n)).toBe(0);
  expect(asked.at(-1)).toEqual([[], []]);
});

it('QuoteChecks reads more often for ten seconds after an answer with a quote', async () => {
  const { checks, asked, confirm } = world();
  const reads = async (afterMs: number) => {
    const before = asked.length;
    await confirm(1_000, { afterMs });
    return asked.length - before;
  };
  expect(await reads(0)).toBe(1);
  expect(await reads(1_999)).toBe(0);
  expect(await reads(1)).toBe(1);
  checks.of(256n);
  expect(await reads(299)).toBe(0);
  expect(await reads(1)).toBe(1);
  expect(await reads(9_699)).toBe(1);
  expect(await reads(300)).toBe(0);
  expect(await reads(1_700)).toBe(1);
});
