import type { FollowedMarkets, LifeChange, MarketChange } from '../feeds/followed-markets.ts';
import { type FeedSocket, type SimVenueFeed, textsIn } from '../feeds/socket.ts';
import type { Market } from '../world/market.ts';
import type { World } from '../world/world.ts';
import { bookObject, isPoolMarket } from './wire.ts';

const NAMESPACE = '/markets';
/** Lifecycle events arrive three times. */
const COPIES = 3;

interface Client {
  slugs: Set<string>;
  hasLifecycle: boolean;
}

/** Socket.IO 4: a subscription replaces the one before, and each change of a book sends the whole book. */
export class LimitlessFeed implements SimVenueFeed {
  private readonly world: World;
  private readonly followed: FollowedMarkets;
  private readonly clients = new Map<FeedSocket, Client>();
  private version = 7_000_000;

  constructor(world: World, followed: FollowedMarkets) {
    this.world = world;
    this.followed = followed;
  }

  opened(socket: FeedSocket): void {
    this.clients.set(socket, { slugs: new Set(), hasLifecycle: false });
    const hello = {
      sid: `sim-${socket.id}`,
      upgrades: [],
      pingInterval: 25_000,
      pingTimeout: 60_000,
      maxPayload: 1_000_000,
    };
    socket.reply(`0${JSON.stringify(hello)}`);
  }

  closed(socket: FeedSocket): void {
    this.clients.delete(socket);
  }

  received(socket: FeedSocket, text: string, maxIds: number): void {
    const client = this.clients.get(socket);
    if (client === undefined) return;
    if (text === `40${NAMESPACE},`) {
      socket.reply(`40${NAMESPACE},${JSON.stringify({ sid: `sim-ns-${socket.id}` })}`);
      socket.reply(event('system', { message: 'Successfully registered connection' }));
      return;
    }
    const prefix = `42${NAMESPACE},`;
    if (!text.startsWith(prefix)) return;
    const [name, payload] = JSON.parse(text.slice(prefix.length)) as [string, Record<string, unknown>];
    if (name === 'subscribe_market_lifecycle') client.hasLifecycle = true;
    if (name !== 'subscribe_market_prices') return;
    const slugs = textsIn(payload['marketSlugs']);
    if (slugs.length > maxIds) {
      socket.close(1009, 'message too big');
      return;
    }
    if (slugs.length === 0) {
      socket.reply(event('exception', { message: 'marketSlugs must not be empty' }));
      return;
    }
    client.slugs = new Set(slugs);
    socket.reply(event('system', { message: 'Successfully subscribed to market price updates', markets: slugs }));
    for (const slug of client.slugs) {
      const market = this.find(slug);
      if (market === undefined) continue;
      this.followed.follow(market);
      socket.push(this.bookUpdate(market));
    }
  }

  publish(changes: readonly MarketChange[], life: readonly LifeChange[]): void {
    for (const { market, levels } of changes) {
      if (levels.length === 0 || isPoolMarket(market)) continue;
      const readers = [...this.clients].filter(([, { slugs }]) => slugs.has(market.spec.slug));
      if (readers.length === 0) continue;
      const text = this.bookUpdate(market);
      for (const [socket] of readers) socket.push(text);
    }
    for (const { market, before } of life) this.publishLife(market, before === undefined || before === 'scheduled');
  }

  private publishLife(market: Market, isNew: boolean): void {
    const isResolved = market.phase === 'resolved';
    if (!isNew && !isResolved) return;
    const { slug } = market.spec;
    const { winner } = market;
    const resolution = {
      ...(winner !== undefined && { winningOutcome: winner === 0 ? 'YES' : 'NO', winningIndex: winner }),
      resolutionDate: new Date((market.closedSecond ?? this.world.second) * 1000).toISOString(),
    };
    const text = event(isResolved ? 'marketResolved' : 'marketCreated', {
      slug,
      type: 'CLOB',
      ...(isResolved && resolution),
    });
    for (const [socket, { hasLifecycle }] of this.clients) {
      if (hasLifecycle) for (let copy = 0; copy < COPIES; copy += 1) socket.push(text);
    }
  }

  private bookUpdate(market: Market): string {
    this.version += 1;
    const { lastTradePrice: _, maxSpread, minSize, ...book } = bookObject(market, this.world);
    return event('orderbookUpdate', {
      marketSlug: market.spec.slug,
      orderbook: { ...book, maxSpread: Number(maxSpread), minSize: Number(minSize) },
      version: this.version,
      timestamp: new Date().toISOString(),
    });
  }

  private find(slug: string): Market | undefined {
    const market = this.world.markets.find(({ spec }) => spec.slug === slug);
    return market === undefined || !market.isListed || market.phase === 'resolved' || isPoolMarket(market)
      ? undefined
      : market;
  }
}

function event(name: string, payload: object): string {
  return `42${NAMESPACE},${JSON.stringify([name, payload])}`;
}
