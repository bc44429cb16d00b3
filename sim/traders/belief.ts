import type { RandomStream } from '../random.ts';
import { type Market, UNITS } from '../world/market.ts';

const LOWEST = 20_000;
const JUMP_PER_MILLION = 15_000;

/** Changes the traders' estimate of a market's value: a bounded random walk in millionths with rare jumps. */
export function moveBelief(market: Market, elapsedSeconds: number, random: RandomStream): void {
  const step = drawStep(market, elapsedSeconds, random);
  const moved = market.fundamental + step;
  // Reflection keeps the walk inside without an accumulation at the edge.
  const reflected = moved < LOWEST ? 2 * LOWEST - moved : moved > UNITS - LOWEST ? 2 * (UNITS - LOWEST) - moved : moved;
  market.fundamental = Math.min(UNITS - LOWEST, Math.max(LOWEST, reflected));
}

/** In a negative-risk event belief moves from one answer to another, so the sum stays exactly one. */
export function shiftBelief(
  market: Market,
  siblings: readonly Market[],
  elapsedSeconds: number,
  random: RandomStream,
): void {
  const other = random.pick(siblings);
  const step = drawStep(market, elapsedSeconds, random);
  const floor = 5000;
  if (other === market || market.fundamental + other.fundamental < 2 * floor) return;
  const bounded = Math.min(other.fundamental - floor, Math.max(floor - market.fundamental, step));
  market.fundamental += bounded;
  other.fundamental -= bounded;
}

/** Sets one belief of a group and scales the others so that the sum stays one. */
export function setGroupBelief(market: Market, siblings: readonly Market[], fundamental: number): void {
  const others = siblings.filter((sibling) => sibling !== market);
  const rest = others.reduce((sum, sibling) => sum + sibling.fundamental, 0);
  let left = UNITS - fundamental;
  for (const [at, sibling] of others.entries()) {
    const share =
      at === others.length - 1 ? left : Math.floor((sibling.fundamental * (UNITS - fundamental)) / Math.max(1, rest));
    sibling.fundamental = share;
    left -= share;
  }
  market.fundamental = fundamental;
}

function drawStep(market: Market, elapsedSeconds: number, random: RandomStream): number {
  const scale = integerRoot(Math.min(elapsedSeconds, 3600) * 100);
  // 77 is the root of 60 s on the same scale, so the volatility is a value per minute.
  const reach = Math.max(1, Math.floor((market.spec.volatility * scale) / 77));
  const step = random.between(-reach, reach);
  return random.chance(JUMP_PER_MILLION) ? step * 6 : step;
}

function integerRoot(value: number): number {
  let root = 0;
  while ((root + 1) * (root + 1) <= value) root += 1;
  return root;
}
