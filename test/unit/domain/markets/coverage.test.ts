import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BesideTotal,
  type CoverageResult,
  classifyPolls,
  classifyTrades,
  classifyVenueTrades,
  HOUR_MS,
  type HourEvidence,
  judgeAgainMs,
} from '../../../../src/domain/markets/coverage.ts';
import type { VolumeRule } from '../../../../src/domain/markets/volume-witness.ts';
import { decimal, ZERO } from '../../../../src/domain/values/decimal.ts';

const RULE: VolumeRule = {
  unit: 'contracts',
  relative: 0.001,
  absolute: 1,
  delayMs: 30_000,
  leadMs: 5_000,
  settledMs: 10_000,
  marketsPerRun: 1,
};
const START_MS = 100 * HOUR_MS;
const END_MS = START_MS + HOUR_MS;

/** A total with as much stored volume around it as `blur`. */
function total(atMs: number, volume: number, sure = 0, blur = 0): BesideTotal {
  return { atMs, volume: decimal(volume), sure: decimal(sure), most: decimal(sure + blur) };
}

function anHour(fields: Partial<HourEvidence>): HourEvidence {
  return { startMs: START_MS, stored: ZERO, before: [], after: [], ...fields };
}

const BEFORE = total(START_MS - 60_000, 1_000);
const AFTER_MS = END_MS + 60_000;

describe('classifyTrades', () => {
  it('is complete when the stored volume explains the growth of the total', () => {
    const evidence = anHour({ stored: decimal(50), before: [BEFORE], after: [total(AFTER_MS, 1_050)] });
    expect(classifyTrades(evidence, RULE)).toEqual({
      class: 'complete',
      total: '50',
      tolerance: '1.05',
      fromMs: BEFORE.atMs - 30_000,
      toMs: AFTER_MS + 5_000,
    });
  });

  it('is a gap when the total grew by more than all stored trades around the hour', () => {
    const evidence = anHour({ stored: decimal(50), before: [BEFORE], after: [total(AFTER_MS, 1_090, 0, 10)] });
    expect(classifyTrades(evidence, RULE)).toMatchObject({ class: 'gap', cause: 'missing_trades', missing: '30' });
  });

  it('is a gap of the totals inside the hour when all its trades are lost', () => {
    const inside = { fromMs: START_MS + 200_000, toMs: START_MS + 900_000, growth: decimal(40), stored: ZERO };
    const result = classifyTrades(anHour({ before: [BEFORE], after: [total(AFTER_MS, 1_040)], inside }), RULE);
    expect(result).toMatchObject({ class: 'gap', missing: '40', fromMs: START_MS + 170_000, toMs: START_MS + 905_000 });
  });

  it('is quiet when the total did not move and nothing is stored', () => {
    const result = classifyTrades(anHour({ before: [BEFORE], after: [total(AFTER_MS, 1_000)] }), RULE);
    expect(result).toMatchObject({ class: 'quiet', total: '0' });
  });

  it('is unknown and no gap when the loss can lie beside an hour without a trade', () => {
    const result = classifyTrades(anHour({ before: [BEFORE], after: [total(AFTER_MS, 1_040)] }), RULE);
    expect(result).toMatchObject({ class: 'unknown', reason: 'beside_gap', missing: '40' });
  });

  it.each([
    ['no_earlier_total', { after: [total(AFTER_MS, 1_000)] }],
    ['no_later_total', { before: [BEFORE] }],
    ['total_behind', { stored: decimal(50), before: [BEFORE], after: [total(AFTER_MS, 1_010)] }],
    ['imprecise', { stored: decimal(50), before: [BEFORE], after: [total(AFTER_MS, 1_080, 0, 40)] }],
    ['not_listed', { createdMs: END_MS }],
  ] as const)('is unknown with the reason %s', (reason, fields) => {
    expect(classifyTrades(anHour(fields), RULE)).toMatchObject({ class: 'unknown', reason });
  });

  it('is unknown and never complete when the walk back through history did not read the hour', () => {
    const complete = { stored: decimal(50), before: [BEFORE], after: [total(AFTER_MS, 1_050)] };
    const end = { fromMs: START_MS - 1, reachedMs: START_MS + 1, isUnserved: true };
    expect(classifyTrades(anHour(complete), RULE)).toMatchObject({ class: 'complete' });
    expect(classifyTrades(anHour({ ...complete, history: end }), RULE)).toEqual({
      class: 'unknown',
      reason: 'history_not_served',
      fromMs: START_MS - 1,
      toMs: START_MS + 1,
    });
    const failed = { ...end, isUnserved: false };
    expect(classifyTrades(anHour({ ...complete, history: failed }), RULE)).toMatchObject({
      reason: 'history_not_read',
    });
    for (const other of [
      { ...end, reachedMs: START_MS },
      { ...end, fromMs: END_MS },
    ])
      expect(classifyTrades(anHour({ ...complete, history: other }), RULE)).toMatchObject({ class: 'complete' });
  });

  it('takes the calmest totals for what can be missing', () => {
    const before = [total(START_MS - 60_000, 1_020, 0, 20), total(START_MS - 600_000, 1_000, 20)];
    const evidence = anHour({
      stored: decimal(50),
      before,
      after: [total(AFTER_MS, 1_090, 0, 20), total(AFTER_MS + 1, 1_100, 30)],
    });
    expect(classifyTrades(evidence, RULE)).toMatchObject({ class: 'complete', total: '50' });
  });

  it('counts from 0 when the market was created in the hour', () => {
    const fields = { createdMs: START_MS + 1, stored: decimal(50) };
    const covered = classifyTrades(anHour({ ...fields, after: [total(AFTER_MS, 50)] }), RULE);
    expect(covered).toMatchObject({ class: 'complete', total: '50' });
    const lost = classifyTrades(anHour({ ...fields, after: [total(AFTER_MS, 80)] }), RULE);
    expect(lost).toMatchObject({ class: 'unknown', reason: 'no_earlier_total' });
  });
});

