import { describe, expect, it } from 'vitest';
import { createAnswerCache, type LoadedAnswer } from '../../../api/reads/answer-cache.ts';
import { JournalView, MAX_STALE_MS, type NamedKind } from '../../../api/reads/journal-view.ts';
import type { Change, ChangeKind } from '../../../src/domain/live/change.ts';
import type { JournalBatch } from '../../../src/store/journal/tail.ts';
import { gate } from '../../support/gate.ts';

const SUBJECT = { venue: 'polymarket', marketId: 'm' };
const KINDS: ReadonlySet<NamedKind> = new Set(['trade', 'volumes']);
const STAMP = { epoch: 'e', seq: 5 };

/** A tail that delivers on request, and the cache on top of it. */
function world({ maxNamed = 100 } = {}) {
  const clock = { nowMs: 1_000_000 };
  const listeners: ((batch: JournalBatch) => void)[] = [];
  const tail = {
    staleMs: () => 0,
    on(listener: (batch: JournalBatch) => void) {
      listeners.push(listener);
      return () => undefined;
    },
  };
  const view = new JournalView(tail, () => clock.nowMs, maxNamed);
  const cache = createAnswerCache({ journal: view, now: () => clock.nowMs });
  let seq = 5;
  function deliver(changes: readonly Change[], over: Partial<JournalBatch> & { epoch?: string; behind?: number } = {}) {
    const { epoch = 'e', behind = 0, ...batch } = over;
    const head = { epoch, seq: seq + behind, checkedAt: new Date(0), readAt: new Date(0), oldestSeq: 1 };
    for (const listener of listeners) listener({ changes, head, upTo: seq, ...batch });
  }
  const change = (kind: ChangeKind, over: Partial<Change> = {}): Change => {
    seq += 1;
    return { seq, at: new Date(0), kind, ...SUBJECT, body: {}, ...over };
  };
  let loads = 0;
  const read = (over: { stamp?: typeof STAMP; forMs?: number; until?: Promise<void> } = {}) =>
    cache.fetch('key', async (): Promise<LoadedAnswer> => {
      loads += 1;
      const data = String(loads);
      await over.until;
      const { stamp = { ...STAMP, seq }, forMs } = over;
      return {
        answer: { data, meta: '', extraBytes: 0, etag: '', freshness: 'latest' },
        validity: { stamp, subjects: [SUBJECT], kinds: KINDS, ...(forMs !== undefined && { forMs }) },
      };
    });
  deliver([]);
  return { clock, cache, change, deliver, read, view, loads: () => loads };
}

/** Advances the time while the journal stays confirmed. */
function pass({ clock, deliver }: Pick<ReturnType<typeof world>, 'clock' | 'deliver'>, ms: number) {
  clock.nowMs += ms;
  deliver([]);
}

describe('the view of the journal', () => {
  it('resets again with the next batch when a listener fails at the first one of another epoch', () => {
    const { view, deliver } = world();
    let resets = 0;
    view.onReset(() => {
      resets += 1;
      if (resets === 1) throw new Error('unexpected');
    });
    expect(() => deliver([], { epoch: 'other' })).toThrow('unexpected');
    deliver([], { epoch: 'other' });
    deliver([], { epoch: 'other' });
    expect(resets).toBe(2);
  });
});

describe('a prepared answer', () => {
  it('stays valid until the journal names its market and one of its kinds', async () => {
    const run = world();
    await run.read();
    pass(run, 5_000);
    run.deliver([run.change('price'), run.change('trade', { marketId: 'another' })]);
    await run.read();
    expect(run.loads()).toBe(1);
    run.deliver([run.change('trade')]);
    await run.read();
    expect(run.loads()).toBe(2);
    run.deliver([run.change('facts', { marketId: '', body: { about: 'volumes', market_ids: ['x', 'm'] } })]);
    await run.read();
    expect(run.loads()).toBe(3);
  });

  it('is not kept when its read began before a change that was named during the read', async () => {
    const run = world();
    const slow = gate();
    const before = run.read({ stamp: STAMP, until: slow.opened });
    run.deliver([run.change('trade')]);
    slow.open();
    expect((await before).data).toBe('1');
    expect((await run.read()).data).toBe('2');
  });

  it('is kept when it already contains the change that is named later', async () => {
    const run = world();
    const change = run.change('trade');
    await run.read({ stamp: { epoch: 'e', seq: change.seq } });
    run.deliver([change]);
    await run.read();
    expect(run.loads()).toBe(1);
  });

  it('is not kept from a server that is behind the journal', async () => {
    const run = world();
    run.deliver([run.change('trade')]);
    await run.read({ stamp: STAMP });
    await run.read();
    expect(run.loads()).toBe(2);
  });

  it('is not kept when the changes since its read are forgotten', async () => {
    const run = world({ maxNamed: 1 });
    run.deliver([run.change('trade'), run.change('price', { marketId: 'another' })]);
    await run.read({ stamp: STAMP });
    await run.read();
    expect(run.loads()).toBe(2);
  });

  it('is a second old at most while the journal is not confirmed, and valid again after it', async () => {
    const run = world();
    await run.read();
    run.clock.nowMs += MAX_STALE_MS;
    expect(run.view.isConfirmed).toBe(true);
    run.clock.nowMs += 1;
    expect(run.view.isConfirmed).toBe(false);
    await run.read();
    expect(run.loads()).toBe(2);
    run.clock.nowMs += 999;
    await run.read();
    expect(run.loads()).toBe(2);
    run.deliver([], { behind: 3 });
    expect(run.view.isConfirmed).toBe(false);
    run.clock.nowMs += 5_000;
    run.deliver([]);
    await run.read();
    expect(run.loads()).toBe(2);
  });

  it('expires at its own boundary, and after a minute in any case', async () => {
    const run = world();
    await run.read({ forMs: 2_500 });
    pass(run, 2_499);
    await run.read({ forMs: 2_500 });
    expect(run.loads()).toBe(1);
    pass(run, 1);
    await run.read();
    expect(run.loads()).toBe(2);
    pass(run, 59_999);
    await run.read();
    expect(run.loads()).toBe(2);
    pass(run, 1);
    await run.read();
    expect(run.loads()).toBe(3);
  });

  it.each([
    { name: 'another epoch', over: { epoch: 'f' } },
    { name: 'dropped changes', over: { missed: { from: 6, to: 9 } } },
  ])('ends with $name of the journal', async ({ over }) => {
    const run = world();
    await run.read();
    run.deliver([], over);
    await run.read({ stamp: { epoch: over.epoch ?? 'e', seq: 5 } });
    expect(run.loads()).toBe(2);
  });
});
