import type { RandomStream } from '../random.ts';
import { type Market, type MarketOrder, UNITS } from '../world/market.ts';
import type { Intent } from '../world/trade-tape.ts';
import { FIRST_RETAIL, REGULAR, REGULAR_COUNTS_FOR, RETAIL_WALLETS } from './wallets.ts';

/** Sizes of a purchase by amount come out with four decimals. */
const BOUGHT_STEP = UNITS / 10_000;
const SLIPPAGE_TICKS = 4;
const MAX_RETAIL_ORDERS = 12;

/** One action of a retail trader: usually takes an offer, sometimes leaves an order in the book. */
export function actAsRetail(
  market: Market,
  retailOrders: number[],
  random: RandomStream,
  submit: (order: MarketOrder) => number,
): void {
  const drawn = random.below(RETAIL_WALLETS);
  const owner = drawn < REGULAR_COUNTS_FOR ? REGULAR : FIRST_RETAIL + drawn;
  const intent = drawIntent(market, random);
  if (random.chance(250_000)) {
    const order = patientOrder(market, owner, intent, random);
    if (order === undefined) return;
    retailOrders.push(submit(order));
    while (retailOrders.length > MAX_RETAIL_ORDERS) {
      const oldest = retailOrders.shift();
      if (oldest !== undefined) market.book.cancel(oldest);
    }
    return;
  }
  const order = hastyOrder(market, owner, intent, random);
  if (order !== undefined) submit(order);
}

/** Tends towards the belief, so that takers move a stale book towards it. */
function drawIntent(market: Market, random: RandomStream): Intent {
  const { bestBid, bestAsk } = market.book;
  const middle = bestBid !== undefined && bestAsk !== undefined ? bestBid + bestAsk : undefined;
  const fair = Math.floor((2 * market.fundamental * market.spec.ticksPerUnit) / UNITS);
  const lean = middle === undefined || middle === fair ? 500_000 : middle < fair ? 600_000 : 400_000;
  const wantsFirst = random.chance(lean);
  const isPurchase = random.chance(780_000);
  return { outcomeIndex: wantsFirst === isPurchase ? 0 : 1, side: isPurchase ? 'BUY' : 'SELL' };
}

/** An immediate order a few ticks past the best price; buys spend an amount, sales sell a number of shares. */
function hastyOrder(market: Market, owner: number, intent: Intent, random: RandomStream): MarketOrder | undefined {
  const isYesBid = (intent.side === 'BUY') === (intent.outcomeIndex === 0);
  const best = isYesBid ? market.book.bestAsk : market.book.bestBid;
  if (best === undefined) return undefined;
  const grid = market.spec.ticksPerUnit;
  const tokenBest = market.yesTicks(best, intent.outcomeIndex);
  const worst = intent.side === 'BUY' ? tokenBest + SLIPPAGE_TICKS : tokenBest - SLIPPAGE_TICKS;
  const dollars = random.between(1, 20) * random.pick([1, 1, 1, 2, 5, 10, 50]);
  const bought = Math.floor((dollars * UNITS * grid) / tokenBest / BOUGHT_STEP) * BOUGHT_STEP;
  const size = intent.side === 'BUY' ? bought : dollars * 2 * UNITS;
  return { owner, intent, ticks: Math.min(grid - 1, Math.max(1, worst)), size, remainder: 'drop' };
}

/** A limit order that waits some ticks behind the best price of its own side. */
function patientOrder(market: Market, owner: number, intent: Intent, random: RandomStream): MarketOrder | undefined {
  const isYesBid = (intent.side === 'BUY') === (intent.outcomeIndex === 0);
  const best = isYesBid ? market.book.bestBid : market.book.bestAsk;
  if (best === undefined) return undefined;
  const behind = random.below(market.spec.ticksPerUnit / 12);
  const yesTicks = isYesBid ? best - behind : best + behind;
  if (yesTicks < 1 || yesTicks >= market.spec.ticksPerUnit) return undefined;
  const size = random.between(5, 200) * UNITS;
  return { owner, intent, ticks: market.yesTicks(yesTicks, intent.outcomeIndex), size, remainder: 'rest' };
}
