import {
  type FollowedMarkets,
  type LifeChange,
  type MarketChange,
  type MarketView,
  viewOf,
} from '../feeds/followed-markets.ts';
import { type FeedSocket, objectIn, type SimVenueFeed, textsIn } from '../feeds/socket.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { bookObject, fixed, SERIES_TICKER, statusOf, tickerOf, tradeObject } from './wire.ts';

type Wire = Record<string, unknown>;

const CHANNELS = ['orderbook_delta', 'ticker', 'trade', 'market_lifecycle_v2'];
const ERRORS = {
  unknownCommand: [5, 'Unknown command'],
  unknownSid: [7, 'Unknown subscription ID'],
  unknownChannel: [8, 'Unknown channel name'],
  oneSid: [12, 'Exactly one subscription ID is required'],
  unsupportedAction: [13, 'Unsupported action'],
  tickersRequired: [14, 'Market Ticker required'],
} as const;

/** One channel of one connection, with a counter of its own; the ticker channel counts nothing. */
interface Subscription {
  readonly sid: number;
  readonly channel: string;
  readonly tickers: Set<string>;
  readonly usesYesPrice: boolean;
  seq: number;
}

interface Client {
  readonly subscriptions: Map<number, Subscription>;
  nextSid: number;
}

/** The WebSocket v2 with `seq` for each `sid`. Answers with a `sid` have a number too. */
export class KalshiFeed implements SimVenueFeed {
  private readonly world: World;
  private readonly followed: FollowedMarkets;
  private readonly clients = new Map<FeedSocket, Client>();
  private readonly byId = new Map<string, Market>();
  private known = 0;

  constructor(world: World, followed: FollowedMarkets) {
    this.world = world;
    this.followed = followed;
  }

  opened(socket: FeedSocket): void {
    this.clients.set(socket, { subscriptions: new Map(), nextSid: 1 });
  }

  closed(socket: FeedSocket): void {
    this.clients.delete(socket);
  }

  received(socket: FeedSocket, text: string, maxIds: number): void {
    const client = this.clients.get(socket);
    const message = objectIn(text);
    if (client === undefined || message === undefined) return;
    const { id, cmd } = message;
    const params = (message['params'] ?? {}) as Wire;
    const tickers = textsIn(params['market_tickers']);
    if (tickers.length > maxIds) {
      socket.close(1009, 'message too big');
      return;
    }
    if (cmd === 'subscribe') this.subscribe(socket, client, id, params, tickers);
    else if (cmd === 'update_subscription') this.update(socket, client, id, params, tickers);
    else if (cmd === 'unsubscribe') this.unsubscribe(socket, client, id, params);
    else fail(socket, id, ERRORS.unknownCommand);
  }

  publish(changes: readonly MarketChange[], life: readonly LifeChange[], trades: readonly Trade[]): void {
    for (const [socket, { subscriptions }] of this.clients) {
      for (const subscription of subscriptions.values()) {
        const { channel, tickers } = subscription;
        const own = changes.filter(({ market }) => tickers.has(tickerOf(market.spec)));
        if (channel === 'orderbook_delta') for (const each of own) this.pushDeltas(socket, subscription, each);
        if (channel === 'ticker') for (const each of own) this.pushTicker(socket, subscription, each);
        if (channel === 'trade') for (const trade of trades) this.pushTrade(socket, subscription, trade);
        if (channel === 'market_lifecycle_v2') for (const each of life) this.pushLife(socket, subscription, each);
      }
    }
  }

  private subscribe(socket: FeedSocket, client: Client, id: unknown, params: Wire, tickers: readonly string[]): void {
    for (const channel of textsIn(params['channels'])) {
      const present = [...client.subscriptions.values()].find((each) => each.channel === channel);
      if (!CHANNELS.includes(channel)) fail(socket, id, ERRORS.unknownChannel);
      // A repeated subscription adds its markets; one that is present gets no snapshot.
      else if (present !== undefined) this.add(socket, present, id, tickers);
      else {
        const sid = client.nextSid;
        client.nextSid += 1;
        const usesYesPrice = params['use_yes_price'] === true;
        const subscription = { sid, channel, tickers: new Set(tickers), usesYesPrice, seq: 0 };
        client.subscriptions.set(sid, subscription);
        socket.reply(JSON.stringify({ type: 'subscribed', id, msg: { channel, sid } }));
        if (channel === 'orderbook_delta') this.pushSnapshots(socket, subscription, tickers);
        else if (channel === 'ticker') for (const ticker of tickers) this.follow(ticker);
      }
    }
  }

