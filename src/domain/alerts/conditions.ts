import type {
  BookCondition,
  ConditionDefinition,
  MarketCondition,
  OutcomeCondition,
  ProbeFacts,
  ProbePart,
  ProbeRange,
  RuleShape,
  ThresholdField,
  WindowFacts,
} from './condition.ts';
import { change } from './conditions/change.ts';
import { crossesAbove, crossesBelow } from './conditions/crossing.ts';
import { executable, netDifference } from './conditions/executable.ts';
import { newMarket, resolution, status } from './conditions/market.ts';
import { above, below } from './conditions/price.ts';
import { spread } from './conditions/spread.ts';
import { trade } from './conditions/trade.ts';
import { volume } from './conditions/volume.ts';

export const OUTCOME_CONDITIONS = {
  above,
  below,
  crosses_above: crossesAbove,
  crosses_below: crossesBelow,
  change,
  spread,
  trade,
  volume,
} as const satisfies Readonly<Record<string, OutcomeCondition>>;

export const MARKET_CONDITIONS = { status, new_market: newMarket, resolution } as const satisfies Readonly<
  Record<string, MarketCondition>
>;

export const BOOK_CONDITIONS = { executable, net_difference: netDifference } as const satisfies Readonly<
  Record<string, BookCondition>
>;

export type OutcomeConditionName = keyof typeof OUTCOME_CONDITIONS;
export type MarketConditionName = keyof typeof MARKET_CONDITIONS;
export type BookConditionName = keyof typeof BOOK_CONDITIONS;
export type Condition = OutcomeConditionName | MarketConditionName | BookConditionName;

/** The names of all conditions, in the order of docs/alerts.md. */
export const OUTCOME_CONDITION_NAMES = Object.keys(OUTCOME_CONDITIONS) as OutcomeConditionName[];
export const MARKET_CONDITION_NAMES = Object.keys(MARKET_CONDITIONS) as MarketConditionName[];
export const BOOK_CONDITION_NAMES = Object.keys(BOOK_CONDITIONS) as BookConditionName[];
export const CONDITIONS: readonly Condition[] = [
  ...OUTCOME_CONDITION_NAMES,
  ...MARKET_CONDITION_NAMES,
  ...BOOK_CONDITION_NAMES,
];

/** The conditions of the specification: the price of a token reaches a target. */
export const ALERT_CONDITIONS = ['above', 'below'] as const satisfies OutcomeConditionName[];
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];

const TABLE: Readonly<Record<Condition, ConditionDefinition>> = {
  ...OUTCOME_CONDITIONS,
  ...MARKET_CONDITIONS,
  ...BOOK_CONDITIONS,
};

export function conditionOf(name: Condition): ConditionDefinition {
  return TABLE[name];
}

export function isMarketCondition(name: Condition): name is MarketConditionName {
  return TABLE[name].of === 'market';
}

export function isBookCondition(name: Condition): name is BookConditionName {
  return TABLE[name].of === 'book';
}

/** Whether a condition watches markets that do not exist yet, so that it needs a scope and no token. */
export function isOfNewMarkets(name: Condition): boolean {
  const condition = TABLE[name];
  return condition.of === 'market' && condition.needsScope;
}

/** The condition of an event's body; undefined for another text. */
export function findCondition(name: string | undefined): ConditionDefinition | undefined {
  return name !== undefined && Object.hasOwn(TABLE, name) ? TABLE[name as Condition] : undefined;
}

/** The API's field that holds the threshold of an alert; null without one. */
export function thresholdField(alert: { condition: Condition } & Pick<RuleShape, 'windows'>): ThresholdField | null {
  return TABLE[alert.condition].threshold(alert);
}

/** The part of the index of rules that contains an alert. */
export function probeOf(alert: { condition: Condition } & RuleShape): string {
  return TABLE[alert.condition].probe(alert);
}

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
