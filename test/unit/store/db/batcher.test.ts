import { describe, expect, it } from 'vitest';
import { createBatcher, oncePerOwner } from '../../../../src/store/db/batcher.ts';

/** A batcher whose runs end on request. */
function held(options: { maxItems?: number; isWorthSplitting?: (error: unknown) => boolean } = {}) {
  const runs: { items: readonly string[]; end: (failure?: Error) => void }[] = [];
  const ask = createBatcher<string, string>({
    maxItems: 3,
    ...options,
    run: (items) =>
      new Promise((resolve, reject) => {
        runs.push({ items, end: (failure) => (failure ? reject(failure) : resolve(items.map((item) => `${item}!`))) });
      }),
  });
  return { runs, ask };
}

/** Resolves after the continuations of settled promises have run. */
const aTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('createBatcher', () => {
  it('runs a first item at once, and batches later items in order while a run is in flight', async () => {
    const { runs, ask } = held();
    const answers = ['a', 'b', 'c', 'd', 'e'].map(ask);
    expect(runs.map(({ items }) => items)).toEqual([['a']]);
    runs[0]?.end();
    expect(await answers[0]).toBe('a!');
    await aTurn();
    expect(runs[1]?.items).toEqual(['b', 'c', 'd']);
    runs[1]?.end();
    expect(await Promise.all(answers.slice(1, 4))).toEqual(['b!', 'c!', 'd!']);
    await aTurn();
    runs[2]?.end();
    expect(await answers[4]).toBe('e!');
    await aTurn();
    void ask('f');
    expect(runs[3]?.items).toEqual(['f']);
  });

  it('rejects only the items of a failed run and continues', async () => {
    const { runs, ask } = held();
    const answers = ['a', 'b', 'c'].map((item) => ask(item).catch((error: Error) => error.message));
    runs[0]?.end();
    await answers[0];
    await aTurn();
    runs[1]?.end(new Error('lost'));
    expect(await Promise.all(answers)).toEqual(['a!', 'lost', 'lost']);
    await aTurn();
    const later = ask('d');
    runs[2]?.end();
    expect(await later).toBe('d!');
  });

  it('runs each item alone when isWorthSplitting accepts the error', async () => {
    const tried: string[] = [];
    const ask = createBatcher<string, string>({
      maxItems: 10,
      isWorthSplitting: (error) => error instanceof RangeError,
      run: async (items) => {
        tried.push(items.join(''));
        if (items.includes('x')) throw new RangeError('x');
        return items;
      },
    });
    const answers = ['a', 'b', 'x', 'c'].map((item) => ask(item).catch(() => 'refused'));
    expect(await Promise.all(answers)).toEqual(['a', 'b', 'refused', 'c']);
    expect(tried).toEqual(['a', 'bxc', 'b', 'x', 'c']);
  });
});

it('oncePerOwner calls make once per owner', () => {
  let made = 0;
  const of = oncePerOwner((_owner: object) => {
    made += 1;
    return made;
  });
  const [one, other] = [{}, {}];
  expect([of(one), of(other), of(one)]).toEqual([1, 2, 1]);
});
