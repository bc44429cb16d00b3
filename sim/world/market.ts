import { OrderBook, type Placement } from '../engine/order-book.ts';
import type { EventSpec, MarketSpec } from './catalog.ts';
import type { Intent, TradeSide } from './trade-tape.ts';

/** Millionths of a share in one share, and of a dollar in one dollar. */
export const UNITS = 1_000_000;

/** A true change of the result of a market. Each venue shows it in its own words, and some venues do not show it at all. */
export interface ResolutionEvent {
  readonly kind: 'proposed' | 'disputed' | 'amended' | 'resolved' | 'voided' | 'corrected' | 'reopened';
  readonly second: number;
  /** The number of the proposal since the market traded last. */
  readonly round: number;
  /** Millionths of a dollar per share of the first outcome; undefined for an event that pays nothing. */
  readonly payout: number | undefined;
  /** A control caused it, and no plan. */
  readonly isManual: boolean;
}

/** Shared, because most markets of a large catalog never have one. */
const NO_EVENTS: readonly ResolutionEvent[] = [];

export type MarketPhase = 'scheduled' | 'open' | 'proposed' | 'disputed' | 'resolved';

/** The last trade printed for one outcome token, in that token's own ticks. */
interface TokenLast {
  readonly ticks: number;
  readonly side: TradeSide;
}

/** A request to the book: a side, a price on the axis of one outcome, and the trader. */
export interface MarketOrder {
  readonly owner: number;
  readonly intent: Intent;
  /** In ticks of the outcome named by `intent`. */
  readonly ticks: number;
  readonly size: number;
  readonly remainder: 'rest' | 'drop';
}

/** A forced level: traders skip the market until `untilSecond`, so that it keeps the requested price. */
interface Pin {
  readonly ticks: number;
  untilSecond: number;
}

/** One binary market: a single book on the axis of its first outcome, and figures from its trades. */
export class Market {
  readonly spec: MarketSpec;
  readonly event: EventSpec;
  phase: MarketPhase = 'scheduled';
  /** The traders' belief in the first outcome, in millionths. */
  fundamental: number;
  winner: 0 | 1 | undefined;
  /** What the first outcome pays, in millionths of a dollar, of a market that pays both outcomes; it has no winner. */
  split: number | undefined;
  /** It ended without a result. */
  isVoid = false;
  /** The true changes of its result, oldest first. */
  events: readonly ResolutionEvent[] = NO_EVENTS;
  /** A control decides about its result, and no plan. */
  isManual = false;
  /** A control changed its result, and the venues do not show it yet. */
  isLate = false;
  /** A control replaced its rules. */
  rules: string | undefined;
  /** Spaces that a control added to the rules. */
  addedSpaces = 0;
  /** When the venues began to show the last change of the result, epoch seconds. */
  shownSecond: number | undefined;
  /** The last change of the rules, epoch seconds. */
  rulesSecond: number | undefined;
  closedSecond: number | undefined;
  /** The last change of the announced outcome before the settlement, epoch seconds. */
  amendSecond: number | undefined;
  /** The end of trading, when the outcome is known: the planned time, unless a control changes it. Undefined: never. */
  stopSecond: number | undefined;
  resolveSecond: number | undefined;
  /** A control suspended trading; the market stays open. */
  isHalted = false;
  /** The reason of the suspension: Gamma shows one of these flags and still reports that it accepts orders. */
  withdrawn: 'inactive' | 'archived' | undefined;
  /** The last start or end of a suspension, epoch seconds. */
  haltSecond: number | undefined;
  /** A control changed it, so its plan no longer describes it. */
  isSteered = false;
  /** The venue neither lists it nor knows its id; its prints remain. */
  isVanished = false;
  pin: Pin | undefined;
  /** Each fill counts once, at the price of the taker's outcome. */
  volumeMicroUsd = 0;
  /** Each fill counts once: a pair of shares is one contract. */
  volumeMicroShares = 0;
  tradeCount = 0;
  lastYesTicks: number | undefined;
  readonly lastByToken: [TokenLast | undefined, TokenLast | undefined] = [undefined, undefined];
  /** Shown after the close too, as the venue does. */
  staleBid: number | undefined;
  staleAsk: number | undefined;
  private seenVersion = 0;
  private changedMs: number;
  // Created on first use: in a large catalog most markets never need them.
  private ownBook: OrderBook<Intent> | undefined;
  private ownVolume: RollingVolume | undefined;

  constructor(spec: MarketSpec, event: EventSpec) {
    this.spec = spec;
    this.event = event;
    this.fundamental = spec.startFundamental;
    this.stopSecond = spec.stopSecond;
    this.resolveSecond = spec.resolveSecond;
    this.changedMs = spec.createdSecond * 1000;
  }

  get book(): OrderBook<Intent> {
    this.ownBook ??= new OrderBook(this.spec.ticksPerUnit);
    return this.ownBook;
  }

  /** Whether an order was ever placed. */
  get hasBook(): boolean {
    return this.ownBook !== undefined;
  }

  get volume(): RollingVolume {
    this.ownVolume ??= new RollingVolume();
    return this.ownVolume;
  }

  get isTrading(): boolean {
    return this.phase === 'open' && !this.isHalted && !this.isVanished;
  }

  /** Whether the venue lists it and answers for its id. */
  get isListed(): boolean {
    return this.phase !== 'scheduled' && !this.isVanished;
  }

