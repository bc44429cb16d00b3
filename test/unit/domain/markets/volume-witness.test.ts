import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareTotal as compareExactly,
  coveredShare as coveredShareOf,
  flooredShare,
  isComparable,
  measuredUnit,
  type VolumeRule,
  volumeRuleOf,
} from '../../../../src/domain/markets/volume-witness.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';

const RULE: VolumeRule = {
  unit: 'contracts',
  relative: 0,
  absolute: 0.5,
  delayMs: 30,
  leadMs: 5,
  settledMs: 20,
  marketsPerRun: 1,
};

/** The comparison in numbers, which are exact for the small values of these tests. */
interface CountedTotal {
  total: number;
  folded: number;
  edge: number;
  recent: number;
}
interface WitnessState {
  baseline: number;
  lowest: number;
  total: number;
  isMissing: boolean;
}
type Comparison = ReturnType<typeof compareTotal>;

function exact({ total, folded, edge, recent }: CountedTotal): Parameters<typeof compareExactly>[1] {
  return { total: decimal(total), folded: decimal(folded), edge: decimal(edge), recent: decimal(recent) };
}

function compareTotal(state: WitnessState | null, total: CountedTotal, rule: VolumeRule, proof?: CountedTotal) {
  const { isMissing = false } = state ?? {};
  const known = state && {
    baseline: decimal(state.baseline),
    lowest: decimal(state.lowest),
    total: decimal(state.total),
    isMissing,
  };
  const { baseline, lowest, stored, missing, ...rest } = compareExactly(
    known,
    exact(total),
    rule,
    proof && exact(proof),
  );
  const figures = {
    baseline: Number(baseline),
    lowest: Number(lowest),
    stored: Number(stored),
    missing: Number(missing),
  };
  return { ...rest, ...figures };
}

const coveredShare = (stored: number, volume: number) => coveredShareOf(decimal(stored), decimal(volume));

const counted = (total: number, stored: { folded?: number; edge?: number; recent?: number } = {}) => {
  return { total, folded: 0, edge: 0, recent: 0, ...stored };
};
const stateAfter = ({ baseline, lowest, outcome }: Comparison, total: number): WitnessState => {
  return { baseline, lowest, total, isMissing: outcome === 'missing' };
};

describe('compareTotal', () => {
  it('begins at the first total, less the stored volume that the total contains', () => {
    const first = compareTotal(null, counted(1_000, { folded: 50, edge: 3, recent: 2 }), RULE);
    expect(first).toEqual({ outcome: 'restarted', baseline: 997, lowest: 995, stored: 5, missing: 0 });
  });

  it('reports a loss when the total grows by more than the stored volume and the tolerance', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 1_000, isMissing: false };
    expect(compareTotal(state, counted(1_010.5, { folded: 10 }), RULE).outcome).toBe('covered');
    expect(compareTotal(state, counted(1_011, { folded: 10 }), RULE)).toMatchObject({ outcome: 'missing', missing: 1 });
    const relative = { ...RULE, relative: 0.1 };
    expect(compareTotal(state, counted(1_011, { folded: 10 }), relative).outcome).toBe('covered');
  });

  it('accepts a total that lags behind the trades, and one that is ahead of its time by the lead', () => {
    const state = { baseline: 1_000, lowest: 990, total: 1_000, isMissing: false };
    expect(compareTotal(state, counted(1_000, { folded: 10, recent: 40 }), RULE).outcome).toBe('covered');
    expect(compareTotal(state, counted(1_050, { folded: 10, recent: 40 }), RULE).outcome).toBe('covered');
  });

  it('tightens its baseline at a total with few trades around it', () => {
    const busy = compareTotal(null, counted(1_000, { edge: 0, recent: 40 }), RULE);
    const quiet = compareTotal(stateAfter(busy, 1_000), counted(1_000, { folded: 0, edge: 40 }), RULE);
    expect(quiet.baseline).toBe(960);
    const lost = compareTotal(stateAfter(quiet, 1_000), counted(1_002, { folded: 40 }), RULE);
    expect(lost).toMatchObject({ outcome: 'missing', missing: 2 });
  });

  it('does not tighten its baseline by a total that is older than the delay allows', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 1_000, isMissing: false };
    const stale = compareTotal(state, counted(1_000, { folded: 80 }), RULE);
    expect(stale).toMatchObject({ outcome: 'covered', baseline: 1_000, lowest: 1_000 });
    expect(compareTotal(stateAfter(stale, 1_000), counted(1_080, { folded: 80 }), RULE).outcome).toBe('covered');
  });

  it('keeps the loss until late trades cover it', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 1_010, isMissing: true };
    const some = compareTotal(state, counted(1_010, { folded: 6 }), RULE);
    expect(some).toMatchObject({ outcome: 'missing', missing: 4, baseline: 1_000 });
    expect(compareTotal(state, counted(1_010, { folded: 10 }), RULE)).toMatchObject({ outcome: 'covered', missing: 0 });
  });

  it('keeps the loss that an earlier total proves while later trades hide it', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 1_010, isMissing: true };
    const proof = counted(1_010, { folded: 3 });
    const hidden = compareTotal(state, counted(1_012, { folded: 3, recent: 9 }), RULE, proof);
    expect(hidden).toEqual({ outcome: 'missing', baseline: 1_000, lowest: 1_000, stored: 5, missing: 7 });
    const covered = counted(1_010, { folded: 10 });
    expect(compareTotal(state, counted(1_012, { folded: 12 }), RULE, covered).outcome).toBe('covered');
  });

  it('reports a growing loss when it exceeds the greatest loss that the proof allows', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 1_010, isMissing: true };
    const proof = counted(1_010, { folded: 3, recent: 4 });
    const varied = compareTotal(state, counted(1_017, { folded: 10 }), RULE, proof);
    expect(varied).toMatchObject({ missing: 7, isProof: true });
    expect(varied).not.toHaveProperty('hasGrown');
    expect(compareTotal(state, counted(1_018, { folded: 10 }), RULE, proof)).toMatchObject({ hasGrown: true });
    expect(compareTotal({ ...state, isMissing: false }, counted(1_009), RULE)).toMatchObject({ hasGrown: true });
  });

  it('begins anew when the venue takes back the total that showed a loss', () => {
    const state = { baseline: 1_000, lowest: 1_000, total: 9_000, isMissing: true };
    const after = compareTotal(state, counted(1_020, { folded: 20, edge: 1, recent: 2 }), RULE);
    expect(after).toEqual({ outcome: 'restarted', baseline: 1_019, lowest: 1_017, stored: 3, missing: 0 });
    const ignored = { ...state, isMissing: false };
    expect(compareTotal(ignored, counted(1_020, { folded: 20 }), RULE).outcome).toBe('covered');
  });
});

