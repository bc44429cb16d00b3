import type { RandomStream } from '../random.ts';
import { type Market, type MarketOrder, UNITS } from '../world/market.ts';
import { DEEP_MAKER, TIGHT_MAKER } from './wallets.ts';

/** A hundredth of a share: the finest size a resting order has at the venue. */
const SIZE_STEP = UNITS / 100;

/** Cancels both makers' orders and quotes again around the market's belief. */
export function requote(market: Market, random: RandomStream, submit: (order: MarketOrder) => void): void {
  market.book.cancelOwner(TIGHT_MAKER);
  market.book.cancelOwner(DEEP_MAKER);
  const grid = market.spec.ticksPerUnit;
  const below = Math.floor((market.fundamental * grid) / UNITS);
  const tick = grid === 1000 ? 3 : 1;
  quote({ market, random, submit, owner: TIGHT_MAKER, bid: below, step: tick, levels: 3, shares: 60 });
  const away = random.between(2, 4) * tick;
  quote({
    market,
    random,
    submit,
    owner: DEEP_MAKER,
    bid: below - away,
    ask: below + 1 + away,
    step: tick * 2,
    levels: 5,
    shares: 400,
  });
}

interface Quote {
  readonly market: Market;
  readonly random: RandomStream;
  readonly submit: (order: MarketOrder) => void;
  readonly owner: number;
  readonly bid: number;
  readonly ask?: number;
  readonly step: number;
  readonly levels: number;
  readonly shares: number;
}

function quote({ market, random, submit, owner, bid, ask = bid + 1, step, levels, shares }: Quote): void {
  for (let level = 0; level < levels; level += 1) {
    const size = random.between(Math.floor(shares / 4), shares) * (level + 1) * UNITS + random.below(100) * SIZE_STEP;
    // Two equal orders one after the other: a taker that fills both prints two exactly equal rows.
    const isSplit = level === 0 && random.chance(250_000);
    for (const yesBid of [true, false]) {
      const yesTicks = yesBid ? bid - level * step : ask + level * step;
      if (yesTicks < 1 || yesTicks >= market.spec.ticksPerUnit) continue;
      const order = makerOrder(
        market,
        owner,
        yesBid,
        yesTicks,
        isSplit ? size - (size % (2 * SIZE_STEP)) : size,
        random,
      );
      if (!isSplit) submit(order);
      else for (const half of [order.size / 2, order.size / 2]) submit({ ...order, size: half });
    }
  }
}

/** An ask is equally often a purchase of the second outcome and a sale of the first: the book cannot distinguish them. */
function makerOrder(
  market: Market,
  owner: number,
  isYesBid: boolean,
  yesTicks: number,
  size: number,
  random: RandomStream,
): MarketOrder {
  const outcomeIndex = random.chance(500_000) ? 0 : 1;
  const side = isYesBid === (outcomeIndex === 0) ? 'BUY' : 'SELL';
  return {
    owner,
    intent: { outcomeIndex, side },
    ticks: market.yesTicks(yesTicks, outcomeIndex),
    size,
    remainder: 'rest',
  };
}
