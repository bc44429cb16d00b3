import type { Market, MarketPhase } from '../world/market.ts';
import { movesOf, visibleMarket } from '../world/quiet-market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';

/** The change of a market between two publications. */
export interface MarketChange {
  readonly market: Market;
  readonly before: MarketView;
  readonly after: MarketView;
  readonly levels: readonly LevelChange[];
  readonly trades: readonly Trade[];
}

/** A market that began, or whose phase or suspension changed. */
export interface LifeChange {
  readonly market: Market;
  readonly before: MarketPhase | undefined;
}

/** Detects the changes of the subscribed markets, and the life of all markets. */
export class FollowedMarkets {
  private readonly world: World;
  private readonly views = new Map<Market, { key: string; view: MarketView }>();
  private readonly phases = new Map<Market, { phase: MarketPhase; isHalted: boolean }>();
  private known = 0;
  private tapeIndex: number;

  constructor(world: World) {
    this.world = world;
    this.tapeIndex = world.tape.nextIndex;
    this.life();
  }

  /** The present view of a market, which is followed from now on. Publish before, so that no change lies between the two. */
  follow(market: Market): MarketView {
    const known = this.views.get(market);
    if (known !== undefined) return known.view;
    const view = viewOf(market, this.world);
    this.views.set(market, { key: this.keyOf(market), view });
    return view;
  }

  unfollow(market: Market): void {
    this.views.delete(market);
  }

  /** The fills since the last call. */
  takeTrades(): Trade[] {
    const trades = this.world.tape.from(this.tapeIndex, Number.POSITIVE_INFINITY);
    this.tapeIndex = this.world.tape.nextIndex;
    return trades;
  }

  /** The changes of followed markets since the last call. */
  changes(trades: readonly Trade[]): MarketChange[] {
    const byMarket = new Map<number, Trade[]>();
    for (const trade of trades) {
      const own = byMarket.get(trade.marketNo) ?? [];
      own.push(trade);
      byMarket.set(trade.marketNo, own);
    }
    return [...this.views].flatMap(([market, { key, view: before }]) => {
      const now = this.keyOf(market);
      const ownTrades = byMarket.get(market.spec.no) ?? [];
      if (key === now && ownTrades.length === 0) return [];
      const after = viewOf(market, this.world);
      this.views.set(market, { key: now, view: after });
      return [{ market, before, after, levels: changesBetween(before, after), trades: ownTrades }];
    });
  }

  /** Markets that began, opened, halted, resumed, closed or resolved since the last call. */
  life(): LifeChange[] {
    const changed: LifeChange[] = [];
    const { markets } = this.world;
    for (; this.known < markets.length; this.known += 1) {
      const market = markets[this.known];
      if (market === undefined) continue;
      this.phases.set(market, { phase: market.phase, isHalted: market.isHalted });
      if (market.phase !== 'scheduled') changed.push({ market, before: undefined });
    }
    for (const market of this.world.moving) {
      const before = this.phases.get(market);
      if (before?.phase === market.phase && before.isHalted === market.isHalted) continue;
      this.phases.set(market, { phase: market.phase, isHalted: market.isHalted });
      changed.push({ market, before: before?.phase });
    }
    return changed;
  }

  private keyOf(market: Market): string {
    const version = market.spec.hasTraders ? market.book.version : movesOf(market, this.world);
    return `${version}|${market.isTrading}|${market.phase}`;
  }
}

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
function changesBetween(before: MarketView, after: MarketView): LevelChange[] {
  return [...sideChanges('bid', before.bids, after.bids), ...sideChanges('ask', before.asks, after.asks)];
}

function sideChanges(side: 'bid' | 'ask', before: LevelView, after: LevelView): LevelChange[] {
  const ticks = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b);
  return ticks
    .map((at) => ({ side, ticks: at, before: before.get(at) ?? 0, after: after.get(at) ?? 0 }))
    .filter((change) => change.before !== change.after);
}