describe('compareTotal on decimals', () => {
  it('counts every digit of large totals', () => {
    const parts = { folded: decimal('99999999999999999.1'), edge: decimal('0.2'), recent: decimal('0') };
    const state = {
      baseline: decimal('0'),
      lowest: decimal('0'),
      total: decimal('99999999999999999.3'),
      isMissing: false,
    };
    const rule = { ...RULE, absolute: 0 };
    const covered = compareExactly(state, { ...parts, total: decimal('99999999999999999.3') }, rule);
    expect(covered).toMatchObject({ outcome: 'covered', stored: '99999999999999999.3', missing: '0' });
    const missing = compareExactly(state, { ...parts, total: decimal('99999999999999999.4') }, rule);
    expect(missing).toMatchObject({ outcome: 'missing', missing: '0.1' });
  });
});

describe('compareTotal against a market with lags', () => {
  /** Times in ticks. The total lags by up to the delay, or is ahead by the lead; a trade is stored before its totals settle. */
  const trade = fc.record({
    at: fc.integer({ min: 0, max: 2_000 }),
    size: fc.integer({ min: 1, max: 20 }),
    isLost: fc.boolean(),
  });
  const sample = fc.record({
    at: fc.integer({ min: 100, max: 2_000 }),
    lag: fc.integer({ min: -RULE.leadMs, max: RULE.delayMs }),
  });
  interface Traded {
    at: number;
    size: number;
    isLost: boolean;
  }

  function replay(trades: readonly Traded[], samples: readonly { at: number; lag: number }[], isStored: boolean) {
    const sum = (from: number, to: number, chosen: (one: Traded) => boolean) =>
      trades.filter((one) => one.at > from && one.at <= to && chosen(one)).reduce((all, { size }) => all + size, 0);
    const kept = (one: Traded) => isStored || !one.isLost;
    let state: WitnessState | null = null;
    let proof: { parts: CountedTotal; lost: number } | undefined;
    let total = 500;
    let origin = 0;
    /** The least volume that an earlier total may contain beyond the start of its window. */
    let mask = Number.POSITIVE_INFINITY;
    return samples
      .toSorted((a, b) => a.at - b.at)
      .map(({ at, lag }) => {
        // A lifetime total never falls.
        total = Math.max(total, 500 + sum(-1, at - lag, () => true));
        const from = at - RULE.delayMs;
        if (state === null) origin = from;
        const parts = {
          total,
          folded: 0,
          edge: sum(origin, from, kept),
          recent: sum(from, at + RULE.leadMs, kept),
        };
        // This part certainly lies in the total and not behind an earlier one, and is not stored.
        const proven = state === null ? 0 : total - parts.edge - parts.recent - mask;
        const result = compareTotal(state, parts, RULE, proof?.parts);
        if (result.outcome !== 'missing') mask = Math.min(mask, total - parts.edge);
        state = stateAfter(result, total);
        const lost = isStored ? 0 : sum(-1, at - lag, ({ isLost }) => isLost);
        const grown = lost - (proof?.lost ?? 0);
        if (result.outcome !== 'missing') proof = undefined;
        else if (result.isProof) proof = { parts, lost };
        return { result, proven, grown };
      });
  }

  function forEveryMarket(check: (trades: readonly Traded[], samples: readonly { at: number; lag: number }[]) => void) {
    const walks = [fc.array(trade, { maxLength: 60 }), fc.array(sample, { minLength: 1, maxLength: 40 })] as const;
    fc.assert(fc.property(...walks, check), { numRuns: 500 });
  }

  it('raises no alarm while all trades are stored', () => {
    forEveryMarket((trades, samples) => {
      for (const { result } of replay(trades, samples, true)) expect(result.outcome).not.toBe('missing');
    });
  });

  it('reports every loss above the tolerance and the volume that the earlier totals may contain', () => {
    forEveryMarket((trades, samples) => {
      for (const { result, proven } of replay(trades, samples, false)) {
        if (proven > RULE.absolute) expect(result.outcome).toBe('missing');
      }
    });
  });

  it('reports a growing loss only when trades were lost after the proof', () => {
    forEveryMarket((trades, samples) => {
      for (const { result, grown } of replay(trades, samples, false)) {
        if (result.hasGrown) expect(grown).toBeGreaterThan(0);
      }
    });
  });

  it('reports no loss that did not happen, and never more than was lost', () => {
    forEveryMarket((trades, samples) => {
      const lost = trades.filter(({ isLost }) => isLost).reduce((all, { size }) => all + size, 0);
      for (const { result } of replay(trades, samples, false)) expect(result.missing).toBeLessThanOrEqual(lost);
    });
  });
});

