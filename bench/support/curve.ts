import type { Figure, Goal } from './figure.ts';

/** The result of one size of a curve. */
export interface CurvePoint {
  /** The size and its unit: `10,000 endpoints`. */
  size: string;
  /** As a person reads it. */
  measured: string;
  /** The number that is compared with that of the smallest size. */
  value: number;
}

/** A row per size, each against the first one, which is the smallest. */
export function curve(what: string, points: readonly CurvePoint[], goal?: Goal): Figure[] {
  const [smallest, ...larger] = points;
  if (smallest === undefined) return [];
  const row = ({ size, measured }: CurvePoint) => ({ what: `${what}, ${size}`, measured });
  return [
    { ...row(smallest), baseline: 'the smallest of the curve' },
    ...larger.map((point) => ({
      ...row(point),
      baseline: `${smallest.size}: ${smallest.measured}`,
      ratio: point.value / smallest.value,
      ...(goal !== undefined && { goal }),
    })),
  ];
}
