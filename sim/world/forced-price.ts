import { setGroupBelief } from '../traders/belief.ts';
import { AGGRESSOR, STRONG_MAKER } from '../traders/wallets.ts';
import { type Market, UNITS } from './market.ts';
import type { TradeSide } from './trade-tape.ts';
import type { World } from './world.ts';

const SWEEP_SHARES = 1_000_000_000;
const STRONG_SHARES = 250_000;
const PRINT_SHARES = 25;

/**
 * Moves a market to a price with real orders: an aggressor sweeps all levels up to it, prints one trade at exactly
 * `tokenTicks` of the outcome, and a strong maker quotes one tick around it. Random traders skip the market
 * until `holdSeconds` have passed; then the belief is at that price and trading continues from there.
 * Returns the number of fills.
 */
export function forcePrice(
  world: World,
  market: Market,
  outcomeIndex: 0 | 1,
  tokenTicks: number,
  holdSeconds: number,
): number {
  const before = world.tape.nextIndex;
  const grid = market.spec.ticksPerUnit;
  const yesTicks = market.yesTicks(tokenTicks, outcomeIndex);
  market.book.cancelOwner(STRONG_MAKER);
  const send = (owner: number, side: TradeSide, ticks: number, shares: number, remainder: 'rest' | 'drop'): void => {
    if (ticks < 1 || ticks >= grid) return;
    world.submit(market, { owner, intent: { outcomeIndex, side }, ticks, size: shares * UNITS, remainder });
  };
  // A buy reaches asks at or under the price, a sale bids at or over it: only one of the two matches.
  send(AGGRESSOR, 'BUY', tokenTicks, SWEEP_SHARES, 'drop');
  send(AGGRESSOR, 'SELL', tokenTicks, SWEEP_SHARES, 'drop');
  send(STRONG_MAKER, 'SELL', tokenTicks, PRINT_SHARES, 'rest');
  send(AGGRESSOR, 'BUY', tokenTicks, PRINT_SHARES, 'drop');
  send(STRONG_MAKER, 'BUY', tokenTicks - 1, STRONG_SHARES, 'rest');
  send(STRONG_MAKER, 'SELL', tokenTicks + 1, STRONG_SHARES, 'rest');
  const fundamental = (yesTicks * UNITS) / grid;
  if (market.event.negRiskId === undefined) market.fundamental = fundamental;
  else setGroupBelief(market, world.siblingsOf(market), fundamental);
  market.pin = { ticks: yesTicks, untilSecond: world.second + holdSeconds };
  market.touch(world.second);
  return world.tape.nextIndex - before;
}