describe('isComparable', () => {
  it('excludes multiple-choice markets of Manifold and pools of Limitless', () => {
    const manifold = volumeRuleOf('manifold');
    const limitless = volumeRuleOf('limitless');
    const kalshi = volumeRuleOf('kalshi');
    if (!manifold || !limitless || !kalshi) throw new Error('no rule');
    expect(isComparable(manifold, { hasBook: false })).toBe(true);
    expect(isComparable(manifold, { hasBook: false, eventId: 'e' })).toBe(false);
    expect(isComparable(limitless, { hasBook: false })).toBe(false);
    expect(isComparable(limitless, { hasBook: true, eventId: 'e' })).toBe(true);
    expect(isComparable(kalshi, { hasBook: false, eventId: 'e' })).toBe(true);
    expect(volumeRuleOf('solana')).toBeUndefined();
  });
});

describe('measuredUnit', () => {
  it('changes when many markets match the other unit, and few the assumed one', () => {
    expect(measuredUnit('notional', { inUnit: 0, inOther: 20 })).toBe('contracts');
    expect(measuredUnit('contracts', { inUnit: 5, inOther: 20 })).toBe('notional');
    expect(measuredUnit('notional', { inUnit: 6, inOther: 20 })).toBe('notional');
    expect(measuredUnit('notional', { inUnit: 0, inOther: 19 })).toBe('notional');
    expect(measuredUnit('contracts', { inUnit: 900, inOther: 0 })).toBe('contracts');
  });
});

describe('coveredShare', () => {
  it('is 1 only when nothing is missing', () => {
    expect(coveredShare(10, 10)).toBe(1);
    expect(coveredShare(12, 10)).toBe(1);
    expect(coveredShare(0, 0)).toBe(1);
    expect(coveredShare(9.99999, 10)).toBe(0.9999);
    expect(coveredShare(0, 10)).toBe(0);
    expect(coveredShare(-1, 10)).toBe(0);
  });

  it('counts every digit, except below the error of a sum of binary floats', () => {
    expect(coveredShareOf(decimal('99999999999999999'), decimal('100000000000000000'))).toBe(1);
    expect(coveredShareOf(decimal('33.99999999999999999998'), decimal('34'))).toBe(1);
    expect(coveredShareOf(decimal('0.999999'), decimal('1'))).toBe(0.9999);
    expect([0, 0.9966, 0.99999, 1].map(flooredShare)).toEqual([0, 0.9966, 0.9999, 1]);
  });
});
