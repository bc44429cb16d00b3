import type { Market } from '../world/market.ts';
import { visibleMarket } from '../world/quiet-market.ts';
import type { World } from '../world/world.ts';

/** The levels of one side by ticks, on the axis of the first outcome; sizes in millionths. */
type LevelView = ReadonlyMap<number, number>;

/** A market as its feeds show it at one moment. */
export interface MarketView {
  /** The market with its quotes. A market with traders changes after this moment. */
  readonly shown: Market;
  readonly bids: LevelView;
  readonly asks: LevelView;
  readonly bestBid: number | undefined;
  readonly bestAsk: number | undefined;
  readonly isTrading: boolean;
}

export interface LevelChange {
  readonly side: 'bid' | 'ask';
  readonly ticks: number;
  readonly before: number;
  readonly after: number;
}

export function viewOf(market: Market, world: World): MarketView {
  const shown = visibleMarket(market, world);
  const levels = (side: 'bid' | 'ask') => new Map(shown.book.depth(side).map(({ ticks, size }) => [ticks, size]));
  return {
    shown,
    bids: levels('bid'),
    asks: levels('ask'),
    bestBid: shown.book.bestBid,
    bestAsk: shown.book.bestAsk,
    isTrading: market.isTrading,
  };
}

/** The levels that differ, bids first, each side by rising price. */
export function changesBetween(before: MarketView, after: MarketView): LevelChange[] {
  return [...sideChanges('bid', before.bids, after.bids), ...sideChanges('ask', before.asks, after.asks)];
}

function sideChanges(side: 'bid' | 'ask', before: LevelView, after: LevelView): LevelChange[] {
  const ticks = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  return ticks
    .map((at) => ({ side, ticks: at, before: before.get(at) ?? 0, after: after.get(at) ?? 0 }))
    .filter((change) => change.before !== change.after);
}
