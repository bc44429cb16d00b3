import { DAY_MS } from '../../src/domain/values/durations.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Intent, Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { betIdOf, placeOf, userIdOf, type Wire } from './contracts.ts';

export interface Bet {
  readonly id: string;
  /** The index of its trade on the tape. */
  readonly tradeIndex: number;
  readonly createdMs: number;
  readonly contractId: string;
  readonly answerId: string | undefined;
  readonly isRedemption: boolean;
  wire(): Wire;
}

/** Fills per redemption, in which the taker converts pairs of shares to mana. */
const FILLS_PER_REDEMPTION = 10;
/** Fills per limit order of a taker, which takes at once and then rests. */
const FILLS_PER_LIMIT_TAKER = 5;
/** Seconds after which a later bet fills such an order further. */
const FILLED_FURTHER_AFTER = 2;

/**
 * The engine's fills as the venue's bets, oldest first. Each fill is two bets: the maker's limit order, stamped before it is filled, and
 * the taker's, stamped at the fill; redemptions come between. Bets of one second are a millisecond or two apart. Limit orders of takers
 * have stamps that are cut to the second.
 */
export class BetFeed {
  private readonly world: World;
  private bets: Bet[] = [];
  private readonly byId = new Map<string, Bet>();
  private nextIndex = 0;
  private second = 0;
  private placeInSecond = 0;

  constructor(world: World) {
    this.world = world;
  }

  /** All bets so far, oldest first. */
  list(): readonly Bet[] {
    for (const trade of this.world.tape.from(this.nextIndex, Number.POSITIVE_INFINITY)) this.add(trade);
    this.nextIndex = this.world.tape.nextIndex;
    return this.bets;
  }

  find(id: string): Bet | undefined {
    this.list();
    return this.byId.get(id);
  }

  private add(trade: Trade): void {
    const market = this.world.markets[trade.marketNo];
    if (market === undefined) return;
    if (trade.second !== this.second) {
      this.second = trade.second;
      this.placeInSecond = 0;
    }
    const makerMs = trade.second * 1000 + Math.min(997, this.placeInSecond);
    this.placeInSecond += 2;
    const { seed } = this.world.options;
    const fill = fillOf(trade, market, seed, makerMs + 1);
    const place = { ...fill.place, tradeIndex: trade.index, isRedemption: false };
    this.push({ ...place, id: fill.makerId, createdMs: makerMs, wire: () => makerBet(fill) });
    if (isLimitTaker(trade)) {
      const wire = () => limitTakerBet(fill, this.world.second);
      this.insert({ ...place, id: fill.takerId, createdMs: trade.second * 1000, wire });
    } else this.push({ ...place, id: fill.takerId, createdMs: makerMs + 1, wire: () => takerBet(fill) });
    if (trade.index % FILLS_PER_REDEMPTION !== 0) return;
    const id = betIdOf(seed, trade.index, 'redemption');
    this.push({ ...place, isRedemption: true, id, createdMs: makerMs + 1, wire: () => redemption(fill, id) });
  }

  private push(bet: Bet): void {
    this.insert(bet);
    if (this.bets.length <= 3 * this.world.options.tapeCapacity) return;
    for (const gone of this.bets.slice(0, this.world.options.tapeCapacity)) this.byId.delete(gone.id);
    this.bets = this.bets.slice(this.world.options.tapeCapacity);
  }

  /** After the bets that are not later. */
  private insert(bet: Bet): void {
    this.byId.set(bet.id, bet);
    const at = this.bets.findLastIndex(({ createdMs }) => createdMs <= bet.createdMs);
    this.bets.splice(at + 1, 0, bet);
  }
}

interface Fill {
  readonly trade: Trade;
  readonly market: Market;
  readonly seed: number;
  readonly place: ReturnType<typeof placeOf>;
  readonly takenMs: number;
  readonly makerId: string;
  readonly takerId: string;
}

function fillOf(trade: Trade, market: Market, seed: number, takenMs: number): Fill {
  const [makerId, takerId] = [betIdOf(seed, trade.index, 'maker'), betIdOf(seed, trade.index, 'taker')];
  return { trade, market, seed, place: placeOf(market, seed), takenMs, makerId, takerId };
}

/**
 * Mana and shares of a side of the fill; both negative for a sale. One division of whole numbers gives the text of the exact product, so
 * mana by shares is the exact price, as for fills at a limit of the venue.
 */
