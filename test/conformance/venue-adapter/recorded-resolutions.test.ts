import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { RECORDED_VENUES } from './recordings/venues.ts';

type Raw = Record<string, unknown>;

/** The venue's own words about the result of a market. */
const WORDS: Readonly<Record<string, (raw: Raw) => unknown[]>> = {
  polymarket: (raw) => [raw['umaResolutionStatus'], raw['umaResolutionStatuses'], raw['closed'], pricesOf(raw)],
  kalshi: (raw) => [
    raw['status'],
    raw['result'],
    raw['expiration_value'] !== '' && raw['expiration_value'] !== undefined,
  ],
  manifold: (raw) => [raw['isResolved'], raw['resolution'], raw['resolutionProbability'] !== undefined],
  limitless: (raw) => [raw['status'], raw['winningOutcomeIndex']],
};

function pricesOf({ outcomePrices }: Raw): string {
  const prices = (typeof outcomePrices === 'string' ? JSON.parse(outcomePrices) : (outcomePrices ?? [])) as unknown[];
  const numbers = prices.map(Number);
  if (numbers.length === 0) return 'none';
  if (numbers.every((price) => price === 0)) return 'zeros';
  if (numbers.every((price) => price === 0.5)) return 'halves';
  return numbers.every((price) => price === 0 || price === 1) ? 'split' : 'quotes';
}

/** The steps in short: state and round, the payouts or their absence, and the facts about them. */
function shortSteps({ outcomes, resolutionSteps = [] }: MarketRecord): string {
  return resolutionSteps
    .map(({ state, round, payouts, reason, atMs, facts }) => {
      const isWhole = payouts?.every(({ outcomeId }, index) => outcomeId === outcomes[index]?.outcomeId);
      const paid =
        payouts === undefined ? reason : `${payouts.length === outcomes.length && isWhole ? 'all' : 'some'} paid`;
      return [state, round, paid, atMs && 'timed', ...Object.keys(facts ?? {})].filter(Boolean).join(' ');
    })
    .join(', ');
}

const EXPECTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  polymarket: {
    'resolved ["proposed"] true split': 'proposed 1, resolved 1 all paid timed',
    'resolved ["proposed", "resolved"] true split': 'proposed 1, resolved 1 all paid timed',
    'resolved [] true split': 'resolved all paid timed',
    '- [] true split': 'resolved all paid',
    '- - true split': 'resolved all paid',
    '- [] true zeros': 'voided not_stated',
  },
  kalshi: {
    'finalized yes true': 'resolved all paid, settled all paid timed observedValue strike',
    'finalized no true': 'resolved all paid, settled all paid timed observedValue strike',
  },
  manifold: {
    'true YES true': 'settled all paid timed',
    'true YES false': 'settled all paid timed',
    'true NO true': 'settled all paid timed',
    'true NO false': 'settled all paid timed',
    'true MKT true': 'settled all paid timed',
    'true MKT false': 'settled not_stated timed',
    'true CANCEL true': 'voided refund timed',
    'true CANCEL false': 'voided refund timed',
  },
  // No recorded market has a result.
  limitless: {},
};

describe.each(RECORDED_VENUES)('the recorded markets of $name', ({ name, recordings, parse }) => {
  const files = recordings()?.files.filter(({ kind }) => kind === 'markets');

  it.skipIf(files === undefined)('have the steps of their words when their result stands, and none before', () => {
    const found = new Map<string, Set<string>>();
    for (const { records, nowMs } of files ?? []) {
      for (const raw of records) {
        const [market] = (parse.markets?.([raw], nowMs).records ?? []) as MarketRecord[];
        if (market === undefined) continue;
        const words =
          WORDS[name]?.(raw as Raw)
            .map((word) => word ?? '-')
            .join(' ') ?? '';
        found.set(words, (found.get(words) ?? new Set()).add(shortSteps(market)));
      }
    }
    const short = [...found].map(([words, steps]) => [words, [...steps].join(' or ')] as const);
    expect(Object.fromEntries(short.filter(([, steps]) => steps !== ''))).toEqual(EXPECTED[name]);
  });
});
