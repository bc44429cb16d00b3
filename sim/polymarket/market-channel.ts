import type { FollowedMarkets, LevelChange, LifeChange, MarketChange, MarketView } from '../feeds/followed-markets.ts';
import { type FeedSocket, objectIn, type SimVenueFeed, textsIn } from '../feeds/socket.ts';
import { hashWord } from '../random.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { tokenQuote } from '../wire/prices.ts';
import { transactionHashOf, wholeConditionId } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { clobBook } from './clob-payloads.ts';

/** From this number on, a socket gets deltas without snapshots. */
const SNAPSHOT_TOKENS = 500;
/** One message with so many ids closes the socket. */
const MAX_IDS = 1_000;
const SPLIT_DOMAIN = 81;

type Wire = Record<string, unknown>;

interface Client {
  readonly tokens: Set<string>;
  hasCustomFeatures: boolean;
}

interface Token {
  readonly market: Market;
  readonly index: 0 | 1;
}

/** The market channel of the CLOB, with the order of frames in the recordings: best prices first, the trade last. */
export class MarketChannel implements SimVenueFeed {
  private readonly world: World;
  private readonly followed: FollowedMarkets;
  private readonly clients = new Map<FeedSocket, Client>();
  private readonly tokens = new Map<string, Token>();
  private known = 0;

  constructor(world: World, followed: FollowedMarkets) {
    this.world = world;
    this.followed = followed;
  }

  opened(socket: FeedSocket): void {
    this.clients.set(socket, { tokens: new Set(), hasCustomFeatures: false });
  }

  closed(socket: FeedSocket): void {
    this.clients.delete(socket);
  }

  received(socket: FeedSocket, text: string, maxIds: number): void {
    const client = this.clients.get(socket);
    if (client === undefined) return;
    if (text === 'PING') {
      socket.reply('PONG');
      return;
    }
    const message = objectIn(text) ?? {};
    const ids = textsIn(message['assets_ids']);
    if (ids.length > Math.min(maxIds, MAX_IDS)) {
      socket.close(1009, 'message too big');
      return;
    }
    if (message['custom_feature_enabled'] === true) client.hasCustomFeatures = true;
    if (message['operation'] === 'unsubscribe') for (const id of ids) client.tokens.delete(id);
    else if (message['type'] === 'market' || message['operation'] === 'subscribe') this.subscribe(socket, client, ids);
  }

  publish(changes: readonly MarketChange[], life: readonly LifeChange[]): void {
    for (const change of changes) this.publishMarket(change);
    for (const { market, before } of life) this.publishLife(market, before === 'scheduled' || before === undefined);
  }

  /** One list with the books of all new tokens; an empty one when the venue knows none of them. */
  private subscribe(socket: FeedSocket, client: Client, ids: readonly string[]): void {
    const fresh = [...new Set(ids)].filter((id) => !client.tokens.has(id));
    if (fresh.length === 0) return;
    for (const id of fresh) client.tokens.add(id);
    if (client.tokens.size > SNAPSHOT_TOKENS) {
      for (const id of fresh) this.follow(id);
      return;
    }
    const books = fresh.flatMap((id) => {
      const view = this.follow(id);
      const token = this.find(id);
      return view === undefined || token === undefined ? [] : [this.bookOf(view, token)];
    });
    socket.push(JSON.stringify(books));
  }

  private follow(id: string): MarketView | undefined {
    const token = this.find(id);
    return token?.market.isTrading ? this.followed.follow(token.market) : undefined;
  }

  private bookOf({ shown }: MarketView, { index }: Token, isFirst = true): Wire {
    const { min_order_size: _, neg_risk: __, tick_size, last_trade_price, ...book } = clobBook(shown, index);
    const rest = isFirst ? { tick_size, event_type: 'book', last_trade_price } : { event_type: 'book' };
    return { ...book, ...rest };
  }

  private publishMarket({ market, before, after, levels, trades }: MarketChange): void {
    const [yes = '', no = ''] = market.spec.tokenIds;
    const readers = [...this.clients].filter(([, { tokens }]) => tokens.has(yes) || tokens.has(no));
    if (readers.length === 0) return;
    if (!after.isTrading && levels.length === 0) return;
    const frames = [
      ...(isSameTop(before, after) ? [] : this.bestQuotes(market, after)),
      ...this.priceChanges(market, after, levels),
      ...(trades.length === 0 ? [] : ([0, 1] as const).map((index) => this.bookOf(after, { market, index }, false))),
      ...trades.map((trade) => this.lastTrade(market, trade)),
    ];
    for (const frame of frames) {
      const text = JSON.stringify(frame);
      for (const [socket, client] of readers) if (isFor(frame, client)) socket.push(text);
    }
  }

