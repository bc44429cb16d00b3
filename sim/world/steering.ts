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
  'resolve',
] as const;

/**
 * What can be decided about a market by hand. `halt` suspends trading and `unhalt` ends that; `deactivate` and `archive` suspend
 * it too, under the flag that Gamma has for each, while `acceptingOrders` stays true; `vanish` takes it off the
 * venue, by every listing and by id, until `return` (its prints stay, and nothing trades meanwhile); `close` ends trading
 * now, whatever was planned, and `resolve` settles it, closing it first when need be. Resolving again corrects the winner.
 */
export type MarketAction = (typeof MARKET_ACTIONS)[number];

const WITHDRAWN = { halt: undefined, unhalt: undefined, deactivate: 'inactive', archive: 'archived' } as const;

/** Further than any run gets: closed by hand, it waits for a hand to resolve it. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Does it, as of the simulated second that runs. @throws SimControlError when the market is in no state for it. */
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
    case 'resolve':
      refuseUnless(market.phase !== 'scheduled', market, action);
      if (market.phase === 'resolved') correct(world, market, winner);
      else {
        market.resolveSecond = world.second;
        end(world, market, winner);
      }
  }
  world.noteChange();
}

function end(world: World, market: Market, winner: 0 | 1 | undefined): void {
  if (market.phase === 'open') market.stopSecond = world.second;
  market.isHalted = false;
  advancePhase(market, world.second, (each) => world.siblingsOf(each));
  market.winner = winner ?? market.winner;
}

/** Seen as a settlement of this second, or nobody would look at it again. */
function correct(world: World, market: Market, winner: 0 | 1 | undefined): void {
  market.winner = winner ?? market.winner;
  market.closedSecond = world.second;
  market.touchPhase(world.second);
}

function refuseUnless(isFine: boolean, market: Market, action: MarketAction): void {
  if (!isFine) throw new SimControlError(409, 'wrong_phase', `cannot ${action} a market that is ${market.phase}`);
}
