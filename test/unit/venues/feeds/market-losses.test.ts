import { beforeEach, describe, expect, test } from 'vitest';
import { BURST_MS, MarketLosses } from '../../../../src/venues/feeds/market-losses.ts';

const PAUSE_MS = 1_000;
const NOTHING = { refresh: [], givenUp: [], reconnect: undefined };

describe('MarketLosses', () => {
  let losses: MarketLosses;
  let nowMs: number;

  beforeEach(() => {
    losses = new MarketLosses(PAUSE_MS);
    nowMs = 1_800_000_000_000;
  });

  function lose(...ids: string[]) {
    losses.note(ids, 'sequence_gap');
    return losses.answer(nowMs);
  }

  test('requests the snapshot of a first loss at once, and only once', () => {
    expect(lose('a')).toEqual({ ...NOTHING, refresh: ['a'] });
    nowMs += PAUSE_MS;
    expect(losses.answer(nowMs)).toEqual(NOTHING);
  });

  test('waits one pause before the second request of a burst and two before each further one', () => {
    lose('a');
    expect(lose('a')).toEqual(NOTHING);
    nowMs += PAUSE_MS - 1;
    expect(losses.answer(nowMs)).toEqual(NOTHING);
    nowMs += 1;
    expect(losses.answer(nowMs).refresh).toEqual(['a']);
    nowMs += 2 * PAUSE_MS - 1;
    expect(lose('a')).toEqual(NOTHING);
    nowMs += 1;
    expect(losses.answer(nowMs).refresh).toEqual(['a']);
  });

  test('reconnects once within a burst of losses, and then gives the market up', () => {
    const answers = Array.from({ length: 8 }, () => {
      const answer = lose('a');
      nowMs += 2 * PAUSE_MS;
      return answer;
    });
    expect(answers.flatMap(({ reconnect }, i) => (reconnect ? [i + 1] : []))).toEqual([3]);
    expect(answers.at(-1)).toEqual({ ...NOTHING, givenUp: ['a'] });
    expect(answers.slice(0, -1).flatMap(({ givenUp }) => givenUp)).toEqual([]);
  });

  test('reconnects at the third burst and gives the market up at the fifth', () => {
    const answers = Array.from({ length: 5 }, () => {
      const answer = lose('a');
      nowMs += BURST_MS;
      return answer;
    });
    expect(answers.flatMap(({ reconnect }, i) => (reconnect ? [i + 1] : []))).toEqual([3]);
    expect(answers.at(-1)).toEqual({ ...NOTHING, givenUp: ['a'] });
  });

  test('counts many losses within a burst as one', () => {
    for (let i = 0; i < 100; i += 1) {
      expect(lose('a').givenUp).toEqual([]);
      nowMs += 10;
    }
    nowMs += BURST_MS;
    expect(lose('a').reconnect).toBeUndefined();
  });

  test('forgets bursts after a long time without a loss', () => {
    for (let i = 0; i < 10; i += 1) {
      expect(lose('a')).toEqual({ ...NOTHING, refresh: ['a'] });
      nowMs += 120_000;
    }
  });

  test('requests nothing for a loss that a new subscription has ended', () => {
    lose('a');
    losses.note(['a'], 'sequence_gap');
    losses.recovered();
    nowMs += PAUSE_MS;
    expect(losses.answer(nowMs)).toEqual(NOTHING);
  });

  test('begins at zero for a market that was forgotten', () => {
    for (let i = 0; i < 4; i += 1) {
      lose('a');
      nowMs += BURST_MS;
    }
    losses.forget(['a']);
    expect(lose('a')).toEqual({ ...NOTHING, refresh: ['a'] });
  });

  test('counts each market for itself', () => {
    for (let i = 0; i < 4; i += 1) {
      lose('a');
      nowMs += BURST_MS;
    }
    expect(lose('a', 'b')).toEqual({ refresh: ['b'], givenUp: ['a'], reconnect: undefined });
  });
});
