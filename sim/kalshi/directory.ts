import type { EventSpec } from '../world/catalog.ts';
import type { Market } from '../world/market.ts';
import { QuietTexts, visibleMarket } from '../world/quiet-market.ts';
import type { World } from '../world/world.ts';
import { Closings } from './closings.ts';
import { type Combination, combinationObject, combinationsOf } from './combinations.ts';
import { marketObject, SERIES_TICKER } from './wire.ts';

export interface KalshiSettings {
  /** Trades and settlements before this second are on the historical routes only. */
  readonly cutoffSecond: number;
  /** Whether planned markets are listed before they open. */
  readonly showsUnopened: boolean;
  /** The number of combinations of markets. */
  readonly combinations: number;
  /** Whether events carry the deprecated `category`. */
  readonly hasEventCategory: boolean;
  /** Before June 2026 `/events` did not know `tickers`: it ignored or refused the parameter. */
  readonly eventTickers: 'served' | 'ignored' | 'refused';
}

/** The routes of a market: the live ones or, long after settlement, the historical ones. */
export type Tier = 'live' | 'historical';

/** The engine's markets by ticker, and their appearance on the venue. */
export class Directory {
  readonly world: World;
  readonly settings: KalshiSettings;
  readonly combinations: readonly Combination[];
  readonly closings: Closings;
  private readonly texts: QuietTexts;
  private readonly byId = new Map<string, Market>();
  private known = 0;

  constructor(world: World, settings: KalshiSettings) {
    this.world = world;
    this.settings = settings;
    this.closings = new Closings(world);
    this.texts = new QuietTexts(world);
    this.combinations = combinationsOf(world, settings.combinations);
  }

  /** A market by its ticker, listed or not. */
  find(ticker: string): Market | undefined {
    for (; this.known < this.world.markets.length; this.known += 1) {
      const market = this.world.markets[this.known];
      if (market !== undefined) this.byId.set(market.spec.id, market);
    }
    const prefix = `${SERIES_TICKER}-`;
    return ticker.startsWith(prefix) ? this.byId.get(ticker.slice(prefix.length)) : undefined;
  }

  findCombination(ticker: string): Combination | undefined {
    return this.combinations.find((each) => each.ticker === ticker);
  }

  combinationText(combination: Combination): string {
    return JSON.stringify(combinationObject(combination, this.world.options.nowSecond));
  }

  /** The routes that serve the market now; undefined for none. */
  tierOf(market: Market): Tier | undefined {
    if (market.isVanished) return undefined;
    if (market.phase === 'scheduled') return this.settings.showsUnopened ? 'live' : undefined;
    return market.closedSecond !== undefined && market.closedSecond < this.settings.cutoffSecond
      ? 'historical'
      : 'live';
  }

  findOn(tier: Tier, ticker: string): Market | undefined {
    const market = this.find(ticker);
    return market !== undefined && this.tierOf(market) === tier ? market : undefined;
  }

  /** Its markets that are on any route. */
  marketsOf(event: EventSpec): Market[] {
    return event.marketNos.flatMap((no) => {
      const market = this.world.markets[no];
      return market === undefined || this.tierOf(market) === undefined ? [] : [market];
    });
  }

  shown(market: Market): Market {
    return visibleMarket(market, this.world);
  }

  /** A market object as JSON text. */
  text(market: Market): string {
    return this.texts.of(market, () => JSON.stringify(marketObject(market, this.shown(market), this.world.second)));
  }
}
