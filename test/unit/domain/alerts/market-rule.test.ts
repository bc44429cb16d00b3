import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { correctionsOf, type MarketChange } from '../../../../src/domain/alerts/market-rule.ts';
import { type Decimal, decimal } from '../../../../src/domain/values/decimal.ts';

type State = Pick<MarketChange, 'status' | 'winner' | 'payouts'> & { atMs?: number };

const DAY_MS = 86_400_000;
const paying = (yes: string, no: string): State['payouts'] => [
  { outcomeId: 'yes', payout: decimal(yes) },
  { outcomeId: 'no', payout: decimal(no) },
];
const OPEN: State = { status: 'open', winner: null, payouts: [] };
const YES: State = { status: 'resolved', winner: 'yes', payouts: paying('1', '0') };
const NO: State = { status: 'resolved', winner: 'no', payouts: paying('0', '1') };
const HALVES: State = { status: 'resolved', winner: null, payouts: paying('0.5', '0.5') };
const UNKNOWN: State = { status: 'resolved', winner: null, payouts: [] };
const settled = (state: State, atMs?: number): State => ({
  ...state,
  status: 'settled',
  ...(atMs !== undefined && { atMs }),
});

function changes(...states: State[]): MarketChange[] {
  return states.map(({ atMs, ...state }, index) => ({
    ...state,
    resolution: null,
    reached: [],
    n: BigInt(index),
    atMs: atMs ?? index,
    former: states[index - 1]?.status ?? null,
  }));
}

/** The places of corrections with the winners before them, when the first result was reported. */
function corrected(...states: State[]) {
  const all = changes(...states);
  const first = all.find(({ status }) => status === 'resolved' || status === 'settled');
  return correctionsOf(all, (change) => change === first).map(({ change, previousWinner }) => [
    Number(change.n),
    previousWinner,
  ]);
}

describe('correctionsOf', () => {
  it.each<[string, State[], [number, string | null][]]>([
    ['an amended result', [OPEN, YES, NO, settled(NO)], [[2, 'yes']]],
    ['a result without a winner that gets one', [OPEN, UNKNOWN, YES], [[2, null]]],
    [
      'a result that is undone and comes back',
      [OPEN, YES, OPEN, YES],
      [
        [2, 'yes'],
        [3, null],
      ],
    ],
    ['halves after a winner', [OPEN, YES, HALVES], [[2, 'yes']]],
    ['payouts that become known without a winner', [OPEN, UNKNOWN, HALVES], [[2, null]]],
    ['the payouts that a winner implies', [OPEN, { ...YES, payouts: [] }, YES, settled(YES)], []],
    ['other payouts of the same winner', [OPEN, YES, { ...YES, payouts: paying('0.9', '0') }], [[2, 'yes']]],
    ['unknown payouts of a former release', [OPEN, HALVES, { ...HALVES, payouts: null }, HALVES], []],
    [
      'a change around unknown payouts',
      [OPEN, HALVES, { ...HALVES, payouts: null }, { ...HALVES, payouts: paying('0.6', '0.4') }],
      [[3, null]],
    ],
    ['an unknown result that is undone', [OPEN, UNKNOWN, OPEN], []],
    ['a change within 30 days of the settlement', [OPEN, settled(YES, 10), settled(NO, 9 + 30 * DAY_MS)], [[2, 'yes']]],
    ['a change 30 days after the settlement', [OPEN, settled(YES, 10), settled(NO, 10 + 30 * DAY_MS), YES, NO], []],
    [
      'a change long after a settlement that was undone',
      [OPEN, settled(YES, 10), { ...NO, atMs: 20 }, { ...YES, atMs: 400 * DAY_MS }],
      [
        [2, 'yes'],
        [3, 'no'],
      ],
    ],
  ])('finds in the case of %s', (_name, states, expected) => expect(corrected(...states)).toEqual(expected));

  it('finds nothing without a report', () => {
    expect(correctionsOf(changes(OPEN, YES, NO), () => false)).toEqual([]);
  });

  it('leads from the reported winner to the last one, over any states between', () => {
    const state = fc.constantFrom(OPEN, YES, NO, HALVES, UNKNOWN, settled(YES), settled(NO));
    fc.assert(
      fc.property(fc.array(state, { minLength: 1, maxLength: 12 }), (later) => {
        const all = changes(OPEN, YES, ...later);
        const found = correctionsOf(all, ({ n }) => n === 1n);
        let told: string | null = 'yes';
        for (const { change, previousWinner } of found) {
          expect(previousWinner).toBe(told);
          told = change.status === 'open' ? null : change.winner;
        }
        const last = later.at(-1);
        expect(told).toBe(last?.status === 'open' ? null : (last?.winner ?? null));
      }),
    );
  });

  it('compares payouts without their order', () => {
    const turned = [...(paying('0.5', '0.5') ?? [])].reverse() as { outcomeId: string; payout: Decimal }[];
    expect(corrected(OPEN, HALVES, { ...HALVES, payouts: turned })).toEqual([]);
  });
});
