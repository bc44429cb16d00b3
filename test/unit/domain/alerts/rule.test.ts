import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Observed } from '../../../../src/domain/alerts/condition.ts';
import { firingsOf, lookbackOf, type Rule } from '../../../../src/domain/alerts/rule.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { modelFirings } from '../../../support/alerts/rule-model.ts';
import { someObservations, someRule } from '../../../support/alerts/some-rules.ts';

const T = Date.UTC(2026, 0, 1);

/** Quotes as [time, price] or [time, price, bid, ask], trades as [time, price, 'x', size]. */
type Short = [seconds: number, price: number, bid?: number | 'x', last?: number];

function observations(...list: Short[]): Observed[] {
  return list.map(([seconds, price, bid, last], index) => {
    const isTrade = bid === 'x';
    const text = (value: number | undefined) => (value === undefined ? null : decimal(value));
    return {
      n: BigInt(index + 1),
      atMs: T + seconds * 1_000,
      price: decimal(price),
      bid: isTrade || bid === undefined ? null : decimal(bid),
      ask: isTrade ? null : text(last),
      size: isTrade ? text(last) : null,
    };
  });
}

function rule(fields: Partial<Omit<Rule, 'threshold'>> & Pick<Rule, 'condition'>, threshold: number): Rule {
  return {
    threshold: decimal(threshold),
    startMs: T,
    endMs: Number.POSITIVE_INFINITY,
    cooldownMs: 0,
    seesStart: false,
    ...fields,
  };
}

const placesOf = (of: Rule, ...list: Short[]) => firingsOf(of, observations(...list)).map(({ n }) => Number(n));

