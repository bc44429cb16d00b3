import type { Figure, Goal } from './figure.ts';

/** The result of one size of a curve. */
export interface CurvePoint {
  /** The size and its unit: `10,000 endpoints`. */
  size: string;
  /** The text for a person. */
  measured: string;
  /** The number that is compared with the smallest size's. */
  value: number;
}

/** A row per size, each compared with the first one, the smallest. */
export function curve(title: string, points: readonly CurvePoint[], goal?: Goal): Figure[] {
  const [smallest, ...larger] = points;
  if (smallest === undefined) return [];
  const row = ({ size, measured }: CurvePoint) => ({ title: `${title}, ${size}`, measured });
  return [
    { ...row(smallest), baseline: 'the smallest size' },
    ...larger.map((point) => ({
      ...row(point),
      baseline: `${smallest.size}: ${smallest.measured}`,
      ratio: point.value / smallest.value,
      ...(goal !== undefined && { goal }),
    })),
  ];
}
