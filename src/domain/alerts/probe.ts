import type { Condition, Direction, Unit } from './alert.ts';

/*
 * A probe is a range of thresholds that the new observations of an outcome may meet. Rules are indexed by `(token or scope, probe,
 * threshold)`, so a batch reads the rules that it may fire, and not the others. A probe may name too many rules, never too few.
 */

/** Lengths of windows in seconds. A rule is found by the shortest one that contains its own window. */
const WINDOW_CLASSES = [60, 300, 900, 3_600, 14_400, 86_400] as const;

interface Probed {
  condition: Condition;
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  windows?: number | undefined;
}

/** The name of the index part that contains the rule. */
export function probeOf({ condition, direction, unit, windowSeconds = 0, windows }: Probed): string {
  if (condition === 'spread') return `spread_${direction}`;
  const length =
    WINDOW_CLASSES.find((seconds) => seconds >= windowSeconds) ?? WINDOW_CLASSES[WINDOW_CLASSES.length - 1];
  if (condition === 'change') return `change_${unit}:${length}`;
  if (condition === 'volume') return windows === undefined ? `volume:${length}` : 'volume_times';
  return condition;
}

/** A probe with its parts. */
export interface Probe {
  readonly text: string;
  readonly name: string;
  /** The seconds of its window, 0 without one. */
  readonly seconds: number;
}

/** Probes are few, and a batch reads thousands of them. */
const probes = new Map<string, Probe>();

export function toProbe(text: string): Probe {
  const known = probes.get(text);
  if (known) return known;
  const [name = '', seconds] = text.split(':');
  const probe = { text, name, seconds: Number(seconds ?? 0) };
  probes.set(text, probe);
  return probe;
}

/** The extremes of new observations of an outcome. Numbers are approximate. */
export interface ProbeFacts {
  low: number;
  high: number;
  /** The price before them; null when none is known, or no threshold lies between. */
  before: number | null;
  leastSpread: number | null;
  greatestSpread: number | null;
  /** The largest notional of a new trade; null without one. */
  notional: number | null;
}

/** The extremes and the notional of a window that ends with the new observations. */
export interface WindowFacts {
  low: number;
  high: number;
  notional: number;
}

/** Thresholds are greater than 0. */
export interface ProbeRange {
  from: number;
  to: number;
}

/** A threshold may be greater than any other double. */
const ALL = Number.POSITIVE_INFINITY;
/** Widens a bound by more than the error of a double. */
const wider = (value: number) => value + Math.abs(value) * 1e-9 + 1e-12;
const narrower = (value: number) => value - Math.abs(value) * 1e-9 - 1e-12;

const upTo = (value: number | null) => (value === null ? null : { from: 0, to: wider(value) });
const from = (value: number | null) => (value === null ? null : { from: narrower(value), to: ALL });

/** Whether the observations may fire a rule of this probe at all, before its window is known. */
export function isPossible({ name }: Probe, { notional }: Pick<ProbeFacts, 'notional'>): boolean {
  return notional !== null || !name.startsWith('volume');
}

/** The thresholds of this probe that the observations may meet; null for none. `window` is given for probes with a window. */
export function rangeOf({ name }: Probe, facts: ProbeFacts, window: WindowFacts | undefined): ProbeRange | null {
  const { low, high, before, leastSpread, greatestSpread, notional } = facts;
  switch (name) {
    case 'above':
      return upTo(high);
    case 'below':
      return from(low);
    case 'crosses_above':
    case 'crosses_below': {
      const [least, greatest] = [Math.min(low, before ?? low), Math.max(high, before ?? high)];
      return least === greatest ? null : { from: narrower(least), to: wider(greatest) };
    }
    case 'spread_at_most':
      return from(leastSpread);
    case 'spread_at_least':
      return upTo(greatestSpread);
    case 'trade':
      return upTo(notional);
    case 'volume_times':
      return notional === null ? null : { from: 0, to: ALL };
    case 'volume':
      return notional === null || !window ? null : upTo(window.notional);
    case 'change_absolute':
      return window && window.high > window.low ? upTo(window.high - window.low) : null;
    case 'change_percent':
      if (!window || window.high <= window.low) return null;
      return upTo(window.low > 0 ? ((window.high - window.low) * 100) / window.low : ALL);
    default:
      return null;
  }
}
