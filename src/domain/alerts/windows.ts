import { compareDecimals, type Decimal, fromUnits, scaleOf, toUnits } from '../values/decimal.ts';

export interface Standing {
  price: Decimal;
  /** The same as a number, for a comparison that needs no digits. */
  approximate: number;
  /** The time of the next observation, until which this price stands. */
  untilMs: number;
}

/** The places before the first entry are removed together, because each removal moves the whole list. */
const TRIM_AFTER = 1_024;

/** Standing prices of which the first is the extreme. Each new price removes the ones that it makes irrelevant. */
class Extremes {
  readonly #order: 1 | -1;
  #prices: Standing[] = [];
  #first = 0;

  constructor(order: 1 | -1) {
    this.#order = order;
  }

  get first(): Standing | undefined {
    return this.#prices[this.#first];
  }

  push(added: Standing): void {
    for (
      let last = this.#prices.at(-1);
      this.#prices.length > this.#first && last && compareDecimals(last.price, added.price) !== -this.#order;
      last = this.#prices.at(-1)
    ) {
      this.#prices.pop();
    }
    this.#prices.push(added);
  }

  /** Removes the prices that ended at this time or before. */
  endAt(ms: number): void {
    for (let price = this.first; price !== undefined && price.untilMs <= ms; price = this.first) this.#first += 1;
    if (this.#first < TRIM_AFTER) return;
    this.#prices.splice(0, this.#first);
    this.#first = 0;
  }

  clear(): void {
    this.#prices = [];
    this.#first = 0;
  }
}

/** The least and the greatest price in effect within a time before now. Times never decrease. */
export class PriceWindow {
  readonly #lengthMs: number;
  readonly #rising = new Extremes(1);
  readonly #falling = new Extremes(-1);
  /** The price that stands now. */
  #newest: Standing | undefined;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  get least(): Standing | undefined {
    return this.#rising.first;
  }

  get greatest(): Standing | undefined {
    return this.#falling.first;
  }

  /** Moves the end of the window to this time, at which the newest price ends to stand. */
  advance(nowMs: number): void {
    if (this.#newest) this.#newest.untilMs = nowMs;
    this.#rising.endAt(nowMs - this.#lengthMs);
    this.#falling.endAt(nowMs - this.#lengthMs);
  }

  /** Takes the price that stands from now on; without one, nothing to compare with stands. */
  push(price: Decimal | null): void {
    this.#newest =
      price === null ? undefined : { price, approximate: Number(price), untilMs: Number.POSITIVE_INFINITY };
    if (!this.#newest) return;
    this.#rising.push(this.#newest);
    this.#falling.push(this.#newest);
  }

  clear(): void {
    this.#rising.clear();
    this.#falling.clear();
  }
}

interface Traded {
  atMs: number;
  /** The notional, in units of the window. */
  units: bigint;
}

/** The notional of the trades within a time before now, and of the equally long windows before it, in whole units of 10^-scale. */
export class VolumeWindow {
  readonly #lengthMs: number;
  readonly #windows: number;
  #scale: number;
  #threshold: bigint;
  #trades: Traded[] = [];
  /** Positions in `#trades`: the first one of the former windows, of the present window, and since the last restart. */
  #formerFrom = 0;
  #presentFrom = 0;
  #restartedAt = 0;
  /** The notional of the former windows together. */
  #former = 0n;
  #present = 0n;

  /** `threshold`: the least notional of a window, or with `windows` the least multiple of their mean. */
  constructor(lengthMs: number, windows: number, threshold: Decimal) {
    this.#lengthMs = lengthMs;
    this.#windows = windows;
    this.#scale = scaleOf(threshold);
    this.#threshold = toUnits(threshold, this.#scale);
  }

  get present(): Decimal {
    return fromUnits(this.#present, this.#scale);
  }

  advance(nowMs: number): void {
    const isBefore = (trade: Traded | undefined, startMs: number): trade is Traded =>
      trade !== undefined && trade.atMs <= startMs;
    for (
      let trade = this.#trades[this.#presentFrom];
      isBefore(trade, nowMs - this.#lengthMs);
      trade = this.#trades[this.#presentFrom]
    ) {
      if (this.#presentFrom >= this.#restartedAt) this.#present -= trade.units;
      this.#former += trade.units;
      this.#presentFrom += 1;
    }
    const formerStartMs = nowMs - this.#lengthMs * (1 + this.#windows);
    for (
      let trade = this.#trades[this.#formerFrom];
      this.#formerFrom < this.#presentFrom && isBefore(trade, formerStartMs);
    ) {
      this.#former -= trade.units;
      this.#formerFrom += 1;
      trade = this.#trades[this.#formerFrom];
    }
    if (this.#formerFrom >= TRIM_AFTER) this.#trim();
  }

  push(atMs: number, price: Decimal, size: Decimal): void {
    const [priceScale, sizeScale] = [scaleOf(price), scaleOf(size)];
    const scale = priceScale + sizeScale;
    if (scale > this.#scale) this.#refine(scale);
    const units = toUnits(price, priceScale) * toUnits(size, sizeScale) * 10n ** BigInt(this.#scale - scale);
    this.#trades.push({ atMs, units });
    this.#present += units;
  }

  /** The trades so far no longer count for the present window. */
  restart(): void {
    this.#restartedAt = this.#trades.length;
    this.#present = 0n;
  }

  /** Whether the present window meets the threshold. The former windows of a mean must have some volume. */
  isMet(): boolean {
    if (this.#windows === 0) return this.#present >= this.#threshold;
    if (this.#former === 0n) return false;
    return this.#present * BigInt(this.#windows) * 10n ** BigInt(this.#scale) >= this.#threshold * this.#former;
  }

  /** Makes the units smaller. Few trades have more digits than all before. */
  #refine(scale: number): void {
    const factor = 10n ** BigInt(scale - this.#scale);
    for (const trade of this.#trades) trade.units *= factor;
    this.#threshold *= factor;
    this.#former *= factor;
    this.#present *= factor;
    this.#scale = scale;
  }

  #trim(): void {
    this.#trades.splice(0, this.#formerFrom);
    this.#presentFrom -= this.#formerFrom;
    this.#restartedAt = Math.max(0, this.#restartedAt - this.#formerFrom);
    this.#formerFrom = 0;
  }
}
