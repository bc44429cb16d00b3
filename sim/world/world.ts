import type { Placement } from '../engine/order-book.ts';
import { hashWord, RandomStream } from '../random.ts';
import { moveBelief, shiftBelief } from '../traders/belief.ts';
import { requote } from '../traders/maker.ts';
import { actAsRetail } from '../traders/taker.ts';
import { STRONG_MAKER } from '../traders/wallets.ts';
import { type Catalog, planCatalog, rollingMarket } from './catalog.ts';
import { playDeepHistory } from './deep-history.ts';
import { Fees } from './fees.ts';
import { advancePhase } from './lifecycle.ts';
import { Market, type MarketOrder } from './market.ts';
import type { WorldOptions } from './options.ts';
import { type Intent, TradeTape } from './trade-tape.ts';

interface Desk {
  readonly market: Market;
  readonly random: RandomStream;
  readonly retailOrders: number[];
  quotedSecond: number;
}

const TRADER_DOMAIN = 31;
/** Nearly every turn produces an action. */
const BUSY: Activity = { requotesPerMillion: 300_000, ordersPerMillion: 1_000_000 };

/** The whole simulated exchange: a pure function of its options and the number of steps (one simulated second each). */
export class World {
  readonly options: WorldOptions;
  readonly markets: Market[] = [];
  /** Markets with traders, and those that a control changed: the others follow their plan. */
  readonly moving = new Set<Market>();
  readonly tape: TradeTape;
  readonly fees = new Fees();
  private readonly catalog: Catalog;
  private readonly desks: Desk[] = [];
  private readonly history: Activity;
  private readonly live: Activity;
  private clockSecond: number;
  private stepCount = 0;
  private orderCount = 0;
  private matchedSecond = 0;
  private matchedInSecond = 0;
  private changeCount = 0;
  /** Changes that the venues show later. */
  private due: { second: number; act: () => void }[] = [];

  constructor(options: WorldOptions) {
    this.options = options;
    this.tape = new TradeTape(options.tapeCapacity, options.perMarketCapacity);
    const historyStartSecond = options.nowSecond - options.historySeconds;
    this.clockSecond = historyStartSecond - options.deep.seconds;
    this.history = activityOf('history', options);
    this.live = activityOf('live', options);
    this.catalog = planCatalog({ ...options, historyStartSecond, oldestSecond: this.clockSecond });
    for (const spec of this.catalog.markets) this.open(new Market(spec, this.eventOf(spec.eventNo)));
  }

  /** Simulated now, epoch seconds. */
  get second(): number {
    return this.clockSecond;
  }

  get steps(): number {
    return this.stepCount;
  }

  /** Grows with every change that a client could see. */
  get version(): number {
    return this.changeCount;
  }

  get events(): Catalog['events'] {
    return this.catalog.events;
  }

  /** Plays the deep past of some markets, then every step up to the end of the history. */
  playHistory(): void {
    const { deep } = this.options;
    if (deep.markets > 0)
      playDeepHistory(deep, this.clockSecond, this.desks, (desk, second) => this.tradeAt(desk, second));
    this.skipTo(this.options.nowSecond - this.options.historySeconds);
    while (this.clockSecond < this.options.nowSecond) this.step();
  }

  /** One simulated second. */
  step(): void {
    this.clockSecond += 1;
    this.stepCount += 1;
    this.changeCount += 1;
    this.startRollingMarket();
    this.actOnTime();
    const activity = this.clockSecond <= this.options.nowSecond ? this.history : this.live;
    const siblingsOf = (market: Market) => this.siblingsOf(market);
    for (const desk of this.desks) {
      const { market } = desk;
      advancePhase(market, this.clockSecond, siblingsOf);
      if (!market.isTrading) continue;
      if (market.pin === undefined) this.trade(desk, activity);
      else releasePin(market, this.clockSecond);
    }
  }

  /** Performs a change so many seconds later. */
  later(seconds: number, act: () => void): void {
    this.due.push({ second: this.clockSecond + seconds, act });
  }

  private actOnTime(): void {
    const ripe = this.due.filter(({ second }) => second <= this.clockSecond);
    if (ripe.length === 0) return;
    this.due = this.due.filter((each) => !ripe.includes(each));
    for (const { act } of ripe) act();
  }

  /** Advances the clock without trades, after a pause or a stall of the machine. */
  skipTo(second: number): void {
    if (second <= this.clockSecond) return;
    this.clockSecond = second;
    this.changeCount += 1;
  }

  /** Sends an order to a market's book and writes every fill to the tape; returns the book's answer. */
  submit(market: Market, order: MarketOrder): Placement<Intent> {
    this.orderCount += 1;
    this.changeCount += 1;
    const placement = market.order(order, this.clockSecond);
    const micros = this.microsOfOrder();
    for (const fill of placement.fills) {
      market.recordTrade(this.clockSecond, fill.ticks, fill.size, order.intent);
      this.tape.append({
        marketNo: market.spec.no,
        second: this.clockSecond,
        micros,
        orderNo: this.orderCount,
        ticks: fill.ticks,
        size: fill.size,
        taker: order.owner,
        takerIntent: order.intent,
        maker: fill.makerOwner,
        makerIntent: fill.makerNote,
      });
    }
    return placement;
  }

