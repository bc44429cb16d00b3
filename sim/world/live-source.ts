import { clobBook, clobMarket } from '../polymarket/clob-payloads.ts';
import { comboTrade, dataTrade } from '../polymarket/data-trade.ts';
import { gammaEventStub } from '../polymarket/gamma-event.ts';
import { gammaMarket, gammaTags } from '../polymarket/gamma-market.ts';
import { resolutionRow } from '../polymarket/resolution-rows.ts';
import type {
  ClobSource,
  GammaEntry,
  GammaSource,
  SortField,
  TradeRow,
  TradeScope,
  TradeSource,
  VenueSource,
} from '../source.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { midpointText, restingMicroUsd, spreadText } from '../wire/prices.ts';
import { walletOf, wholeConditionId } from './identity.ts';
import { type Market, UNITS } from './market.ts';
import { movedSecond, QuietTexts, visibleMarket } from './quiet-market.ts';
import type { Trade } from './trade-tape.ts';
import type { World } from './world.ts';

/** The venue as the running engine shows it. */
export function liveSource(world: World): VenueSource {
  const gamma = new LiveGamma(world);
  return { gamma, clob: liveClob(world, gamma), trades: liveTrades(world, gamma) };
}

class LiveEntry implements GammaEntry {
  readonly market: Market;
  private readonly world: World;

  constructor(market: Market, world: World) {
    this.market = market;
    this.world = world;
  }

  get rank(): number {
    return this.market.spec.no;
  }
  get id(): string {
    return this.market.spec.id;
  }
  get slug(): string {
    return this.market.spec.slug;
  }
  get conditionId(): string {
    return this.market.spec.conditionId;
  }
  get tokenIds(): readonly string[] {
    return this.market.spec.tokenIds;
  }

  isClosed(): boolean {
    return this.market.phase === 'resolved';
  }

  sortValue(field: SortField): number {
    const { market } = this;
    switch (field) {
      case 'id':
        return this.rank;
      case 'volume24hr':
        return market.dayVolume(this.world.second).microUsd;
      case 'volume':
      case 'volumeNum':
        return market.volumeMicroUsd;
      case 'liquidity':
      case 'liquidityNum':
        return market.spec.hasTraders ? restingMicroUsd(market) : 0;
      case 'updatedAt':
        return market.spec.hasTraders
          ? market.changedAtMs
          : Math.max(movedSecond(market, this.world) * 1000, market.changedAtMs);
      case 'createdAt':
      case 'startDate':
        return market.spec.createdSecond;
      case 'endDate':
        return market.spec.endSecond;
      case 'closedTime':
        return market.closedSecond ?? 0;
    }
  }

  text(hasTags: boolean): string {
    const { options, second } = this.world;
    const shown = visibleMarket(this.market, this.world);
    const siblings = this.world.siblingsOf(this.market);
    const rate = this.world.fees.rateOf(this.market);
    return JSON.stringify(gammaMarket(shown, siblings, { seed: options.seed, second, rate, hasTags }));
  }
}

/** Markets enter the indexes when they begin, and never leave; vanished ones are skipped. */
class LiveGamma implements GammaSource {
  private readonly world: World;
  private readonly list: LiveEntry[] = [];
  private readonly ids = new Map<string, LiveEntry>();
  private readonly slugs = new Map<string, LiveEntry>();
  private readonly conditions = new Map<string, LiveEntry>();
  private readonly tokens = new Map<string, LiveEntry>();
  private waiting: Market[] = [];
  private seen = 0;
  private indexedSecond = 0;

  constructor(world: World) {
    this.world = world;
  }

  get version(): number {
    return this.world.version;
  }

  entries(): readonly LiveEntry[] {
    this.index();
    return this.list.filter(({ market }) => market.isListed);
  }
  byId(id: string): LiveEntry | undefined {
    return this.listed(this.ids, id);
  }
  bySlug(slug: string): LiveEntry | undefined {
    return this.listed(this.slugs, slug);
  }
  byConditionId(conditionId: string): LiveEntry | undefined {
    return this.listed(this.conditions, wholeConditionId(conditionId));
  }
  byTokenId(tokenId: string): LiveEntry | undefined {
    return this.listed(this.tokens, tokenId);
  }
  /** Includes unlisted markets, because their prints remain. */
  marketNo(conditionId: string): number | undefined {
    this.index();
    return this.conditions.get(wholeConditionId(conditionId))?.rank;
  }

  private listed(entries: ReadonlyMap<string, LiveEntry>, key: string): LiveEntry | undefined {
    this.index();
    const entry = entries.get(key);
    return entry?.market.isListed ? entry : undefined;
  }

  eventText(id: string): string | undefined {
    const event = this.world.events.find((candidate) => candidate.id === id);
    const first = event === undefined ? undefined : this.world.markets[event.marketNos[0] ?? -1];
    if (event === undefined || first === undefined) return undefined;
    const { second, options } = this.world;
    const siblings = this.world.siblingsOf(first);
    const shown = siblings.filter((market) => market.isListed);
    if (shown.length === 0) return undefined;
    const markets = shown.map((market) => {
      const { events: _nested, ...rest } = gammaMarket(visibleMarket(market, this.world), siblings, {
        seed: options.seed,
        second,
        rate: this.world.fees.rateOf(market),
      });
      return rest;
    });
    const tags = gammaTags(event, options.seed);
    return JSON.stringify({ ...gammaEventStub(event, siblings, second), markets, tags });
  }