describe('the law of hours', () => {
  it('calls no hour complete that misses more than its tolerance, and no quiet hour a gap, when trades, totals, losses and repairs are random', () => {
    const counts: Record<string, number> = {};
    fc.assert(
      fc.property(aWorld(), (world) => {
        for (let hour = 0; hour < world.hours; hour += 1) {
          const startMs = hour * HOUR_MS;
          const result = classifyTrades(evidenceOf(world, startMs), RULE);
          const { all, missing } = truthOf(world, startMs);
          counts[result.class] = (counts[result.class] ?? 0) + 1;
          if (result.class === 'complete') {
            expect(missing).toBeLessThanOrEqual(Number(result.tolerance));
            expect(missing).toBeLessThanOrEqual(Math.max(1 + 0.001 * growthOf(world), 0.05 * (all - missing)) + 1e-9);
          }
          if (result.class === 'quiet') expect(all).toBe(0);
          if (all === 0) expect(result.class).not.toBe('gap');
          if (result.class === 'gap') expectLossBetween(world, result);
        }
      }),
      { numRuns: 3_000 },
    );
    // The law is not met by calling everything unknown.
    for (const each of ['complete', 'quiet', 'gap']) expect(counts[each]).toBeGreaterThan(100);
  });

  it('calls repaired hours complete when the same totals are counted again', () => {
    fc.assert(
      fc.property(aWorld(), (world) => {
        const repaired = { ...world, trades: world.trades.map((trade) => ({ ...trade, isLost: false })) };
        for (let hour = 0; hour < world.hours; hour += 1) {
          expect(classifyTrades(evidenceOf(repaired, hour * HOUR_MS), RULE).class).not.toBe('gap');
        }
      }),
    );
  });
});

interface Trade {
  tsMs: number;
  size: number;
  isLost: boolean;
}
interface World {
  hours: number;
  trades: Trade[];
  /** Totals with the moment that they count up to, within the delay and the lead of the venue. */
  totals: { atMs: number; countsToMs: number }[];
}

