import { describe, expect, it } from 'vitest';
import { batches, fitLine, judgeFlat, type Point } from '../../../bench/soak/slopes.ts';
import { RandomStream } from '../../../sim/random.ts';

/** A sample each ten seconds for a quarter of an hour. */
const series = (value: (x: number) => number): Point[] =>
  Array.from({ length: 90 }, (_, index) => ({ x: index * 10, y: value(index * 10) }));
const noise = (seed: number, size: number) => {
  const random = new RandomStream(seed, 1);
  return () => random.between(-size, size);
};
const RULE = { reduction: 'middle', floor: 10, share: 0.05 } as const;

describe('fitLine', () => {
  it('finds slope and interval of a textbook regression', () => {
    // Anscombe's first set: slope 0.5001, standard error 0.1179, 9 degrees of freedom.
    const x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5];
    const y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    const line = fitLine(x.map((each, index) => ({ x: each, y: y[index] ?? 0 })));
    expect(line?.slope).toBeCloseTo(0.5001, 4);
    expect(line?.low).toBeCloseTo(0.5001 - 2.262 * 0.1179, 3);
    expect(line?.high).toBeCloseTo(0.5001 + 2.262 * 0.1179, 3);
    expect(line?.mean).toBeCloseTo(7.5009, 4);
  });

  it('returns null for too few points, and for points of one moment', () => {
    expect(fitLine([])).toBeNull();
    expect(
      fitLine([
        { x: 0, y: 1 },
        { x: 1, y: 2 },
      ]),
    ).toBeNull();
    expect(fitLine([1, 2, 3].map((y) => ({ x: 5, y })))).toBeNull();
  });
});

describe('batches', () => {
  it('keep the minimum or the median of each stretch of time', () => {
    const points = [5, 1, 9, 4, 2, 8].map((y, x) => ({ x, y }));
    expect(batches(points, 2, 'least').map(({ y }) => y)).toEqual([1, 2]);
    expect(batches(points, 2, 'middle').map(({ y }) => y)).toEqual([5, 4]);
  });

  it('keep few points unchanged', () => {
    const points = [
      { x: 0, y: 1 },
      { x: 1, y: 2 },
    ];
    expect(batches(points, 12, 'least')).toEqual(points);
  });
});

describe('judgeFlat', () => {
  const seeds = Array.from({ length: 40 }, (_, seed) => seed + 1);

  it.each(seeds)('finds no growth in noise (seed %i)', (seed) => {
    const shake = noise(seed, 60);
    expect(
      judgeFlat(
        series(() => 1_000 + shake()),
        RULE,
      ).verdict,
    ).toBe('flat');
  });

  it.each(seeds)('finds growth under the same noise (seed %i)', (seed) => {
    const shake = noise(seed, 60);
    expect(
      judgeFlat(
        series((x) => 1_000 + x * 0.25 + shake()),
        RULE,
      ).verdict,
    ).toBe('GROWS');
  });

  it('finds no growth in a sawtooth with steep teeth', () => {
    const teeth = series((x) => 1_000 + ((x * 7) % 440));
    expect(judgeFlat(teeth, { ...RULE, reduction: 'least' }).verdict).toBe('flat');
  });

  it('finds growth in the low points of a sawtooth', () => {
    const teeth = series((x) => 1_000 + x * 0.2 + ((x * 7) % 440));
    expect(judgeFlat(teeth, { ...RULE, reduction: 'least' }).verdict).toBe('GROWS');
  });

  it('gives no verdict without enough low points, for any rise in between', () => {
    const risingTooth = series((x) => 1_000 + 20 * x);
    const teethOf = (toothSeconds: number) =>
      judgeFlat(risingTooth, { ...RULE, reduction: 'least', toothSeconds }).verdict;
    expect([60, 220, 230, 1_200].map(teethOf)).toEqual(['GROWS', 'GROWS', 'too short', 'too short']);
  });

  it('uses stretches that contain a tooth', () => {
    // Seven stretches of 127 s; twelve of 74 s would contain only parts of a tooth.
    const teeth = series((x) => 1_000 + (x % 120) * 10 + (x % 240 < 120 ? 0 : 1));
    const { verdict, line } = judgeFlat(teeth, { ...RULE, reduction: 'least', toothSeconds: 120 });
    expect(verdict).toBe('flat');
    expect(line?.mean).toBeLessThan(1_020);
  });

  it('ignores growth below the floor or below the share', () => {
    const steady = (perSecond: number) => series((x) => 1_000 + x * perSecond);
    expect(judgeFlat(steady(0.04), { ...RULE, floor: 10, share: 0.05 }).verdict).toBe('flat');
    expect(judgeFlat(steady(0.04), { ...RULE, floor: 10, share: 0.01 }).verdict).toBe('GROWS');
    expect(judgeFlat(steady(0.04), { ...RULE, floor: 50, share: 0.01 }).verdict).toBe('flat');
  });

  it('finds a shrinking figure flat, and gives no verdict for too few points', () => {
    expect(
      judgeFlat(
        series((x) => 1_000 - x),
        RULE,
      ).verdict,
    ).toBe('flat');
    expect(judgeFlat([{ x: 0, y: 1 }], RULE).verdict).toBe('too short');
  });
});
