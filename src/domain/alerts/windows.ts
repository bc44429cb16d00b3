import {
  addDecimals,
  compareDecimals,
  type Decimal,
  multiplyDecimals,
  subtractDecimals,
  ZERO,
} from '../values/decimal.ts';

interface Standing {
  price: Decimal;
  /** The time of the next observation, until which this price stands. */
  untilMs: number;
}

/** The least and the greatest price in effect within a time before now. Times never decrease. */
export class PriceWindow {
  readonly #lengthMs: number;
  /** Rising prices, and falling prices: the first one is the extreme. Each new price removes the ones that it makes irrelevant. */
  readonly #rising: Standing[] = [];
  readonly #falling: Standing[] = [];
  /** The price that stands now. */
  #newest: Standing | undefined;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  get least(): Decimal | undefined {
    return this.#rising[0]?.price;
  }

  get greatest(): Decimal | undefined {
    return this.#falling[0]?.price;
  }

  /** Moves the end of the window to this time, at which the newest price ends to stand. */
  advance(nowMs: number): void {
    if (this.#newest) this.#newest.untilMs = nowMs;
    for (const prices of [this.#rising, this.#falling]) {
      const kept = prices.findIndex(({ untilMs }) => untilMs > nowMs - this.#lengthMs);
      prices.splice(0, kept === -1 ? prices.length : kept);
    }
  }

  /** Takes the price that stands from now on; without one, nothing to compare with stands. */
  push(price: Decimal | null): void {
    this.#newest = price === null ? undefined : { price, untilMs: Number.POSITIVE_INFINITY };
    if (!this.#newest) return;
    pushTo(this.#rising, this.#newest, 1);
    pushTo(this.#falling, this.#newest, -1);
  }

  clear(): void {
    this.#rising.length = 0;
    this.#falling.length = 0;
  }
}

function pushTo(prices: Standing[], added: Standing, order: 1 | -1): void {
  for (let last = prices.at(-1); last && compareDecimals(last.price, added.price) !== -order; last = prices.at(-1))
    prices.pop();
  prices.push(added);
}

interface Traded {
  atMs: number;
  notional: Decimal;
}

/** The notional of the trades within a time before now, and of the equally long windows before it. */
export class VolumeWindow {
  readonly #lengthMs: number;
  readonly #windows: number;
  readonly #trades: Traded[] = [];
  /** Positions in `#trades`: the first one of the former windows, of the present window, and since the last restart. */
  #formerFrom = 0;
  #presentFrom = 0;
  #restartedAt = 0;
  /** The notional of the former windows together. */
  former: Decimal = ZERO;
  present: Decimal = ZERO;

  constructor(lengthMs: number, windows = 0) {
    this.#lengthMs = lengthMs;
    this.#windows = windows;
  }

  advance(nowMs: number): void {
    const isBefore = (trade: Traded | undefined, startMs: number): trade is Traded =>
      trade !== undefined && trade.atMs <= startMs;
    for (
      let trade = this.#trades[this.#presentFrom];
      isBefore(trade, nowMs - this.#lengthMs);
      trade = this.#trades[this.#presentFrom]
    ) {
      if (this.#presentFrom >= this.#restartedAt) this.present = subtractDecimals(this.present, trade.notional);
      this.former = addDecimals(this.former, trade.notional);
      this.#presentFrom += 1;
    }
    const formerStartMs = nowMs - this.#lengthMs * (1 + this.#windows);
    for (
      let trade = this.#trades[this.#formerFrom];
      this.#formerFrom < this.#presentFrom && isBefore(trade, formerStartMs);
    ) {
      this.former = subtractDecimals(this.former, trade.notional);
      this.#formerFrom += 1;
      trade = this.#trades[this.#formerFrom];
    }
  }

  push(atMs: number, notional: Decimal): void {
    this.#trades.push({ atMs, notional });
    this.present = addDecimals(this.present, notional);
  }

  /** The trades so far no longer count for the present window. */
  restart(): void {
    this.#restartedAt = this.#trades.length;
    this.present = ZERO;
  }

  /** Whether the present window has `times` the mean of the former ones, which must have some volume. */
  isTimesMean(times: Decimal): boolean {
    if (this.former === ZERO) return false;
    const windows = String(this.#windows) as Decimal;
    return compareDecimals(multiplyDecimals(this.present, windows), multiplyDecimals(times, this.former)) >= 0;
  }
}