function growthOf({ trades }: World): number {
  return trades.reduce((sum, { size }) => sum + size, 0);
}

/** Trades, losses in bursts and totals of some hours; pauses of the totals stand for restarts and failed polls. */
function aWorld(): fc.Arbitrary<World> {
  const hours = 5;
  const within = fc.integer({ min: 0, max: hours * HOUR_MS - 1 });
  const trade = fc.record({ tsMs: within, size: fc.constantFrom(1, 2, 5, 40, 300) });
  // A time step of ten seconds makes trades, totals and hours meet.
  const snap = (ms: number) => ms - (ms % 10_000);
  const burst = fc.record({ fromMs: within, lastsMs: fc.constantFrom(10_000, 120_000, HOUR_MS / 2, 2 * HOUR_MS) });
  return fc
    .record({
      trades: fc.array(trade, { maxLength: 60 }),
      isSparse: fc.boolean(),
      bursts: fc.array(burst, { maxLength: 2 }),
      outages: fc.array(burst, { maxLength: 2 }),
      everyMs: fc.constantFrom(20_000, 60_000, 600_000),
      shifts: fc.array(fc.integer({ min: -RULE.delayMs, max: RULE.leadMs }), { minLength: 7, maxLength: 7 }),
    })
    .map(({ trades, isSparse, bursts, outages, everyMs, shifts }) => {
      const isIn = (ms: number, spans: typeof bursts) =>
        spans.some(({ fromMs, lastsMs }) => ms >= fromMs && ms < fromMs + lastsMs);
      const totals: World['totals'] = [];
      for (let atMs = -HOUR_MS; atMs < (hours + 1) * HOUR_MS; atMs += everyMs) {
        const shift = shifts[(atMs / everyMs + 1_000_000) % shifts.length] ?? 0;
        if (!isIn(atMs, outages))
          totals.push({ atMs, countsToMs: Math.max(atMs + shift, totals.at(-1)?.countsToMs ?? -Infinity) });
      }
      const kept = isSparse ? trades.slice(0, 6) : trades;
      return {
        hours,
        totals,
        trades: kept.map(({ tsMs, size }) => ({ tsMs: snap(tsMs), size, isLost: isIn(tsMs, bursts) })),
      };
    });
}

const sum = (trades: readonly Trade[], isChosen: (trade: Trade) => boolean) =>
  trades.reduce((all, trade) => (isChosen(trade) ? all + trade.size : all), 0);

function volumeAt({ trades }: World, { countsToMs }: World['totals'][number]): number {
  return 5_000 + sum(trades, ({ tsMs }) => tsMs <= countsToMs);
}

/** What `readHourEvidence` reads of this world: the first and the last totals, two minutes apart from the hour. */
function evidenceOf(world: World, startMs: number): HourEvidence {
  const endMs = startMs + HOUR_MS;
  const stored = (fromMs: number, toMs: number) =>
    decimal(sum(world.trades, ({ tsMs, isLost }) => !isLost && tsMs >= fromMs && tsMs < toMs));
  const beside = (each: World['totals'][number], isBefore: boolean): BesideTotal => ({
    atMs: each.atMs,
    volume: decimal(volumeAt(world, each)),
    sure: isBefore ? stored(each.atMs + RULE.leadMs + 1, startMs) : stored(endMs, each.atMs - RULE.delayMs),
    most: isBefore ? stored(each.atMs - RULE.delayMs, startMs) : stored(endMs, each.atMs + RULE.leadMs + 1),
  });
  const before = world.totals.findLast(({ atMs }) => atMs + 120_000 < startMs);
  const calmBefore = world.totals.find(({ atMs }) => atMs + 120_000 < startMs && atMs > startMs - HOUR_MS);
  const after = world.totals.find(({ atMs }) => atMs - 120_000 >= endMs);
  const calmAfter = world.totals.find(({ atMs }) => atMs - 400_000 >= endMs);
  const inner = world.totals.filter(({ atMs }) => atMs - 120_000 >= startMs && atMs + 120_000 < endMs);
  const [first] = inner;
  const last = inner.at(-1);
  return {
    startMs,
    stored: stored(startMs, endMs),
    before: [before, calmBefore].flatMap((each) => (each ? [beside(each, true)] : [])),
    after: [after, calmAfter].flatMap((each) => (each ? [beside(each, false)] : [])),
    ...(first &&
      last &&
      first !== last && {
        inside: {
          fromMs: first.atMs,
          toMs: last.atMs,
          growth: decimal(volumeAt(world, last) - volumeAt(world, first)),
          stored: stored(first.atMs - RULE.delayMs, last.atMs + RULE.leadMs + 1),
        },
      }),
  };
}

