import type { Market } from '../world/market.ts';
import { isQuiet } from '../world/quiet-market.ts';
import type { World } from '../world/world.ts';
import { closeSecondOf } from './wire.ts';

/** Epoch seconds, both inclusive. */
export interface CloseWindow {
  readonly minSecond: number;
  readonly maxSecond: number;
}

/** A position in the order of close time, then of creation. */
interface Place {
  readonly second: number;
  readonly no: number;
}

/**
 * Markets in order of close time. Quiet markets close as planned, so they are sorted once: a page costs its rows and the few other
 * markets, and no scan of the catalog.
 */
export class Closings {
  private readonly world: World;
  private planned: Market[] | undefined;

  constructor(world: World) {
    this.world = world;
  }

  /** The markets that close in the window, from this market number on. */
  *between({ minSecond, maxSecond }: CloseWindow, fromNo: number | undefined): Generator<Market> {
    const from = fromNo === undefined ? undefined : this.world.markets[fromNo];
    const start = from === undefined ? { second: minSecond, no: 0 } : actualPlace(from);
    this.planned ??= this.world.markets
      .filter((market) => !market.spec.hasTraders)
      .sort((a, b) => compare(plannedPlace(a), plannedPlace(b)));
    const moving = [...this.world.moving]
      .filter((market) => compare(actualPlace(market), start) >= 0 && closeSecondOf(market) <= maxSecond)
      .sort((a, b) => compare(actualPlace(a), actualPlace(b)));
    for (let at = firstAt(this.planned, start); at < this.planned.length; at += 1) {
      const market = this.planned[at];
      if (market === undefined || market.spec.endSecond > maxSecond) break;
      if (!isQuiet(market)) continue;
      for (let other = moving[0]; other && compare(actualPlace(other), plannedPlace(market)) < 0; other = moving[0]) {
        yield other;
        moving.shift();
      }
      yield market;
    }
    yield* moving;
  }
}

function plannedPlace({ spec }: Market): Place {
  return { second: spec.endSecond, no: spec.no };
}

function actualPlace(market: Market): Place {
  return { second: closeSecondOf(market), no: market.spec.no };
}

function compare(a: Place, b: Place): number {
  return a.second - b.second || a.no - b.no;
}

/** The index of the first market whose planned place is at or after `place`. */
function firstAt(planned: readonly Market[], place: Place): number {
  let low = 0;
  let high = planned.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const market = planned[middle];
    if (market !== undefined && compare(plannedPlace(market), place) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