  /** What the first outcome pays by the result, in millionths of a dollar. */
  get payout(): number | undefined {
    if (this.split !== undefined) return this.split;
    return this.winner === undefined ? undefined : this.winner === 0 ? UNITS : 0;
  }

  /** Milliseconds of the last change of the book; changes together with the book's version. */
  get changedAtMs(): number {
    return this.changedMs;
  }

  /** Sends an order on an outcome's axis to the book on the first outcome's axis. */
  order(order: MarketOrder, second: number): Placement<Intent> {
    const { outcomeIndex, side } = order.intent;
    const placement = this.book.place({
      owner: order.owner,
      side: (side === 'BUY') === (outcomeIndex === 0) ? 'bid' : 'ask',
      ticks: this.yesTicks(order.ticks, outcomeIndex),
      size: order.size,
      remainder: order.remainder,
      note: order.intent,
    });
    this.touch(second);
    return placement;
  }

  /** Mirrors a price between the axis of the first outcome and that of `outcomeIndex`; its own inverse. */
  yesTicks(ticks: number, outcomeIndex: number): number {
    return outcomeIndex === 0 ? ticks : this.spec.ticksPerUnit - ticks;
  }

  /** Records a change of the book in this second. */
  touch(second: number): void {
    if (this.book.version === this.seenVersion) return;
    this.seenVersion = this.book.version;
    const floor = second * 1000;
    this.changedMs = Math.max(floor, Math.min(this.changedMs + 1, floor + 999));
    this.staleBid = this.book.bestBid ?? this.staleBid;
    this.staleAsk = this.book.bestAsk ?? this.staleAsk;
  }

  /** Records a change of phase. */
  touchPhase(second: number): void {
    this.changedMs = Math.max(this.changedMs, second * 1000);
    this.seenVersion = this.book.version;
  }

  /** The totals of the past 24 h. */
  dayVolume(second: number): Traded {
    return this.tradeCount === 0 ? { microUsd: 0, microShares: 0 } : this.volume.total(second);
  }

  recordTrade(second: number, yesTicks: number, size: number, intent: Intent): void {
    const tokenTicks = this.yesTicks(yesTicks, intent.outcomeIndex);
    const microUsd = Math.floor((size * tokenTicks) / this.spec.ticksPerUnit);
    this.volumeMicroUsd += microUsd;
    this.volumeMicroShares += size;
    this.tradeCount += 1;
    this.lastYesTicks = yesTicks;
    this.lastByToken[intent.outcomeIndex] = { ticks: tokenTicks, side: intent.side };
    this.volume.add(second, { microUsd, microShares: size }, yesTicks);
  }
}

const BUCKET_SECONDS = 300;
const BUCKETS = 288;

/** The totals of a market's trades: dollars in millionths, and shares in millionths. */
interface Traded {
  readonly microUsd: number;
  readonly microShares: number;
}

/** The totals and the last price of a market over the past 24 h, in 5-minute buckets. The oldest bucket leaves as a whole. */
class RollingVolume {
  private readonly microUsd = new Float64Array(BUCKETS);
  private readonly microShares = new Float64Array(BUCKETS);
  private readonly lastTicks = new Int16Array(BUCKETS);
  private bucket: number | undefined;
  private usdSum = 0;
  private shareSum = 0;
  private firstTicks: number | undefined;

  add(second: number, { microUsd, microShares }: Traded, ticks: number): void {
    this.advance(second);
    const slot = Math.floor(second / BUCKET_SECONDS) % BUCKETS;
    this.microUsd[slot] = (this.microUsd[slot] ?? 0) + microUsd;
    this.microShares[slot] = (this.microShares[slot] ?? 0) + microShares;
    this.usdSum += microUsd;
    this.shareSum += microShares;
    this.lastTicks[slot] = ticks;
    this.firstTicks ??= ticks;
  }

  /** Everything traded in the 24 h that end at `second`. */
  total(second: number): Traded {
    this.advance(second);
    return { microUsd: this.usdSum, microShares: this.shareSum };
  }

  /** The last price `secondsAgo` before `second`, the first price of a younger market; undefined before a trade. */
  ticksBefore(second: number, secondsAgo: number): number | undefined {
    if (this.firstTicks === undefined) return undefined;
    this.advance(second);
    const back = Math.min(BUCKETS - 1, Math.floor(secondsAgo / BUCKET_SECONDS));
    const ticks = this.lastTicks[(Math.floor(second / BUCKET_SECONDS) - back + BUCKETS) % BUCKETS];
    return ticks === undefined || ticks === 0 ? this.firstTicks : ticks;
  }

  private advance(second: number): void {
    const now = Math.floor(second / BUCKET_SECONDS);
    if (this.bucket === undefined) {
      this.bucket = now;
      return;
    }
    const from = Math.max(this.bucket + 1, now - BUCKETS + 1);
    const carried = this.lastTicks[this.bucket % BUCKETS] ?? 0;
    for (let bucket = from; bucket <= now; bucket += 1) {
      const slot = bucket % BUCKETS;
      this.usdSum -= this.microUsd[slot] ?? 0;
      this.shareSum -= this.microShares[slot] ?? 0;
      this.microUsd[slot] = 0;
      this.microShares[slot] = 0;
      this.lastTicks[slot] = carried;
    }
    this.bucket = Math.max(this.bucket, now);
  }
}
