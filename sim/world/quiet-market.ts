import { hashWord, RandomStream } from '../random.ts';
import { requote } from '../traders/maker.ts';
import { Market, UNITS } from './market.ts';
import type { WorldOptions } from './options.ts';
import type { World } from './world.ts';

const QUIET_DOMAIN = 41;
const MOVE_DOMAIN = 42;
const MINUTE = 60;
/** A whole tick on both grids. */
const STEP = UNITS / 100;

/** The inputs of the quotes of markets without traders. */
interface QuietWorld {
  readonly second: number;
  readonly options: Pick<WorldOptions, 'seed' | 'nowSecond' | 'quietMovesPerMinute'>;
}

/** Whether all facts of a market follow from its plan, its opening quotes and their moves: it has no traders, and no control changed it. */
export function isQuiet(market: Market): boolean {
  return !market.spec.hasTraders && !market.isSteered;
}

/** How often the quotes of a market without traders have moved since the start of live time, by the seed and the second alone. */
export function movesOf(market: Market, { second, options }: QuietWorld): number {
  const { seed, nowSecond, quietMovesPerMinute } = options;
  if (quietMovesPerMinute === 0) return 0;
  const period = periodSeconds(quietMovesPerMinute);
  return Math.max(0, Math.floor((second - nowSecond + offsetOf(market, seed, period)) / period));
}

/** The second of the latest move, or of the creation. */
export function movedSecond(market: Market, world: QuietWorld): number {
  const moves = movesOf(market, world);
  if (moves === 0) return market.spec.createdSecond;
  const { seed, nowSecond, quietMovesPerMinute } = world.options;
  const period = periodSeconds(quietMovesPerMinute);
  return nowSecond + moves * period - offsetOf(market, seed, period);
}

function periodSeconds(movesPerMinute: number): number {
  return Math.max(1, Math.round(MINUTE / movesPerMinute));
}

/** Distributes the moves of the markets evenly over the period. */
function offsetOf(market: Market, seed: number, period: number): number {
  return hashWord(seed, MOVE_DOMAIN, market.spec.no) % period;
}

/**
 * The market to show: itself when it has traders, else a temporary copy with quotes that depend on the seed and the number of moves alone,
 * so that a catalog of 100,000 markets needs no books.
 */
export function visibleMarket(market: Market, world: QuietWorld): Market {
  if (market.spec.hasTraders) return market;
  const { seed } = world.options;
  const { no } = market.spec;
  const moves = movesOf(market, world);
  const copy = new Market(market.spec, market.event);
  copy.phase = market.phase;
  copy.winner = market.winner;
  copy.split = market.split;
  copy.isVoid = market.isVoid;
  copy.events = market.events;
  copy.rules = market.rules;
  copy.addedSpaces = market.addedSpaces;
  copy.closedSecond = market.closedSecond;
  copy.stopSecond = market.stopSecond;
  copy.isHalted = market.isHalted;
  copy.withdrawn = market.withdrawn;
  copy.fundamental = market.fundamental + stepsAway(moves, seed, no) * STEP;
  const random =
    moves === 0 ? new RandomStream(seed, QUIET_DOMAIN, no) : new RandomStream(seed, MOVE_DOMAIN, no, moves);
  const second = movedSecond(market, world);
  requote(copy, random, (order) => {
    copy.order(order, second);
  });
  copy.touchPhase(Math.floor(market.changedAtMs / 1000));
  return copy;
}

/** From -3 to 2. Even and odd moves are never equally far away, so every move changes the quotes. */
function stepsAway(moves: number, seed: number, no: number): number {
  if (moves === 0) return 0;
  return 2 * ((hashWord(seed, MOVE_DOMAIN, no, moves) % 3) - 1) - (moves % 2);
}

interface KeptText {
  readonly moves: number;
  readonly text: string;
}

/** One JSON text per quiet market, kept until its quotes move. The text of another market is made at each request. */
export class QuietTexts {
  private readonly world: World;
  private readonly kept: (KeptText | undefined)[] = [];

  constructor(world: World) {
    this.world = world;
  }

  of(market: Market, make: () => string): string {
    if (!isQuiet(market)) return make();
    const { no } = market.spec;
    const moves = movesOf(market, this.world);
    const known = this.kept[no];
    if (known?.moves === moves) return known.text;
    const text = make();
    this.kept[no] = { moves, text };
    return text;
  }
}