function amounts({ trade, market }: Fill, intent: Intent): { amount: number; shares: number } {
  const units = (intent.side === 'BUY' ? 1 : -1) * trade.size;
  const ticks = market.yesTicks(trade.ticks, intent.outcomeIndex);
  return { amount: (ticks * units) / (market.spec.ticksPerUnit * UNITS), shares: units / UNITS };
}

function common(fill: Fill, intent: Intent, walletNo: number): Wire {
  const { contractId, answerId } = fill.place;
  const prob = fill.trade.ticks / fill.market.spec.ticksPerUnit;
  return {
    userId: userIdOf(fill.seed, walletNo),
    contractId,
    answerId,
    outcome: intent.outcomeIndex === 0 ? 'YES' : 'NO',
    probBefore: prob,
    probAfter: prob,
    fees: { creatorFee: 0, liquidityFee: 0, platformFee: 0 },
    loanAmount: 0,
    isRedemption: false,
  };
}

function takerBet(fill: Fill): Wire {
  const { trade, takenMs } = fill;
  const { amount, shares } = amounts(fill, trade.takerIntent);
  return {
    ...common(fill, trade.takerIntent, trade.taker),
    id: fill.takerId,
    createdTime: takenMs,
    amount,
    shares,
    orderAmount: amount,
    isFilled: true,
    isCancelled: false,
    fills: [{ matchedBetId: fill.makerId, amount, shares, timestamp: takenMs }],
  };
}

/** Only buys have limits. */
function isLimitTaker({ index, takerIntent }: Trade): boolean {
  return index % FILLS_PER_LIMIT_TAKER === 2 && takerIntent.side === 'BUY';
}

/**
 * A limit order that took at once, at a better price than its limit, and that another bet fills further a little later. Its stamp is cut to
 * the second, so all its fills seem to be later. Every second one has the old form without fees on fills.
 */
function limitTakerBet(fill: Fill, nowSecond: number): Wire {
  const { trade, takenMs } = fill;
  const { amount, shares } = amounts(fill, trade.takerIntent);
  const isYes = trade.takerIntent.outcomeIndex === 0;
  const price = amount / shares;
  const limit = Math.min(0.999, price + 0.01);
  const fees = { creatorFee: 0, liquidityFee: 0, platformFee: 0 };
  const own = {
    matchedBetId: fill.makerId,
    amount,
    shares,
    timestamp: takenMs,
    ...(trade.index % 2 === 0 && { fees }),
  };
  const isFilledFurther = nowSecond >= trade.second + FILLED_FURTHER_AFTER;
  const further = {
    matchedBetId: betIdOf(fill.seed, trade.index, 'arbitrage'),
    amount: shares * limit,
    shares,
    timestamp: takenMs + FILLED_FURTHER_AFTER * 1000,
  };
  const fills = isFilledFurther ? [own, further] : [own];
  return {
    ...common(fill, trade.takerIntent, trade.taker),
    id: fill.takerId,
    createdTime: trade.second * 1000,
    amount: fills.reduce((sum, each) => sum + each.amount, 0),
    shares: fills.reduce((sum, each) => sum + each.shares, 0),
    orderAmount: amount * 3,
    limitProb: isYes ? limit : 1 - limit,
    isFilled: false,
    isCancelled: false,
    ...(trade.index % 3 === 0 && { expiresAt: takenMs + DAY_MS }),
    fills,
  };
}

/** A limit order that took nothing when it was placed and was filled a little later. */
function makerBet(fill: Fill): Wire {
  const { trade, takenMs, market } = fill;
  const { amount, shares } = amounts(fill, trade.makerIntent);
  const limitProb = trade.ticks / market.spec.ticksPerUnit;
  return {
    ...common(fill, trade.makerIntent, trade.maker),
    // The market was beyond the order's limit when it was placed.
    probBefore: trade.makerIntent.outcomeIndex === 0 ? limitProb + 0.01 : limitProb - 0.01,
    probAfter: trade.makerIntent.outcomeIndex === 0 ? limitProb + 0.01 : limitProb - 0.01,
    id: fill.makerId,
    createdTime: takenMs - 1,
    amount,
    shares,
    orderAmount: amount * 2,
    limitProb,
    isFilled: false,
    isCancelled: trade.index % 3 === 0,
    fills: [{ matchedBetId: fill.takerId, amount, shares, timestamp: takenMs }],
  };
}

function redemption(fill: Fill, id: string): Wire {
  const { amount, shares } = amounts(fill, { outcomeIndex: 0, side: 'SELL' });
  const bet = common(fill, { outcomeIndex: 0, side: 'SELL' }, fill.trade.taker);
  return { ...bet, id, createdTime: fill.takenMs, amount, shares, isRedemption: true };
}
