import { SimControlError } from '../errors.ts';
import { advancePhase } from './lifecycle.ts';
import type { Market } from './market.ts';
import type { World } from './world.ts';

export const MARKET_ACTIONS = [
  'halt',
  'deactivate',
  'archive',
  'unhalt',
  'vanish',
  'return',
  'close',
  'amend',
  'resolve',
] as const;

/**
 * The manual actions on a market. `halt` suspends trading and `unhalt` ends that; `deactivate` and `archive` suspend
 * it too, under the flag that Gamma has for each, while `acceptingOrders` stays true; `vanish` removes it from every
 * listing and look-up until `return` (its prints remain, and it does not trade meanwhile); `close` ends trading
 * now, regardless of the plan; `amend` changes the outcome that a closed market announced (Kalshi says `amended`); and `resolve` settles it,
 * closing it first if necessary. A second `resolve` corrects the winner.
 */
export type MarketAction = (typeof MARKET_ACTIONS)[number];

const WITHDRAWN = { halt: undefined, unhalt: undefined, deactivate: 'inactive', archive: 'archived' } as const;

/** Later than the end of any run: a manually closed market waits for a manual resolution. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Performs it in the current simulated second. @throws SimControlError when the market's state does not allow it */
export function steerMarket(world: World, market: Market, action: MarketAction, winner: 0 | 1 | undefined): void {
  switch (action) {
    case 'halt':
    case 'deactivate':
    case 'archive':
    case 'unhalt':
      refuseUnless(market.phase === 'open', market, action);
      market.isHalted = action !== 'unhalt';
      market.withdrawn = WITHDRAWN[action];
      market.haltSecond = world.second;
      market.touchPhase(world.second);
      break;
    case 'vanish':
    case 'return':
      refuseUnless(market.phase !== 'scheduled', market, action);
      market.isVanished = action === 'vanish';
      break;
    case 'close':
      refuseUnless(market.phase === 'open', market, action);
      market.resolveSecond = NEVER;
      end(world, market, winner);
      break;
    case 'amend':
      refuseUnless(market.phase === 'proposed' || market.phase === 'disputed', market, action);
      market.winner = winner ?? (market.winner === 0 ? 1 : 0);
      market.amendSecond = world.second;
      market.touchPhase(world.second);
      break;
    case 'resolve':
      refuseUnless(market.phase !== 'scheduled', market, action);
      if (market.phase === 'resolved') correct(world, market, winner);
      else {
        market.resolveSecond = world.second;
        end(world, market, winner);
      }
  }
  world.noteSteered(market);
}

function end(world: World, market: Market, winner: 0 | 1 | undefined): void {
  if (market.phase === 'open') market.stopSecond = world.second;
  market.isHalted = false;
  advancePhase(market, world.second, (each) => world.siblingsOf(each));
  market.winner = winner ?? market.winner;
}

/** Counts as a settlement of this second, because pollers skip older ones. */
function correct(world: World, market: Market, winner: 0 | 1 | undefined): void {
  market.winner = winner ?? market.winner;
  market.closedSecond = world.second;
  market.touchPhase(world.second);
}

function refuseUnless(isFine: boolean, market: Market, action: MarketAction): void {
  if (!isFine) throw new SimControlError(409, 'wrong_phase', `cannot ${action} a market that is ${market.phase}`);
}
