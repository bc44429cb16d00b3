import type { Decimal } from '../values/decimal.ts';
import type { Evaluation, Measure, Observed, Terms } from './condition.ts';
import { OUTCOME_CONDITIONS, type OutcomeConditionName } from './conditions.ts';

/** A condition on the observations of one outcome. */
export interface Rule extends Terms {
  condition: OutcomeConditionName;
  /** The first time at which it may fire, and the first one at which it may not, epoch milliseconds. */
  startMs: number;
  endMs: number;
  /** The least time between two firings; null: it fires once. */
  cooldownMs: number | null;
  /** Whether the quote in effect at the start may fire it. */
  seesStart: boolean;
  /** The only times in which it may fire, ascending: the outcome is in the scope, and has no result. Absent: always. */
  spans?: readonly Span[] | undefined;
}

/** Epoch milliseconds; the end is exclusive. */
export interface Span {
  fromMs: number;
  untilMs: number;
}

/** The firing before an observation: the state of a rule on an outcome. */
export interface LastFiring {
  n: bigint;
  atMs: number;
}

export interface Firing extends LastFiring, Measure {
  price: Decimal;
}

/** The time before an observation that its evaluation needs, in milliseconds, besides the one observation before that time. */
export function lookbackOf(rule: Pick<Rule, 'condition' | 'windowMs' | 'windows'>): number {
  return OUTCOME_CONDITIONS[rule.condition].lookbackMs?.(rule) ?? 0;
}

/** The first moment whose observations an evaluation of the rule reads, epoch milliseconds. */
export function readsSince(rule: Rule): number {
  return rule.startMs - lookbackOf(rule);
}

/**
 * Runs a rule over the observations of an outcome, in their order. The result depends on the observations alone: live evaluation gives the
 * ones of its lookback and the new ones, a backtest gives all.
 */
export class RuleRun {
  readonly #rule: Rule;
  readonly #evaluation: Evaluation;
  #last: LastFiring | undefined;
  #previous: Observed | undefined;
  #quote: Observed | undefined;
  #hasStarted = false;
  /** The place of the first span that has not ended. */
  #span = 0;

  constructor(rule: Rule, last?: LastFiring) {
    this.#rule = rule;
    this.#last = last;
    this.#evaluation = OUTCOME_CONDITIONS[rule.condition].evaluation(rule);
  }

  /** Takes the next observation; returns the firing at the start, when it comes before it, and its own. */
  observe(observed: Observed): Firing[] {
    const { startMs, endMs } = this.#rule;
    const fired = observed.atMs >= startMs ? this.finish() : [];
    this.#evaluation.enter?.(observed);
    if (observed.atMs >= startMs && observed.atMs < endMs && this.#isWithin(observed.atMs) && this.#mayFire(observed)) {
      const measure = this.#evaluation.measure(observed, this.#previous?.price);
      if (measure) fired.push(this.#fire({ n: observed.n, atMs: observed.atMs, price: observed.price, ...measure }));
    }
    this.#leave(observed);
    return fired;
  }

  /** States that no further observation precedes the start; returns the firing on the quote in effect. */
  finish(): Firing[] {
    const { startMs, endMs, seesStart } = this.#rule;
    if (this.#hasStarted) return [];
    this.#hasStarted = true;
    const quote = this.#quote;
    if (!seesStart || !quote || startMs >= endMs || !this.#mayFire({ n: quote.n, atMs: startMs })) return [];
    const measure = this.#evaluation.measure(quote, this.#previous?.price);
    return measure ? [this.#fire({ n: quote.n, atMs: startMs, price: quote.price, ...measure })] : [];
  }

  #isWithin(atMs: number): boolean {
    const { spans } = this.#rule;
    if (spans === undefined) return true;
    while (atMs >= (spans[this.#span]?.untilMs ?? Number.POSITIVE_INFINITY)) this.#span += 1;
    const span = spans[this.#span];
    return span !== undefined && atMs >= span.fromMs;
  }

  #mayFire({ n, atMs }: LastFiring): boolean {
    const last = this.#last;
    if (!last) return true;
    const { cooldownMs } = this.#rule;
    return cooldownMs !== null && n > last.n && atMs - last.atMs >= cooldownMs;
  }

  #fire(firing: Firing): Firing {
    this.#last = firing;
    return firing;
  }

  #leave(observed: Observed): void {
    this.#evaluation.leave?.(observed, this.#last?.n === observed.n);
    this.#previous = observed;
    if (observed.size === null) this.#quote = observed;
  }
}

/** The firings of a rule on the observations of one outcome, in order. */
export function firingsOf(rule: Rule, observations: Iterable<Observed>, last?: LastFiring): Firing[] {
  const run = new RuleRun(rule, last);
  const fired: Firing[] = [];
  for (const observed of observations) fired.push(...run.observe(observed));
  fired.push(...run.finish());
  return fired;
}
