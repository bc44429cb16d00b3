/** One value of a figure: seconds since the beginning of the run, and the value. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A least-squares line. `low` and `high` are the bounds of the slope's two-sided 95 % interval (Student's t). */
export interface Line {
  readonly slope: number;
  readonly low: number;
  readonly high: number;
  readonly mean: number;
}

/** Two-sided 95 % quantiles of Student's t for 1, 2, 3, ... degrees of freedom; beyond the list as for the last one. */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086,
];

/** The line through these points; null with fewer than three points, or when all have the same x. */
export function fitLine(points: readonly Point[]): Line | null {
  const n = points.length;
  if (n < 3) return null;
  const meanX = average(points.map(({ x }) => x));
  const mean = average(points.map(({ y }) => y));
  const spreadX = sum(points.map(({ x }) => (x - meanX) ** 2));
  if (spreadX === 0) return null;
  const slope = sum(points.map(({ x, y }) => (x - meanX) * (y - mean))) / spreadX;
  const residual = sum(points.map(({ x, y }) => (y - mean - slope * (x - meanX)) ** 2));
  const t = T_95[Math.min(n - 2, T_95.length) - 1] ?? Number.POSITIVE_INFINITY;
  const margin = t * Math.sqrt(residual / (n - 2) / spreadX);
  return { slope, low: slope - margin, high: slope + margin, mean };
}

/** The point of one stretch of time: its median, or its minimum for a sawtooth. */
export type Reduction = 'middle' | 'least';

/**
 * One point for each of `count` equally long stretches of time. Neighbouring samples of one process are correlated, so a line
 * through all of them would seem too certain; stretches longer than a tooth of a sawtooth are nearly independent.
 */
export function batches(points: readonly Point[], count: number, reduction: Reduction): Point[] {
  const xs = points.map(({ x }) => x);
  const from = Math.min(...xs);
  const width = (Math.max(...xs) - from) / count;
  if (points.length <= count || width === 0) return [...points];
  const groups = Array.from({ length: count }, (): Point[] => []);
  for (const point of points) groups[Math.min(count - 1, Math.floor((point.x - from) / width))]?.push(point);
  return groups.flatMap((group) => {
    const sorted = group.map(({ y }) => y).sort((a, b) => a - b);
    const y = sorted[reduction === 'least' ? 0 : Math.floor(sorted.length / 2)];
    return y === undefined ? [] : [{ x: average(group.map(({ x }) => x)), y }];
  });
}

/** The tolerance of a figure that must be flat. */
export interface FlatRule {
  readonly reduction: Reduction;
  /** Growth over the measured time that counts as noise, in the figure's own unit. */
  readonly floor: number;
  /** The same as a share of the figure's mean, 0..1. */
  readonly share: number;
  /** The length of a tooth of a sawtooth: a stretch of time must contain one. */
  readonly toothSeconds?: number;
}

export type Verdict = 'flat' | 'GROWS' | 'too short';

export interface Judgement {
  /** The slope of the reduced points, per second. */
  readonly line: Line | null;
  readonly verdict: Verdict;
}

const BATCHES = 12;
/** The minimum number of returns of a figure to its low point for a judgement. */
const LEAST_TEETH = 4;

/**
 * Whether a figure grew: the smallest slope that its samples allow (the lower 95 % bound), held for the measured time, exceeds
 * both the floor and the share of the mean. A single limit would give false alarms: small figures vary by large shares,
 * large ones by large amounts, and of forty constant figures two have a slope "significantly" above zero.
 */
export function judgeFlat(
  points: readonly Point[],
  { reduction, floor, share, toothSeconds = 0 }: FlatRule,
): Judgement {
  const teeth = toothSeconds > 0 ? Math.floor(lengthOf(points) / toothSeconds) : Number.POSITIVE_INFINITY;
  if (teeth < LEAST_TEETH) return { line: null, verdict: 'too short' };
  const reduced = batches(points, Math.min(BATCHES, teeth), reduction);
  const line = fitLine(reduced);
  const [first, last] = [reduced[0], reduced.at(-1)];
  if (!line || !first || !last) return { line, verdict: 'too short' };
  const leastGrowth = line.low * (last.x - first.x);
  const isGrowing = leastGrowth > floor && leastGrowth > share * Math.abs(line.mean);
  return { line, verdict: isGrowing ? 'GROWS' : 'flat' };
}

/** Seconds between the first point and the last. */
function lengthOf(points: readonly Point[]): number {
  return (points.at(-1)?.x ?? 0) - (points[0]?.x ?? 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function average(values: readonly number[]): number {
  return sum(values) / values.length;
}