  private bestQuotes(market: Market, { shown }: MarketView): Wire[] {
    const grid = market.spec.ticksPerUnit;
    return market.spec.tokenIds.map((asset_id, index) => {
      const { bid, ask } = tokenQuote(shown, index);
      const text = (ticks: number | undefined) => (ticks === undefined ? '' : formatScaled(ticks, grid));
      return {
        market: wholeConditionId(market.spec.conditionId),
        asset_id,
        best_bid: text(bid),
        best_ask: text(ask),
        spread: bid === undefined || ask === undefined ? '' : formatScaled(ask - bid, grid),
        timestamp: String(shown.changedAtMs),
        event_type: 'best_bid_ask',
      };
    });
  }

  /** A batch is one frame or several ones with the same time and hashes, which are those of its end. */
  private priceChanges(market: Market, { shown }: MarketView, levels: readonly LevelChange[]): Wire[] {
    if (levels.length === 0) return [];
    const ends = ([0, 1] as const).map((index) => this.endOf(market, shown, index));
    const isSplit = hashWord(this.world.options.seed, SPLIT_DOMAIN, shown.changedAtMs % 1_000_003) % 2 === 0;
    const parts = isSplit ? levels.map((level) => [level]) : [levels];
    return parts.map((part) => ({
      market: wholeConditionId(market.spec.conditionId),
      price_changes: part.flatMap((level) => ends.map((end, index) => legOf(market, level, index, end))),
      timestamp: String(shown.changedAtMs),
      event_type: 'price_change',
    }));
  }

  private endOf(market: Market, shown: Market, index: 0 | 1): Wire {
    const grid = market.spec.ticksPerUnit;
    const { bid, ask } = tokenQuote(shown, index);
    return {
      hash: clobBook(shown, index)['hash'],
      best_bid: bid === undefined ? '0' : formatScaled(bid, grid),
      best_ask: ask === undefined ? '1' : formatScaled(ask, grid),
    };
  }

  private lastTrade(market: Market, trade: Trade): Wire {
    const { outcomeIndex, side } = trade.takerIntent;
    return {
      market: wholeConditionId(market.spec.conditionId),
      asset_id: market.spec.tokenIds[outcomeIndex],
      price: formatScaled(market.yesTicks(trade.ticks, outcomeIndex), market.spec.ticksPerUnit),
      size: formatScaled(trade.size, UNITS),
      fee_rate_bps: '0',
      side,
      timestamp: String(trade.second * 1000 + 999),
      event_type: 'last_trade_price',
      transaction_hash: transactionHashOf(this.world.options.seed, trade.orderNo),
    };
  }

  /** Global messages, for clients with custom features. */
  private publishLife(market: Market, isNew: boolean): void {
    const { spec } = market;
    const isResolved = market.phase === 'resolved';
    if (!isNew && !isResolved) return;
    const frame = {
      id: spec.id,
      question: spec.question,
      market: wholeConditionId(spec.conditionId),
      slug: spec.slug,
      assets_ids: spec.tokenIds,
      ...(isResolved &&
        market.winner !== undefined && {
          winning_asset_id: spec.tokenIds[market.winner],
          winning_outcome: spec.outcomes[market.winner],
        }),
      timestamp: String(this.world.second * 1000),
      event_type: isResolved ? 'market_resolved' : 'new_market',
    };
    for (const [socket, { hasCustomFeatures }] of this.clients)
      if (hasCustomFeatures) socket.push(JSON.stringify(frame));
  }

  private find(id: string): Token | undefined {
    for (; this.known < this.world.markets.length; this.known += 1) {
      const market = this.world.markets[this.known];
      if (market === undefined) continue;
      for (const index of [0, 1] as const) this.tokens.set(market.spec.tokenIds[index], { market, index });
    }
    const token = this.tokens.get(id);
    return token?.market.isListed ? token : undefined;
  }
}

function legOf(market: Market, { side, ticks, after }: LevelChange, index: number, end: Wire): Wire {
  const isBid = (side === 'bid') === (index === 0);
  return {
    asset_id: market.spec.tokenIds[index],
    price: formatScaled(market.yesTicks(ticks, index), market.spec.ticksPerUnit),
    size: formatScaled(after, UNITS),
    side: isBid ? 'BUY' : 'SELL',
    ...end,
  };
}

function isSameTop(a: MarketView, b: MarketView): boolean {
  return a.bestBid === b.bestBid && a.bestAsk === b.bestAsk;
}

/** Best prices come with custom features only, and every message needs one of its tokens. */
function isFor(frame: Wire, { tokens, hasCustomFeatures }: Client): boolean {
  const legs = frame['price_changes'] as Wire[] | undefined;
  if (legs !== undefined) return legs.some(({ asset_id }) => tokens.has(String(asset_id)));
  if (frame['event_type'] === 'best_bid_ask' && !hasCustomFeatures) return false;
  return tokens.has(String(frame['asset_id']));
}