  private update(socket: FeedSocket, client: Client, id: unknown, params: Wire, tickers: readonly string[]): undefined {
    const sids = Array.isArray(params['sids']) ? params['sids'] : [];
    if (sids.length !== 1) return fail(socket, id, ERRORS.oneSid);
    const subscription = client.subscriptions.get(Number(sids[0]));
    if (subscription === undefined) return fail(socket, id, ERRORS.unknownSid);
    if (tickers.length === 0) return fail(socket, id, ERRORS.tickersRequired, subscription);
    const { channel } = subscription;
    switch (params['action']) {
      case 'add_markets':
        return this.add(socket, subscription, id, tickers);
      case 'delete_markets':
        for (const ticker of tickers) subscription.tickers.delete(ticker);
        return acknowledge(socket, subscription, id);
      case 'get_snapshot':
        if (channel !== 'orderbook_delta') return fail(socket, id, ERRORS.unsupportedAction, subscription);
        return this.pushSnapshots(socket, subscription, tickers, id);
      default:
        return fail(socket, id, ERRORS.unsupportedAction, subscription);
    }
  }

  private add(socket: FeedSocket, subscription: Subscription, id: unknown, tickers: readonly string[]): undefined {
    const added = tickers.filter((ticker) => !subscription.tickers.has(ticker));
    for (const ticker of added) subscription.tickers.add(ticker);
    acknowledge(socket, subscription, id);
    if (subscription.channel === 'orderbook_delta') this.pushSnapshots(socket, subscription, added);
  }

  private unsubscribe(socket: FeedSocket, client: Client, id: unknown, params: Wire): void {
    for (const sid of Array.isArray(params['sids']) ? params['sids'] : []) {
      const subscription = client.subscriptions.get(Number(sid));
      if (subscription === undefined) continue;
      socket.reply(JSON.stringify({ type: 'unsubscribed', id, ...next(subscription) }));
      client.subscriptions.delete(subscription.sid);
    }
  }

  /** An empty side is absent. An unknown market has neither side and no id. */
  private pushSnapshots(
    socket: FeedSocket,
    subscription: Subscription,
    tickers: readonly string[],
    id?: unknown,
  ): undefined {
    for (const ticker of tickers) {
      const view = this.follow(ticker);
      const market = this.find(ticker);
      const { yes_dollars, no_dollars } =
        view === undefined ? { yes_dollars: [], no_dollars: [] } : bookObject(view.shown);
      const yes = (yes_dollars ?? []) as [string, string][];
      const no = ((no_dollars ?? []) as [string, string][]).map(([price, size]): [string, string] => {
        return [subscription.usesYesPrice ? mirrored(price) : price, size];
      });
      const msg = {
        market_ticker: ticker,
        market_id: market === undefined ? '' : market.spec.conditionId,
        ...(yes.length > 0 && { yes_dollars_fp: yes }),
        ...(no.length > 0 && { no_dollars_fp: no }),
      };
      const frame = { type: 'orderbook_snapshot', ...next(subscription), msg };
      socket.push(JSON.stringify(id === undefined ? frame : { ...frame, id }));
    }
  }

  /** Closing cancels every order. */
  private pushDeltas(
    socket: FeedSocket,
    subscription: Subscription,
    { market, before, after, levels }: MarketChange,
  ): void {
    const grid = market.spec.ticksPerUnit;
    const shown = (view: MarketView) => view.isTrading;
    const changes = levels.map((level) => ({
      ...level,
      before: shown(before) ? level.before : 0,
      after: shown(after) ? level.after : 0,
    }));
    const all = shown(before) === shown(after) ? changes : cancelled(before, after);
    for (const { side, ticks, before: from, after: to } of all) {
      if (from === to) continue;
      const yesPrice = fixed(formatScaled(ticks, grid), 4);
      const ts_ms = Date.now();
      const msg = {
        market_ticker: tickerOf(market.spec),
        market_id: market.spec.conditionId,
        price_dollars: side === 'ask' && !subscription.usesYesPrice ? mirrored(yesPrice) : yesPrice,
        delta_fp: count(to - from),
        side: side === 'bid' ? 'yes' : 'no',
        ts: new Date(ts_ms).toISOString(),
        ts_ms,
      };
      socket.push(JSON.stringify({ type: 'orderbook_delta', ...next(subscription), msg }));
    }
  }

