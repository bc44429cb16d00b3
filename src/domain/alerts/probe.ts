import type { ProbeFacts, ProbePart, ProbeRange, WindowFacts } from './condition.ts';
import { OUTCOME_CONDITIONS } from './conditions.ts';

/** A part of the index of rules, as a rule names it. */
export interface Probe {
  readonly text: string;
  /** The seconds of its window, 0 without one. */
  readonly seconds: number;
  /** Absent for a rule on the state of markets. */
  readonly part: ProbePart | undefined;
}

const PARTS = new Map(Object.values(OUTCOME_CONDITIONS).flatMap(({ probes }) => Object.entries(probes)));

/** Probes are few, and a batch reads thousands of them. */
const probes = new Map<string, Probe>();

export function toProbe(text: string): Probe {
  const known = probes.get(text);
  if (known) return known;
  const [name = '', seconds] = text.split(':');
  const probe = { text, seconds: Number(seconds ?? 0), part: PARTS.get(name) };
  probes.set(text, probe);
  return probe;
}

/** Whether the observations may fire a rule of this probe at all, before its window is known. */
export function isPossible({ part }: Probe, { notional }: Pick<ProbeFacts, 'notional'>): boolean {
  return notional !== null || part?.isOfTrades !== true;
}

/** The thresholds of this probe that the observations may meet; null for none. `window` is given for probes with a window. */
export function rangeOf({ part }: Probe, facts: ProbeFacts, window: WindowFacts | undefined): ProbeRange | null {
  return part?.range(facts, window) ?? null;
}