  private index(): void {
    if (this.indexedSecond === this.world.second) return;
    this.indexedSecond = this.world.second;
    const fresh = this.world.markets.slice(this.seen);
    this.seen = this.world.markets.length;
    const undecided = [...this.waiting, ...fresh];
    this.waiting = undecided.filter((market) => market.phase === 'scheduled');
    for (const market of undecided) if (market.phase !== 'scheduled') this.add(market);
  }

  private add(market: Market): void {
    const entry = new LiveEntry(market, this.world);
    this.list.push(entry);
    this.ids.set(entry.id, entry);
    this.slugs.set(entry.slug, entry);
    this.conditions.set(wholeConditionId(entry.conditionId), entry);
    for (const tokenId of entry.tokenIds) this.tokens.set(tokenId, entry);
  }
}

function liveClob(world: World, gamma: LiveGamma): ClobSource {
  const { seed } = world.options;
  const quiet = [new QuietTexts(world), new QuietTexts(world)] as const;
  const find = (tokenId: string): { market: Market; outcomeIndex: 0 | 1 } | undefined => {
    const entry = gamma.byTokenId(tokenId);
    if (entry === undefined || !entry.market.isTrading) return undefined;
    return { market: entry.market, outcomeIndex: entry.tokenIds[0] === tokenId ? 0 : 1 };
  };
  return {
    bookText: (tokenId) => {
      const found = find(tokenId);
      if (found === undefined) return undefined;
      const { market, outcomeIndex } = found;
      return quiet[outcomeIndex].of(market, () => JSON.stringify(clobBook(visibleMarket(market, world), outcomeIndex)));
    },
    midpoint: (tokenId) => {
      const found = find(tokenId);
      return found === undefined ? undefined : midpointText(visibleMarket(found.market, world), found.outcomeIndex);
    },
    spread: (tokenId) => {
      const found = find(tokenId);
      return found === undefined ? undefined : spreadText(visibleMarket(found.market, world), found.outcomeIndex);
    },
    lastTrade: (tokenId) => {
      const entry = gamma.byTokenId(tokenId);
      const last = entry?.market.lastByToken[entry.tokenIds[0] === tokenId ? 0 : 1];
      if (entry === undefined || last === undefined) return undefined;
      return { price: formatScaled(last.ticks, entry.market.spec.ticksPerUnit), side: last.side };
    },
    marketText: (conditionId) => {
      const entry = gamma.byConditionId(conditionId);
      return entry === undefined ? undefined : JSON.stringify(clobMarket(visibleMarket(entry.market, world), seed));
    },
  };
}

function liveTrades(world: World, gamma: LiveGamma): TradeSource {
  return {
    newestFirst: (scope) => scan(world, gamma, scope),
    resolutionText: (conditionId) => {
      const entry = gamma.byConditionId(conditionId);
      return entry === undefined ? undefined : JSON.stringify(resolutionRow(entry.market, world.options.seed));
    },
    marketsOfEvent: (eventId) => {
      const event = world.events.find((candidate) => candidate.id === eventId);
      return (event?.marketNos ?? []).flatMap((no) => world.markets[no]?.spec.conditionId ?? []);
    },
  };
}

const COMBO_EVERY = 125;

function* scan(world: World, gamma: LiveGamma, scope: TradeScope): Generator<TradeRow> {
  const { seed } = world.options;
  const wanted = new Set<number>();
  for (const conditionId of scope.markets ?? []) {
    const no = gamma.marketNo(conditionId);
    if (no !== undefined) wanted.add(no);
  }
  if (scope.markets !== undefined && wanted.size === 0) return;
  const [only] = wanted;
  const trades = world.tape.newestFirst(wanted.size === 1 ? only : undefined);
  for (const trade of trades) {
    if (trade.index >= scope.tapeEnd) continue;
    if (scope.markets !== undefined && !wanted.has(trade.marketNo)) continue;
    const market = world.markets[trade.marketNo];
    if (market === undefined) continue;
    const at = { seed, second: world.second };
    // 8 of 1,000 recorded rows are combinations.
    if (scope.markets === undefined && trade.index % COMBO_EVERY === 0) yield combo(trade, market, at);
    yield row(trade, market, 'taker', at);
    if (!scope.takerOnly) yield row(trade, market, 'maker', at);
  }
}

/** Rows of one trade: the combination, the taker's, the maker's. */
const ROWS_PER_TRADE = 3;

function combo(trade: Trade, market: Market, at: { seed: number; second: number }): TradeRow {
  return {
    ...row(trade, market, 'taker', at),
    sequence: trade.index * ROWS_PER_TRADE + 2,
    text: () => JSON.stringify(comboTrade(dataTrade(trade, market, 'taker', at), trade)),
  };
}

function row(trade: Trade, market: Market, role: 'taker' | 'maker', at: { seed: number; second: number }): TradeRow {
  const { seed } = at;
  const intent = role === 'taker' ? trade.takerIntent : trade.makerIntent;
  const shares = trade.size / UNITS;
  return {
    second: trade.second,
    sequence: trade.index * ROWS_PER_TRADE + (role === 'taker' ? 1 : 0),
    conditionId: market.spec.conditionId,
    side: intent.side,
    shares,
    dollars: (shares * market.yesTicks(trade.ticks, intent.outcomeIndex)) / market.spec.ticksPerUnit,
    wallet: () => walletOf(seed, role === 'taker' ? trade.taker : trade.maker).address,
    text: () => JSON.stringify(dataTrade(trade, market, role, at)),
  };
}