  private pushTicker(socket: FeedSocket, { sid }: Subscription, { market, after }: MarketChange): void {
    const grid = market.spec.ticksPerUnit;
    const { bestBid, bestAsk, isTrading } = after;
    const price = (ticks: number) => fixed(formatScaled(ticks, grid), 4);
    const msg = {
      market_ticker: tickerOf(market.spec),
      market_id: market.spec.conditionId,
      price_dollars: price(market.lastYesTicks ?? 0),
      yes_bid_dollars: price((isTrading ? bestBid : undefined) ?? 0),
      yes_ask_dollars: price((isTrading ? bestAsk : undefined) ?? grid),
      volume_fp: count(market.volumeMicroShares),
      ts: this.world.second,
      ts_ms: this.world.second * 1000,
    };
    socket.push(JSON.stringify({ type: 'ticker', sid, msg }));
  }

  private pushTrade(socket: FeedSocket, subscription: Subscription, trade: Trade): void {
    const market = this.world.markets[trade.marketNo];
    if (market === undefined || !subscription.tickers.has(tickerOf(market.spec))) return;
    const {
      created_time: _,
      is_block_trade: __,
      ticker,
      ...rest
    } = tradeObject(trade, market, this.world.options.seed);
    const ts_ms = trade.second * 1000 + Math.floor(trade.micros / 1000);
    const msg = { ...rest, market_ticker: ticker, ts: trade.second, ts_ms };
    socket.push(JSON.stringify({ type: 'trade', ...next(subscription), msg }));
  }

  private pushLife(socket: FeedSocket, subscription: Subscription, { market, before }: LifeChange): void {
    const msg = { market_ticker: tickerOf(market.spec), event_type: eventOf(market, before) };
    socket.push(JSON.stringify({ type: 'market_lifecycle_v2', ...next(subscription), msg }));
  }

  private follow(ticker: string): MarketView | undefined {
    const market = this.find(ticker);
    if (market === undefined) return undefined;
    return market.isTrading ? this.followed.follow(market) : viewOf(market, this.world);
  }

  private find(ticker: string): Market | undefined {
    for (; this.known < this.world.markets.length; this.known += 1) {
      const market = this.world.markets[this.known];
      if (market !== undefined) this.byId.set(market.spec.id, market);
    }
    const prefix = `${SERIES_TICKER}-`;
    const market = ticker.startsWith(prefix) ? this.byId.get(ticker.slice(prefix.length)) : undefined;
    return market?.isListed ? market : undefined;
  }
}

function next(subscription: Subscription): Wire {
  subscription.seq += 1;
  return { sid: subscription.sid, seq: subscription.seq };
}

function acknowledge(socket: FeedSocket, subscription: Subscription, id: unknown): undefined {
  const msg = { market_tickers: [...subscription.tickers] };
  socket.reply(JSON.stringify({ type: 'ok', id, ...next(subscription), msg }));
}

function fail(
  socket: FeedSocket,
  id: unknown,
  [code, msg]: readonly [number, string],
  subscription?: Subscription,
): undefined {
  socket.reply(JSON.stringify({ type: 'error', id, ...(subscription && next(subscription)), msg: { code, msg } }));
}

/** All levels of a book that appear or disappear, because trading began or ended. */
function cancelled(before: MarketView, after: MarketView) {
  const whole = (view: MarketView, sign: 'before' | 'after') =>
    (['bid', 'ask'] as const).flatMap((side) =>
      [...(side === 'bid' ? view.bids : view.asks)].map(([ticks, size]) => ({
        side,
        ticks,
        before: sign === 'before' ? size : 0,
        after: sign === 'after' ? size : 0,
      })),
    );
  return before.isTrading ? whole(before, 'before') : whole(after, 'after');
}

function eventOf(market: Market, before: LifeChange['before']): string {
  if (before === undefined) return 'created';
  const status = statusOf(market);
  if (status === 'active') return 'activated';
  if (status === 'inactive') return 'deactivated';
  if (status === 'finalized') return 'settled';
  return status === 'determined' ? 'determined' : 'close_date_updated';
}

function count(micros: number): string {
  const text = formatScaled(Math.abs(micros), UNITS);
  return `${micros < 0 ? '-' : ''}${fixed(text, 2)}`;
}

/** One minus a price with four decimals. */
function mirrored(price: string): string {
  return fixed(formatScaled(10_000 - Math.round(Number(price) * 10_000), 10_000), 4);
}
