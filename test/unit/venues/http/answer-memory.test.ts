import { describe, expect, it } from 'vitest';
import { type AnswerReader, createAnswerMemory, readingSize } from '../../../../src/venues/http/answer-memory.ts';

interface SizedReading {
  size: number;
  json: unknown;
}

/** One request to a venue after the other. `ask` returns the bodies that were read since the last one. */
function venue(maxRows: number, { size = 1, holds }: { size?: number; holds?: () => boolean } = {}) {
  const memory = createAnswerMemory(maxRows);
  const read: unknown[] = [];
  const reader: AnswerReader<SizedReading> = {
    read(json) {
      read.push(json);
      return { size, json };
    },
    ...(holds && { holds }),
  };
  return {
    ask(request: string, body: string) {
      const last = memory.last([request], reader);
      const json = last.isKnown(body, 0) ? undefined : body;
      expect(last.readingOf({ digest: body, json, observedAt: 0 }).json).toBe(body);
      return read.splice(0);
    },
  };
}

describe('createAnswerMemory', () => {
  it('reads an answer and its first repetition, and no further one', () => {
    const { ask } = venue(10);
    expect([ask('r', 'a'), ask('r', 'a'), ask('r', 'a'), ask('r', 'a')]).toEqual([['a'], ['a'], [], []]);
  });

  it('reads an answer again after another one to the same request', () => {
    const { ask } = venue(10);
    for (const body of ['a', 'a', 'a']) ask('r', body);
    expect([ask('r', 'b'), ask('r', 'a'), ask('r', 'a'), ask('r', 'a')]).toEqual([['b'], ['a'], ['a'], []]);
  });

  it('reads the same bytes of another request', () => {
    const { ask } = venue(10);
    for (const body of ['a', 'a', 'a']) ask('r', body);
    expect(ask('other', 'a')).toEqual(['a']);
  });

  it('reads an answer whose reading does not hold at its moment, and keeps none that does not', () => {
    let isHolding = true;
    const { ask } = venue(10, { holds: () => isHolding });
    for (const body of ['a', 'a', 'a']) ask('r', body);
    isHolding = false;
    expect([ask('r', 'a'), ask('r', 'a')]).toEqual([['a'], ['a']]);
    isHolding = true;
    expect([ask('r', 'a'), ask('r', 'a')]).toEqual([['a'], []]);
  });

  it('forgets the request that was used longest ago when its bound is reached', () => {
    const { ask } = venue(10, { size: 4 });
    for (const request of ['r', 's']) for (const body of ['a', 'a', 'a']) ask(request, body);
    expect(ask('r', 'a')).toEqual([]);
    for (const body of ['a', 'a', 'a']) ask('t', body);
    expect([ask('r', 'a'), ask('t', 'a'), ask('s', 'a')]).toEqual([[], [], ['a']]);
  });

  it('keeps no reading that is larger than its bound, and none with a bound of 0', () => {
    for (const each of [venue(10, { size: 11 }), venue(0)]) {
      expect(['a', 'a', 'a'].map((body) => each.ask('r', body))).toEqual([['a'], ['a'], ['a']]);
    }
  });
});

it('readingSize counts a rejected record as eight more', () => {
  expect(readingSize(5, ['one', 'two'])).toBe(21);
});
