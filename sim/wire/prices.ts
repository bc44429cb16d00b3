import { type Market, UNITS } from '../world/market.ts';
import { formatScaled } from './decimal-text.ts';

/** The venue's displayed price: the midpoint, or with a spread over 0.10 the last trade. */
const WIDEST_SPREAD_PERCENT = 10;

interface TokenQuote {
  readonly bid: number | undefined;
  readonly ask: number | undefined;
}

/** Best bid and ask of one outcome, in its own ticks. */
export function tokenQuote(market: Market, outcomeIndex: number): TokenQuote {
  const { bestBid, bestAsk } = market.book;
  if (outcomeIndex === 0) return { bid: bestBid, ask: bestAsk };
  return {
    bid: bestAsk === undefined ? undefined : market.yesTicks(bestAsk, 1),
    ask: bestBid === undefined ? undefined : market.yesTicks(bestBid, 1),
  };
}

/** Twice the displayed price of the first outcome in ticks (a midpoint may be between two ticks). */
export function shownDoubleTicks(market: Market): number | undefined {
  const { bestBid, bestAsk } = market.book;
  const last = market.lastYesTicks;
  if (bestBid === undefined || bestAsk === undefined) return last === undefined ? undefined : last * 2;
  const isWide = (bestAsk - bestBid) * 100 > WIDEST_SPREAD_PERCENT * market.spec.ticksPerUnit;
  return isWide && last !== undefined ? last * 2 : bestBid + bestAsk;
}

/** Prices of both outcomes as the venue writes them; final ones are the payouts, zeros without a result, unknown ones absent. */
export function outcomePrices(market: Market): [string, string] | undefined {
  if (market.phase === 'resolved' && market.isVoid) return ['0', '0'];
  if (market.phase === 'resolved' && market.payout !== undefined) return payoutTexts(market.payout);
  const double = shownDoubleTicks(market);
  if (double === undefined) return undefined;
  const grid = 2 * market.spec.ticksPerUnit;
  return [formatScaled(double, grid), formatScaled(grid - double, grid)];
}

/** What both outcomes pay, from millionths for the first one. */
export function payoutTexts(payout: number): [string, string] {
  return [formatScaled(payout, UNITS), formatScaled(UNITS - payout, UNITS)];
}

/** The midpoint of one outcome's book as text; undefined when a side is empty. */
export function midpointText(market: Market, outcomeIndex: number): string | undefined {
  const { bid, ask } = tokenQuote(market, outcomeIndex);
  if (bid === undefined || ask === undefined) return undefined;
  return formatScaled(bid + ask, 2 * market.spec.ticksPerUnit);
}

/** Ask minus bid as text; undefined when a side is empty. */
export function spreadText(market: Market, outcomeIndex: number): string | undefined {
  const { bid, ask } = tokenQuote(market, outcomeIndex);
  if (bid === undefined || ask === undefined) return undefined;
  return formatScaled(ask - bid, market.spec.ticksPerUnit);
}

/** Dollars resting in the book, in millionths: bids at their price, asks at the price of the other outcome. */
export function restingMicroUsd(market: Market): number {
  // Without this, a book would be created for each market of a large catalog.
  if (!market.hasBook) return 0;
  const grid = market.spec.ticksPerUnit;
  let sum = 0;
  for (const level of market.book.depth('bid')) sum += Math.floor((level.size * level.ticks) / grid);
  for (const level of market.book.depth('ask')) sum += Math.floor((level.size * (grid - level.ticks)) / grid);
  return sum;
}