function truthOf({ trades }: World, startMs: number): { all: number; missing: number } {
  const isIn = ({ tsMs }: Trade) => tsMs >= startMs && tsMs < startMs + HOUR_MS;
  return { all: sum(trades, isIn), missing: sum(trades, (trade) => isIn(trade) && trade.isLost) };
}

function expectLossBetween({ trades }: World, { fromMs = 0, toMs = 0, missing }: CoverageResult): void {
  const lost = sum(trades, ({ tsMs, isLost }) => isLost && tsMs >= fromMs && tsMs <= toMs);
  expect(lost).toBeGreaterThanOrEqual(Number(missing));
}

describe('classifyVenueTrades', () => {
  const hour = {
    stored: decimal(1_000),
    tolerance: decimal(12),
    imprecise: ZERO,
    missing: ZERO,
    markets: 9,
    moved: 9,
    gaps: 0,
    unbounded: 0,
  };

  it.each([
    ['complete', {}],
    ['complete', { imprecise: decimal(50) }],
    ['unknown', { imprecise: decimal(51) }],
    ['unknown', { unbounded: 1 }],
    ['unknown', { reason: 'not_compared' as const }],
    ['quiet', { moved: 0, markets: 0, stored: ZERO }],
    ['gap', { gaps: 1, unbounded: 1, reason: 'not_compared' as const }],
  ])('is %s when its markets have %j', (expected, fields) => {
    expect(classifyVenueTrades({ ...hour, ...fields }).class).toBe(expected);
  });
});

describe('classifyPolls', () => {
  const pauseOf = (ms: number) => ({ pause: { fromMs: START_MS, toMs: START_MS + ms } });

  it('is observed until a pause exceeds two intervals and 30 s', () => {
    expect(classifyPolls(pauseOf(50_000), 10_000)).toEqual({ class: 'observed' });
    expect(classifyPolls(pauseOf(50_001), 10_000)).toMatchObject({
      class: 'gap',
      cause: 'poll_pause',
      fromMs: START_MS,
    });
  });

  it('is a gap when a feed lost changes, and unknown without polls', () => {
    const feedGap = { fromMs: START_MS + 1, toMs: START_MS + 2 };
    expect(classifyPolls({ ...pauseOf(1), feedGap }, 10_000)).toMatchObject({
      class: 'gap',
      cause: 'feed_gap',
      ...feedGap,
    });
    expect(classifyPolls({}, 10_000)).toEqual({ class: 'unknown', reason: 'not_observed' });
  });
});

describe('judgeAgainMs', () => {
  it('asks again a day later for a complete hour, and more and more rarely for an unknown one, when time passes', () => {
    expect(judgeAgainMs('complete', START_MS, END_MS)).toBe(END_MS + 24 * HOUR_MS);
    expect(judgeAgainMs('complete', START_MS, END_MS + 24 * HOUR_MS)).toBeNull();
    expect(judgeAgainMs('unknown', START_MS, END_MS + 48 * HOUR_MS)).toBe(END_MS + 72 * HOUR_MS);
    expect(judgeAgainMs('gap', START_MS, END_MS + 48 * HOUR_MS)).toBe(END_MS + 54 * HOUR_MS);
    expect(judgeAgainMs('gap', START_MS, END_MS + 35 * 24 * HOUR_MS)).toBeNull();
  });
});
