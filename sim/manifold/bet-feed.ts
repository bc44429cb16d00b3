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
 * The engine's fills as the venue's bets, made from the tape at each read. Each fill is two bets: the maker's limit order, stamped before
 * it is filled, and the taker's, stamped at the fill; redemptions come between. Bets of one second are a millisecond or two apart. Limit
 * orders of takers have stamps that are cut to the second.
 */
export class BetFeed {
  private readonly world: World;
  private readonly places = new Map<Market, ReturnType<typeof placeOf>>();

  constructor(world: World) {
    this.world = world;
  }

  /** The bets of the second of `fromMs` and of later ones. */
  *oldestFirst(fromMs = 0): Generator<Bet> {
    const { tape } = this.world;
    for (let start = tape.indexAt(Math.floor(fromMs / 1000)); start < tape.nextIndex; ) {
      const { end, bets } = this.secondOf(start);
      yield* bets;
      start = end;
    }
  }

  /** The bets of the second of `untilMs` and of earlier ones. */
  *newestFirst(untilMs = Infinity): Generator<Bet> {
    const { tape } = this.world;
    for (let end = tape.indexAt(Math.floor(untilMs / 1000) + 1); end > tape.firstIndex; ) {
      const { start, bets } = this.secondOf(end - 1);
      yield* bets.reverse();
      end = start;
    }
  }

  find(id: string): Bet | undefined {
    for (const bet of this.newestFirst()) if (bet.id === id) return bet;
    return undefined;
  }

  /** The trades of the second of a trade, and their bets, oldest first: none when the tape dropped a part of the second. */
  private secondOf(index: number): { start: number; end: number; bets: Bet[] } {
    const { tape } = this.world;
    const second = tape.from(index, 1)[0]?.second ?? 0;
    const [start, end] = [tape.indexAt(second), tape.indexAt(second + 1)];
    const bets: Bet[] = [];
    const isCut = start > 0 && start === tape.firstIndex;
    if (!isCut) for (const [place, trade] of tape.from(start, end - start).entries()) this.add(bets, trade, 2 * place);
    return { start, end, bets };
  }

  private add(bets: Bet[], trade: Trade, placeInSecond: number): void {
    const market = this.world.markets[trade.marketNo];
    if (market === undefined) return;
    const { seed } = this.world.options;
    const makerMs = trade.second * 1000 + Math.min(997, placeInSecond);
    const fill = { trade, market, seed, place: this.placeOf(market), takenMs: makerMs + 1 };
    insert(
      bets,
      betOf(fill, 'maker', makerMs, () => makerBet(fill)),
    );
    const taker = isLimitTaker(trade)
      ? betOf(fill, 'taker', trade.second * 1000, () => limitTakerBet(fill, this.world.second))
      : betOf(fill, 'taker', makerMs + 1, () => takerBet(fill));
    insert(bets, taker);
    if (trade.index % FILLS_PER_REDEMPTION !== 0) return;
    insert(
      bets,
      betOf(fill, 'redemption', makerMs + 1, () => redemption(fill)),
    );
  }

  private placeOf(market: Market): ReturnType<typeof placeOf> {
    const place = this.places.get(market) ?? placeOf(market, this.world.options.seed);
    this.places.set(market, place);
    return place;
  }
}

/** After the bets that are not later. */
function insert(bets: Bet[], bet: Bet): void {
  const at = bets.findLastIndex(({ createdMs }) => createdMs <= bet.createdMs);
  bets.splice(at + 1, 0, bet);
}

interface Fill {
  readonly trade: Trade;
  readonly market: Market;
  readonly seed: number;
  readonly place: ReturnType<typeof placeOf>;
  readonly takenMs: number;
}

type Role = Parameters<typeof betIdOf>[2];

function betOf(fill: Fill, role: Role, createdMs: number, wire: () => Wire): Bet {
  return {
    // Most reads need no id.
    get id() {
      return idOf(fill, role);
    },
    tradeIndex: fill.trade.index,
    createdMs,
    ...fill.place,
    isRedemption: role === 'redemption',
    wire,
  };
}

function idOf({ seed, trade }: Fill, role: Role): string {
  return betIdOf(seed, trade.index, role);
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
    id: idOf(fill, 'taker'),
    createdTime: takenMs,
    amount,
    shares,
    orderAmount: amount,
    isFilled: true,
    isCancelled: false,
    fills: [{ matchedBetId: idOf(fill, 'maker'), amount, shares, timestamp: takenMs }],
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
    matchedBetId: idOf(fill, 'maker'),
    amount,
    shares,
    timestamp: takenMs,
    ...(trade.index % 2 === 0 && { fees }),
  };
  const isFilledFurther = nowSecond >= trade.second + FILLED_FURTHER_AFTER;
  const further = {
    matchedBetId: idOf(fill, 'arbitrage'),
    amount: shares * limit,
    shares,
    timestamp: takenMs + FILLED_FURTHER_AFTER * 1000,
  };
  const fills = isFilledFurther ? [own, further] : [own];
  return {
    ...common(fill, trade.takerIntent, trade.taker),
    id: idOf(fill, 'taker'),
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
    id: idOf(fill, 'maker'),
    createdTime: takenMs - 1,
    amount,
    shares,
    orderAmount: amount * 2,
    limitProb,
    isFilled: false,
    isCancelled: trade.index % 3 === 0,
    fills: [{ matchedBetId: idOf(fill, 'taker'), amount, shares, timestamp: takenMs }],
  };
}

function redemption(fill: Fill): Wire {
  const { amount, shares } = amounts(fill, { outcomeIndex: 0, side: 'SELL' });
  const bet = common(fill, { outcomeIndex: 0, side: 'SELL' }, fill.trade.taker);
  return { ...bet, id: idOf(fill, 'redemption'), createdTime: fill.takenMs, amount, shares, isRedemption: true };
}
