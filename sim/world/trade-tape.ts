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

/** Trades per chunk. */
const CHUNK = 4_096;
const INTENTS: readonly Intent[] = [
  { outcomeIndex: 0, side: 'BUY' },
  { outcomeIndex: 1, side: 'BUY' },
  { outcomeIndex: 0, side: 'SELL' },
  { outcomeIndex: 1, side: 'SELL' },
];

/** The columns of some trades: a quarter of the memory of objects. */
class Chunk {
  readonly marketNo = new Uint32Array(CHUNK);
  readonly second = new Float64Array(CHUNK);
  readonly micros = new Uint32Array(CHUNK);
  readonly orderNo = new Uint32Array(CHUNK);
  readonly ticks = new Uint16Array(CHUNK);
  readonly size = new Float64Array(CHUNK);
  readonly taker = new Uint16Array(CHUNK);
  readonly takerIntent = new Uint8Array(CHUNK);
  readonly maker = new Uint16Array(CHUNK);
  readonly makerIntent = new Uint8Array(CHUNK);
}

/** Every fill in order, limited overall and per market; the oldest are dropped first. Reads make the objects. */
export class TradeTape {
  private readonly chunks = new Map<number, Chunk>();
  private readonly byMarket = new Map<number, BoundedLog<number>>();
  private readonly capacity: number;
  private readonly perMarketCapacity: number;
  private first = 0;
  private next = 0;

  constructor(capacity: number, perMarketCapacity: number) {
    this.capacity = capacity;
    this.perMarketCapacity = perMarketCapacity;
  }

  get firstIndex(): number {
    return this.first;
  }

  get nextIndex(): number {
    return this.next;
  }

  /** The number of kept trades. */
  get length(): number {
    return this.next - this.first;
  }

  /** Gives the trade the next index. */
  append(trade: Omit<Trade, 'index'>): void {
    const index = this.next;
    const chunkNo = Math.floor(index / CHUNK);
    const chunk = this.chunks.get(chunkNo) ?? new Chunk();
    this.chunks.set(chunkNo, chunk);
    const at = index % CHUNK;
    const { takerIntent, makerIntent, ...numbers } = trade;
    for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) chunk[name][at] = trade[name];
    chunk.takerIntent[at] = codeOf(takerIntent);
    chunk.makerIntent[at] = codeOf(makerIntent);
    this.next += 1;
    const log = this.byMarket.get(trade.marketNo) ?? new BoundedLog<number>(this.perMarketCapacity);
    this.byMarket.set(trade.marketNo, log);
    log.push(index);
    if (this.length > this.capacity) this.dropOldest();
  }

  /** Kept trades from `index` on, at most `limit`. */
  from(index: number, limit: number): Trade[] {
    const found: Trade[] = [];
    for (const trade of this.oldestFirst(index)) {
      if (found.length >= limit) break;
      found.push(trade);
    }
    return found;
  }

  *oldestFirst(index: number): Generator<Trade> {
    for (let at = Math.max(index, this.first); at < this.next; at += 1) yield this.at(at);
  }

  *newestFirst(marketNo?: number): Generator<Trade> {
    if (marketNo === undefined) for (let at = this.next - 1; at >= this.first; at -= 1) yield this.at(at);
    else for (const index of this.byMarket.get(marketNo)?.newestFirst() ?? []) yield this.at(index);
  }

  /** The index of the oldest kept trade of this second or a later one. */
  indexAt(second: number): number {
    let [low, high] = [this.first, this.next];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.at(middle).second < second) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private at(index: number): Trade {
    const chunk = this.chunks.get(Math.floor(index / CHUNK));
    const at = index % CHUNK;
    const numberOf = (column: Readonly<Record<number, number>> | undefined) => column?.[at] ?? 0;
    return {
      index,
      marketNo: numberOf(chunk?.marketNo),
      second: numberOf(chunk?.second),
      micros: numberOf(chunk?.micros),
      orderNo: numberOf(chunk?.orderNo),
      ticks: numberOf(chunk?.ticks),
      size: numberOf(chunk?.size),
      taker: numberOf(chunk?.taker),
      takerIntent: intentOf(numberOf(chunk?.takerIntent)),
      maker: numberOf(chunk?.maker),
      makerIntent: intentOf(numberOf(chunk?.makerIntent)),
    };
  }

  private dropOldest(): void {
    const log = this.byMarket.get(this.at(this.first).marketNo);
    if (log?.first === this.first) log.shift();
    this.first += 1;
    if (this.first % CHUNK === 0) this.chunks.delete(this.first / CHUNK - 1);
  }
}

function codeOf({ outcomeIndex, side }: Intent): number {
  return outcomeIndex + (side === 'BUY' ? 0 : 2);
}

function intentOf(code: number): Intent {
  const intent = INTENTS[code];
  if (intent === undefined) throw new RangeError(`no intent ${code}`);
  return intent;
}