  /** Orders of one second are matched one microsecond apart; the last microsecond takes all further orders. */
  private microsOfOrder(): number {
    if (this.matchedSecond !== this.clockSecond) this.matchedInSecond = 0;
    this.matchedSecond = this.clockSecond;
    this.matchedInSecond += 1;
    return Math.min(this.matchedInSecond, 999_999);
  }

  /** All markets of the same event, itself included. */
  siblingsOf(market: Market): Market[] {
    const found: Market[] = [];
    for (const no of market.event.marketNos) {
      const sibling = this.markets[no];
      if (sibling !== undefined) found.push(sibling);
    }
    return found;
  }

  /** Records a manual change of a market. */
  noteSteered(market: Market): void {
    market.isSteered = true;
    this.moving.add(market);
    this.changeCount += 1;
  }

  private tradeAt(desk: Desk, second: number): void {
    this.clockSecond = Math.max(this.clockSecond, second);
    this.trade(desk, BUSY);
  }

  private trade(desk: Desk, activity: Activity): void {
    const { market, random } = desk;
    const submit = (order: MarketOrder) => this.submit(market, order).orderId;
    const weight = market.spec.activity;
    const isFresh = market.book.orderCount === 0;
    if (isFresh || random.chance(Math.min(1_000_000, activity.requotesPerMillion))) {
      const elapsed = isFresh ? 1 : this.clockSecond - desk.quotedSecond;
      if (market.event.negRiskId === undefined) moveBelief(market, elapsed, random);
      else shiftBelief(market, this.siblingsOf(market), elapsed, random);
      desk.quotedSecond = this.clockSecond;
      requote(market, random, submit);
    }
    const expected = Math.floor((activity.ordersPerMillion * weight) / 1000);
    const orders = Math.floor(expected / 1_000_000) + (random.chance(expected % 1_000_000) ? 1 : 0);
    for (let at = 0; at < orders; at += 1) actAsRetail(market, desk.retailOrders, random, submit);
    market.touch(this.clockSecond);
  }

  private startRollingMarket(): void {
    const { rollingSeconds, nowSecond, seed } = this.options;
    if (rollingSeconds <= 0 || this.clockSecond % rollingSeconds !== 0) return;
    // Older ones would only extend the list of closed markets.
    if (this.clockSecond < nowSecond - 4 * rollingSeconds) return;
    const { market, event } = rollingMarket(this.catalog, seed, this.clockSecond, rollingSeconds);
    this.open(new Market(market, event));
  }

  private open(market: Market): void {
    const { spec } = market;
    this.markets.push(market);
    if (spec.createdSecond <= this.clockSecond) market.phase = 'open';
    const random = new RandomStream(this.options.seed, TRADER_DOMAIN, spec.no);
    if (spec.hasTraders) {
      this.moving.add(market);
      this.desks.push({ market, random, retailOrders: [], quotedSecond: this.clockSecond });
      return;
    }
    market.phase = 'open';
    market.fundamental = 50_000 + (hashWord(this.options.seed, TRADER_DOMAIN, spec.no) % 900_000);
  }

  private eventOf(no: number): Catalog['events'][number] {
    const event = this.catalog.events[no];
    if (event === undefined) throw new RangeError(`no event ${no}`);
    return event;
  }
}

/** Ends a hold after its time. */
function releasePin(market: Market, second: number): void {
  if (market.pin === undefined || second < market.pin.untilSecond) return;
  market.pin = undefined;
  market.book.cancelOwner(STRONG_MAKER);
  market.touch(second);
}

/** Chances per market and simulated second, in millionths; orders may exceed a million (several a second). */
interface Activity {
  readonly requotesPerMillion: number;
  readonly ordersPerMillion: number;
}

/** The cost of the start depends on orders, not on market-seconds: this number keeps it under two seconds. */
const HISTORY_ORDERS = 12_000;

/** The activity of an average market. The history is thinned, so that its cost does not grow with markets or hours. */
function activityOf(time: 'history' | 'live', options: WorldOptions): Activity {
  if (time === 'live') {
    return {
      requotesPerMillion: Math.min(1_000_000, Math.floor(200_000 * Math.max(1, options.speed))),
      ordersPerMillion: Math.floor(200_000 * options.speed),
    };
  }
  const marketSeconds = Math.max(1, Math.min(options.markets, options.liveMarkets) * options.historySeconds);
  const perMillion = Math.min(100_000, Math.floor((HISTORY_ORDERS * 1_000_000) / marketSeconds));
  return { requotesPerMillion: perMillion, ordersPerMillion: perMillion };
}
