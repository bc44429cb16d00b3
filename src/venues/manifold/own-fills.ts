import type { ManifoldBet } from './models.ts';

type Fill = NonNullable<ManifoldBet['fills']>[number];

/**
 * The venue computes all fills of a new bet in one loop without I/O, while other bets on the market wait for a lock that ends with a
 * commit. Fills of one bet therefore lie within milliseconds of each other, and the fills of the next bet do not.
 */
const SAME_BET_MS = 20;
/** Prices are binary fractions: closer ones are equal. */
const PRICE_ERROR = 1e-6;
/** A market that rests at a limit price may differ from it by the venue's rounding. */
const AT_LIMIT = 1e-4;

/**
 * The fills that a bet took when it was placed, without fills in which later bets took from it. Later fills are in the fills of the later
 * bets too, so counting them here would count their volume twice. The venue appends fills, so a bet's own fills come first:
 *
 * 1. A bet without a limit has no later fills.
 * 2. A fill against the pool (`matchedBetId` null) is the bet's own. So is a fill with `fees`, which only takers pay.
 * 3. When one of its fills against bets has fees, its fills against bets without fees are later ones.
 * 4. Without fees (old bets) time decides. The venue stamps a bet after computing its fills: own fills are not later than `createdTime`. A
 *    stamp of a whole second may be rounded, so it decides nothing. A fill at a better price than the limit is then the bet's own, since
 *    later bets pay the limit exactly, and so are fills within milliseconds of it. When all fills are at the limit, the bet took them only
 *    if the market was already at the limit (`probBefore`). An order at the market's price that rested and was filled within the second of
 *    its stamp looks the same and counts too.
 */
export function ownFills(bet: ManifoldBet): readonly Fill[] {
  const fills = bet.fills ?? [];
  if (bet.limitProb === undefined || bet.limitProb === null) return fills;
  const lastCertain = fills.findLastIndex((fill) => fill.matchedBetId === null || hasFees(fill));
  if (fills.some((fill) => fill.matchedBetId !== null && hasFees(fill))) return fills.slice(0, lastCertain + 1);
  if (bet.createdTime % 1000 !== 0) {
    const lastInTime = fills.findLastIndex((fill) => fill.timestamp <= bet.createdTime);
    return fills.slice(0, Math.max(lastCertain, lastInTime) + 1);
  }
  const limit = bet.outcome === 'YES' ? bet.limitProb : 1 - bet.limitProb;
  const lastBetter = fills.findLastIndex((fill) => fill.amount / fill.shares < limit - PRICE_ERROR);
  const lastKnown = Math.max(lastCertain, lastBetter);
  const anchor = lastKnown >= 0 ? fills[lastKnown] : firstAtLimit(bet, bet.limitProb, fills);
  if (anchor === undefined) return [];
  const firstLater = fills.findIndex(
    (fill, index) => index > lastKnown && Math.abs(fill.timestamp - anchor.timestamp) > SAME_BET_MS,
  );
  return firstLater < 0 ? fills : fills.slice(0, firstLater);
}

function hasFees({ fees }: Fill): boolean {
  return fees !== undefined && fees !== null;
}

/** The first fill of a bet with all fills at its limit, if it can be the bet's own. */
function firstAtLimit(bet: ManifoldBet, limitProb: number, [first]: readonly Fill[]): Fill | undefined {
  const { probBefore, createdTime } = bet;
  const wasAtLimit = probBefore === undefined || probBefore === null || Math.abs(probBefore - limitProb) <= AT_LIMIT;
  return first !== undefined && wasAtLimit && Math.abs(first.timestamp - createdTime) < 1000 ? first : undefined;
}
