import { BoundedLog } from './bounded-log.ts';

export type TradeSide = 'BUY' | 'SELL';

/** A trader's request, on the axis of the outcome token that it names. */
export interface Intent {
  readonly outcomeIndex: 0 | 1;
  readonly side: TradeSide;
}

/** One fill of the engine. `ticks` is on the axis of the first outcome, `size` in millionths of a share. */
export interface Trade {
  readonly index: number;
  readonly marketNo: number;
  readonly second: number;
  /** Microsecond of the second at which the order was matched; all fills of one order share it. */
  readonly micros: number;
  readonly orderNo: number;
  readonly ticks: number;
  readonly size: number;
  readonly taker: number;
  readonly takerIntent: Intent;
  readonly maker: number;
  readonly makerIntent: Intent;
}

/** Every fill in order, limited overall and per market; the oldest are dropped first. */
export class TradeTape {
  private readonly all: BoundedLog<Trade>;
  private readonly byMarket = new Map<number, BoundedLog<Trade>>();
  private readonly perMarketCapacity: number;

  constructor(capacity: number, perMarketCapacity: number) {
    this.all = new BoundedLog(capacity);
    this.perMarketCapacity = perMarketCapacity;
  }

  get firstIndex(): number {
    return this.all.firstIndex;
  }

  get nextIndex(): number {
    return this.all.nextIndex;
  }

  /** The number of kept trades. */
  get length(): number {
    return this.all.length;
  }

  append(trade: Trade): void {
    const gone = this.all.push(trade);
    if (gone !== undefined) {
      const log = this.byMarket.get(gone.marketNo);
      if (log?.first === gone) log.shift();
    }
    const log = this.byMarket.get(trade.marketNo);
    if (log !== undefined) {
      log.push(trade);
      return;
    }
    const created = new BoundedLog<Trade>(this.perMarketCapacity);
    created.push(trade);
    this.byMarket.set(trade.marketNo, created);
  }

  /** Kept trades from `index` on, at most `limit`. */
  from(index: number, limit: number): Trade[] {
    const found: Trade[] = [];
    for (let at = Math.max(index, this.firstIndex); at < this.nextIndex && found.length < limit; at += 1) {
      const trade = this.all.at(at);
      if (trade !== undefined) found.push(trade);
    }
    return found;
  }

  newestFirst(marketNo?: number): Iterable<Trade> {
    if (marketNo === undefined) return this.all.newestFirst();
    return this.byMarket.get(marketNo)?.newestFirst() ?? [];
  }
}
