import { type Market, UNITS } from '../world/market.ts';
import type { Intent, Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { betIdOf, placeOf, userIdOf, type Wire } from './contracts.ts';

export interface Bet {
  readonly id: string;
  readonly createdMs: number;
  readonly contractId: string;
  readonly answerId: string | undefined;
  readonly isRedemption: boolean;
  wire(): Wire;
}

/** Every so many fills the taker turns a pair of shares back into mana. */
const FILLS_PER_REDEMPTION = 10;

/**
 * The engine's fills as the venue's bets, oldest first. Each fill is two bets: the maker's limit order, stamped before it is
 * filled, and the taker's, stamped at the fill; redemptions come between. Bets of one second are a millisecond or two apart.
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
    const place = { ...placeOf(market, seed), isRedemption: false };
    this.push({ ...place, id: fill.makerId, createdMs: makerMs, wire: () => makerBet(fill) });
    this.push({ ...place, id: fill.takerId, createdMs: makerMs + 1, wire: () => takerBet(fill) });
    if (trade.index % FILLS_PER_REDEMPTION !== 0) return;
    const id = betIdOf(seed, trade.index, 'redemption');
    this.push({ ...place, isRedemption: true, id, createdMs: makerMs + 1, wire: () => redemption(fill, id) });
  }

  private push(bet: Bet): void {
    this.bets.push(bet);
    this.byId.set(bet.id, bet);
    if (this.bets.length <= 3 * this.world.options.tapeCapacity) return;
    for (const gone of this.bets.slice(0, this.world.options.tapeCapacity)) this.byId.delete(gone.id);
    this.bets = this.bets.slice(this.world.options.tapeCapacity);
  }
}

interface Fill {
  readonly trade: Trade;
  readonly market: Market;
  readonly seed: number;
  readonly takenMs: number;
  readonly makerId: string;
  readonly takerId: string;
}

function fillOf(trade: Trade, market: Market, seed: number, takenMs: number): Fill {
  const [makerId, takerId] = [betIdOf(seed, trade.index, 'maker'), betIdOf(seed, trade.index, 'taker')];
  return { trade, market, seed, takenMs, makerId, takerId };
}

/** Mana and shares of a side of the fill; both negative for a sale. */
function amounts({ trade, market }: Fill, intent: Intent): { amount: number; shares: number } {
  const price = market.yesTicks(trade.ticks, intent.outcomeIndex) / market.spec.ticksPerUnit;
  const sign = intent.side === 'BUY' ? 1 : -1;
  const shares = (sign * trade.size) / UNITS;
  return { amount: price * shares, shares };
}

function common(fill: Fill, intent: Intent, walletNo: number): Wire {
  const { contractId, answerId } = placeOf(fill.market, fill.seed);
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

/** A limit order that took nothing when it was placed and was filled a little later. */
function makerBet(fill: Fill): Wire {
  const { trade, takenMs, market } = fill;
  const { amount, shares } = amounts(fill, trade.makerIntent);
  return {
    ...common(fill, trade.makerIntent, trade.maker),
    id: fill.makerId,
    createdTime: takenMs - 1,
    amount,
    shares,
    orderAmount: amount * 2,
    limitProb: trade.ticks / market.spec.ticksPerUnit,
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