describe('firingsOf', () => {
  it('equals the reference model for random rules and observations', () => {
    fc.assert(
      fc.property(someRule, someObservations, (made, list) => {
        expect(firingsOf(made, list).map(({ n, atMs }) => ({ n, atMs }))).toEqual(modelFirings(made, list));
      }),
      { numRuns: 3_000 },
    );
  });

  it('gives the same firings in pieces that start with their lookback as in one run', () => {
    fc.assert(
      fc.property(someRule, someObservations, fc.array(fc.nat({ max: 60 })), (made, list, cuts) => {
        const whole = firingsOf(made, list);
        const bounds = [...new Set([0, ...cuts.filter((cut) => cut < list.length), list.length])].sort((a, b) => a - b);
        const pieces: typeof whole = [];
        for (let i = 0; i + 1 < bounds.length; i++) {
          const [from = 0, to = 0] = [bounds[i], bounds[i + 1]];
          const since = list[from]?.atMs ?? 0;
          const startMs = from === 0 ? made.startMs : Math.max(made.startMs, since);
          const needed = list.slice(0, to).filter(({ atMs }) => atMs >= startMs - lookbackOf(made));
          const before = list.slice(0, list.indexOf(needed[0] ?? (list[to] as Observed)));
          const given = [...(from === 0 ? before : before.slice(-1)), ...needed];
          const piece = { ...made, startMs, seesStart: made.seesStart && from === 0 };
          pieces.push(...firingsOf(piece, given, pieces.at(-1)));
        }
        // The start of a rule that begins after the first piece is seen by a whole evaluation only.
        if (made.seesStart && (list[bounds[1] ?? 0]?.atMs ?? 0) < made.startMs) return;
        expect(pieces).toEqual(whole);
      }),
      { numRuns: 3_000 },
    );
  });

  it('fires crosses_above when the price reaches the target from below, not while it stays', () => {
    const crosses = rule({ condition: 'crosses_above' }, 5);
    expect(placesOf(crosses, [0, 4], [1, 5], [2, 6], [3, 5], [4, 4], [5, 7])).toEqual([2, 6]);
  });

  it('fires crosses_below when the price reaches the target from above', () => {
    expect(placesOf(rule({ condition: 'crosses_below' }, 5), [0, 6], [1, 5], [2, 5], [3, 6], [4, 2])).toEqual([2, 5]);
  });

  it('fires no crossing at the first observation of an outcome', () => {
    expect(placesOf(rule({ condition: 'crosses_above' }, 5), [0, 9], [1, 9])).toEqual([]);
  });

  it('measures a crossing from the last observation before the start', () => {
    expect(placesOf(rule({ condition: 'crosses_above', startMs: T + 1_000 }, 5), [0, 4], [1, 6])).toEqual([2]);
  });

  it('measures a change from the price in effect at the start of the window', () => {
    const change = rule({ condition: 'change', windowMs: 10_000, unit: 'absolute' }, 3);
    expect(placesOf(change, [0, 1], [100, 4])).toEqual([2]);
    expect(placesOf(change, [0, 1], [5, 2], [15, 4])).toEqual([]);
    expect(placesOf(change, [0, 1], [5, 2], [14, 4])).toEqual([3]);
  });

  it('measures a change after a firing from the observation that fired', () => {
    const change = rule({ condition: 'change', windowMs: 60_000, unit: 'absolute' }, 3);
    expect(placesOf(change, [0, 1], [1, 4], [2, 5], [3, 6], [4, 7])).toEqual([2, 5]);
  });

  it('counts a change in one direction when the rule has one', () => {
    const fields = { condition: 'change', windowMs: 60_000, unit: 'percent' } as const;
    expect(placesOf(rule({ ...fields, direction: 'down' }, 50), [0, 4], [1, 8], [2, 4])).toEqual([3]);
    expect(placesOf(rule({ ...fields, direction: 'up' }, 50), [0, 8], [1, 4], [2, 6])).toEqual([3]);
    expect(placesOf(rule(fields, 50), [0, 0], [1, 9])).toEqual([]);
  });

  it('sums the notional of trades after the window start, and restarts with a firing', () => {
    const volume = rule({ condition: 'volume', windowMs: 10_000 }, 10);
    expect(placesOf(volume, [0, 5, 'x', 1], [9, 5, 'x', 1], [9, 5, 'x', 1], [10, 5, 'x', 1])).toEqual([2, 4]);
    expect(placesOf(volume, [0, 5, 'x', 1], [10, 5, 'x', 1])).toEqual([]);
  });

  it('compares a window with the mean of the windows before it, which must have volume', () => {
    const volume = rule({ condition: 'volume', windowMs: 10_000, windows: 2 }, 3);
    expect(placesOf(volume, [0, 5, 'x', 9])).toEqual([]);
    expect(placesOf(volume, [0, 2, 'x', 1], [20, 2, 'x', 1], [21, 1, 'x', 1])).toEqual([3]);
  });

  it('compares the spread of quotes only', () => {
    const spread = rule({ condition: 'spread', direction: 'at_least' }, 2);
    expect(placesOf(spread, [0, 5, 4, 6], [1, 5, 'x', 9], [2, 5], [3, 5, 5, 6])).toEqual([1]);
  });

  it('fires on the quote in effect at the start, at the time of the start', () => {
    const above = rule({ condition: 'above', startMs: T + 5_000, seesStart: true, cooldownMs: null }, 5);
    expect(firingsOf(above, observations([0, 6], [1, 4, 'x', 1]))).toEqual([{ n: 1n, atMs: T + 5_000, price: '6' }]);
    expect(placesOf(above, [0, 6], [1, 4], [6, 4])).toEqual([]);
  });

  it('fires neither at its end nor within its cool-down', () => {
    const above = rule({ condition: 'above', cooldownMs: 10_000, endMs: T + 30_000 }, 5);
    expect(placesOf(above, [0, 6], [9, 6], [10, 6], [29, 6], [30, 6])).toEqual([1, 3, 4]);
    expect(placesOf({ ...above, cooldownMs: null }, [0, 4], [1, 6], [2, 6])).toEqual([2]);
  });

  it('orders observations of one time by their number', () => {
    expect(placesOf(rule({ condition: 'crosses_above' }, 5), [1, 4], [1, 6], [1, 4], [1, 6])).toEqual([2, 4]);
  });
});
