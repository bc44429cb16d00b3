import { compareDecimals, type Decimal, multiplyDecimals, subtractDecimals, ZERO } from '../values/decimal.ts';
import type { Condition, Direction, Unit } from './alert.ts';
import { PriceWindow, type Standing, VolumeWindow } from './windows.ts';

/** One observation of an outcome. docs/alerts.md defines its order and its time. */
export interface Observed {
  /** The place in the order of the outcome. 0 for the quote in effect before the first stored observation. */
  n: bigint;
  /** The time of receipt, epoch milliseconds. */
  atMs: number;
  price: Decimal;
  bid: Decimal | null;
  ask: Decimal | null;
  /** The size of a trade; null for a quote. */
  size: Decimal | null;
}

/** A condition on the observations of one outcome. */
export interface Rule {
  condition: Exclude<Condition, 'status' | 'new_market'>;
  /** The target price, the spread, the change, the notional, or with `windows` the multiple of their mean. */
  threshold: Decimal;
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowMs?: number | undefined;
  windows?: number | undefined;
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

export interface Firing extends LastFiring {
  price: Decimal;
  /** The price that a change started from. */
  fromPrice?: Decimal;
  /** The spread, or the notional of the trade or window. */
  value?: Decimal;
}

/** More than the relative error of a few operations on doubles. */
const ERROR_OF_NUMBERS = 1e-12;

type Measure = Pick<Firing, 'fromPrice' | 'value'>;

/** The time before an observation that its evaluation needs, in milliseconds, besides the one observation before that time. */
export function lookbackOf({
  condition,
  windowMs = 0,
  windows = 0,
}: Pick<Rule, 'condition' | 'windowMs' | 'windows'>): number {
  return condition === 'change' || condition === 'volume' ? windowMs * (1 + windows) : 0;
}

/**
 * Runs a rule over the observations of an outcome, in their order. The result depends on the observations alone: live evaluation gives the
 * ones of its lookback and the new ones, a backtest gives all.
 */
export class RuleRun {
  readonly #rule: Rule;
  readonly #prices: PriceWindow | undefined;
  readonly #volume: VolumeWindow | undefined;
  /** The threshold as a number. */
  readonly #approximate: number;
  #last: LastFiring | undefined;
  #previous: Observed | undefined;
  #quote: Observed | undefined;
  #hasStarted = false;
  /** The place of the first span that has not ended. */
  #span = 0;

  constructor(rule: Rule, last?: LastFiring) {
    this.#rule = rule;
    this.#last = last;
    const { condition, windowMs = 0, windows } = rule;
    if (condition === 'change') this.#prices = new PriceWindow(windowMs);
    if (condition === 'volume') this.#volume = new VolumeWindow(windowMs, windows ?? 0, rule.threshold);
    this.#approximate = Number(rule.threshold);
  }

  /** Takes the next observation; returns the firing at the start, when it comes before it, and its own. */
  observe(observed: Observed): Firing[] {
    const { startMs, endMs } = this.#rule;
    const fired = observed.atMs >= startMs ? this.finish() : [];
    this.#enter(observed);
    if (observed.atMs >= startMs && observed.atMs < endMs && this.#isWithin(observed.atMs) && this.#mayFire(observed)) {
      const measure = this.#measure(observed);
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
    const measure = this.#measure(quote);
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

  #enter({ atMs, price, size }: Observed): void {
    this.#prices?.advance(atMs);
    this.#volume?.advance(atMs);
    if (size !== null) this.#volume?.push(atMs, price, size);
  }

  /** A firing restarts the windows: a move or a volume counts once. A percentage of a price of zero is undefined, so it is no reference. */
  #leave(observed: Observed): void {
    if (this.#last?.n === observed.n) {
      this.#prices?.clear();
      this.#volume?.restart();
    }
    this.#prices?.push(this.#rule.unit === 'percent' && observed.price === ZERO ? null : observed.price);
    this.#previous = observed;
    if (observed.size === null) this.#quote = observed;
  }

  /** The measured values when the observation meets the condition. */
  #measure(observed: Observed): Measure | undefined {
    const { condition, threshold, direction } = this.#rule;
    const { price, bid, ask, size } = observed;
    const isAtLeast = (value: Decimal) => compareDecimals(value, threshold) >= 0;
    const isAtMost = (value: Decimal) => compareDecimals(value, threshold) <= 0;
    const before = this.#previous?.price;
    switch (condition) {
      case 'above':
        return isAtLeast(price) ? {} : undefined;
      case 'below':
        return isAtMost(price) ? {} : undefined;
      case 'crosses_above':
        return before !== undefined && !isAtLeast(before) && isAtLeast(price) ? { fromPrice: before } : undefined;
      case 'crosses_below':
        return before !== undefined && !isAtMost(before) && isAtMost(price) ? { fromPrice: before } : undefined;
      case 'change':
        return this.#changed(price);
      case 'spread': {
        if (bid === null || ask === null) return undefined;
        const value = subtractDecimals(ask, bid);
        return (direction === 'at_most' ? isAtMost(value) : isAtLeast(value)) ? { value } : undefined;
      }
      case 'trade': {
        const value = size === null ? ZERO : multiplyDecimals(price, size);
        return size !== null && isAtLeast(value) ? { value } : undefined;
      }
      case 'volume':
        return size === null ? undefined : this.#traded();
    }
  }

  #changed(price: Decimal): Measure | undefined {
    const { direction } = this.#rule;
    const { least, greatest } = this.#prices ?? {};
    const now = Number(price);
    if (direction !== 'down' && least !== undefined && this.#isMove(price, now, least, 1)) {
      return { fromPrice: least.price };
    }
    if (direction !== 'up' && greatest !== undefined && this.#isMove(price, now, greatest, -1)) {
      return { fromPrice: greatest.price };
    }
    return undefined;
  }

  /** Decides by numbers, unless they are so near the threshold that their error matters. */
  #isMove(price: Decimal, now: number, from: Standing, sign: 1 | -1): boolean {
    const { threshold, unit } = this.#rule;
    const isPercent = unit === 'percent';
    const needed = isPercent ? (this.#approximate * from.approximate) / 100 : this.#approximate;
    const excess = sign * (now - from.approximate) - needed;
    if (excess < -ERROR_OF_NUMBERS * (now + from.approximate + needed)) return false;
    const move = sign === 1 ? subtractDecimals(price, from.price) : subtractDecimals(from.price, price);
    if (!isPercent) return compareDecimals(move, threshold) >= 0;
    const hundredfold = multiplyDecimals(move, '100' as Decimal);
    return compareDecimals(hundredfold, multiplyDecimals(threshold, from.price)) >= 0;
  }

  #traded(): Measure | undefined {
    const volume = this.#volume;
    return volume?.isMet() ? { value: volume.present } : undefined;
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
