import { SimControlError } from '../errors.ts';
import { believedWinner, enter, stopTrading } from './lifecycle.ts';
import type { Market } from './market.ts';
import { type ChosenResult, choose, note } from './resolution.ts';
import type { World } from './world.ts';

export const MARKET_ACTIONS = [
  'halt',
  'deactivate',
  'archive',
  'unhalt',
  'vanish',
  'return',
  'rules',
  'close',
  'propose',
  'dispute',
  'amend',
  'resolve',
  'void',
  'reopen',
] as const;

/**
 * The manual actions on a market. `halt` suspends trading and `unhalt` ends that; `deactivate` and `archive` suspend
 * it too, under the flag that Gamma has for each, while `acceptingOrders` stays true; `vanish` removes it from every
 * listing and look-up until `return` (its prints remain, and it does not trade meanwhile); `rules` replaces its rules, or adds a space to
 * them; `close` ends trading now, regardless of the plan.
 *
 * The others decide about the result, and end the plan of the market: `propose` ends trading with a proposal, or begins the next round after
 * a dispute; `dispute` disputes it; `amend` changes the outcome that a closed market announced (Kalshi says `amended`, also after a dispute); `resolve` settles it,
 * closing it first if necessary, and a second `resolve` corrects it; `void` ends it without a result; `reopen` withdraws the result, and
 * trading goes on.
 */
type MarketAction = (typeof MARKET_ACTIONS)[number];

export interface Steering extends ChosenResult {
  readonly action: MarketAction;
  /** The new rules, for `rules`. */
  readonly rules?: string | undefined;
  /** The venues show a change of the result so many seconds later, with its true time. */
  readonly lateSeconds?: number | undefined;
}

const WITHDRAWN = { halt: undefined, unhalt: undefined, deactivate: 'inactive', archive: 'archived' } as const;

/** Later than the end of any run: a manually closed market waits for a manual resolution. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Performs it in the current simulated second. @throws SimControlError when the market's state does not allow it */
export function steerMarket(world: World, market: Market, steering: Steering): void {
  const { action } = steering;
  const { second } = world;
  switch (action) {
    case 'halt':
    case 'deactivate':
    case 'archive':
    case 'unhalt':
      refuseUnless(market.phase === 'open', market, action);
      market.isHalted = action !== 'unhalt';
      market.withdrawn = WITHDRAWN[action];
      market.haltSecond = second;
      market.touchPhase(second);
      break;
    case 'vanish':
    case 'return':
      refuseUnless(market.phase !== 'scheduled', market, action);
      market.isVanished = action === 'vanish';
      break;
    case 'rules':
      if (steering.rules === undefined) market.addedSpaces += 1;
      market.rules = steering.rules ?? market.rules;
      market.rulesSecond = second;
      market.touchPhase(second);
      break;
    default:
      refuseUnless(isPossible(market, action) && !market.isLate, market, action);
      if (steering.lateSeconds === undefined) decide(world, market, steering, second);
      else {
        market.isLate = true;
        world.later(steering.lateSeconds, () => {
          market.isLate = false;
          decide(world, market, steering, second);
          world.noteSteered(market);
        });
      }
  }
  world.noteSteered(market);
}

type Decision = Exclude<MarketAction, keyof typeof WITHDRAWN | 'vanish' | 'return' | 'rules'>;

function isPossible({ phase }: Market, action: Decision): boolean {
  const isPending = phase === 'proposed' || phase === 'disputed';
  switch (action) {
    case 'close':
      return phase === 'open';
    case 'propose':
      return phase === 'open' || phase === 'disputed';
    case 'dispute':
      return phase === 'proposed';
    case 'amend':
      return isPending;
    case 'reopen':
      return isPending || phase === 'resolved';
    default:
      return phase !== 'scheduled';
  }
}

/** @param second the true time of the change */
function decide(world: World, market: Market, steering: Steering, second: number): void {
  const { action } = steering;
  const before = market.payout;
  const wasOpen = market.phase === 'open';
  market.isManual = action !== 'close';
  if (action !== 'reopen' && action !== 'dispute') {
    if (wasOpen) {
      market.stopSecond = second;
      market.resolveSecond = NEVER;
      market.isHalted = false;
      stopTrading(market, world.siblingsOf(market));
    }
    // An announced outcome changes to the other one by default.
    const other = market.winner === 0 ? 1 : 0;
    const isNamed = steering.winner !== undefined || steering.payout !== undefined;
    choose(market, action === 'amend' && !isNamed ? { winner: other } : steering);
    // No venue shows a proposal of a market that ends without one.
    if (wasOpen && action !== 'void') enter(market, 'proposed', second);
  }
  switch (action as Decision) {
    case 'close':
      break;
    case 'propose':
      if (wasOpen) break;
      if (market.payout !== before) market.amendSecond = second;
      enter(market, 'proposed', second);
      break;
    case 'dispute':
      enter(market, 'disputed', second);
      break;
    case 'amend':
      market.amendSecond = second;
      note(market, 'amended', second);
      break;
    case 'resolve':
      // A correction counts as a settlement of its second, because pollers skip older ones.
      market.closedSecond = second;
      if (market.payout === undefined) market.winner = believedWinner(market, world.siblingsOf(market));
      market.isVoid = false;
      if (market.phase === 'resolved') note(market, 'corrected', second);
      else enter(market, 'resolved', second);
      break;
    case 'void':
      market.closedSecond = second;
      market.isVoid = true;
      market.winner = undefined;
      market.split = undefined;
      market.phase = 'resolved';
      note(market, 'voided', second);
      break;
    case 'reopen':
      market.phase = 'open';
      market.isVoid = false;
      market.winner = undefined;
      market.split = undefined;
      market.closedSecond = undefined;
      market.amendSecond = undefined;
      market.stopSecond = undefined;
      note(market, 'reopened', second);
  }
  market.shownSecond = world.second;
  market.touchPhase(world.second);
}

function refuseUnless(isFine: boolean, market: Market, action: MarketAction): void {
  if (!isFine) throw new SimControlError(409, 'wrong_phase', `cannot ${action} a market that is ${market.phase}`);
}
