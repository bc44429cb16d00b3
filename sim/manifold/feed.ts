import type { FollowedMarkets, LifeChange, MarketChange } from '../feeds/followed-markets.ts';
import { type FeedSocket, objectIn, type SimVenueFeed, textsIn } from '../feeds/socket.ts';
import type { Market } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { type Bet, BetFeed } from './bet-feed.ts';
import { placeOf, probabilityOf } from './contracts.ts';

/** The venue's WebSocket by its documentation: topics, acknowledgements and broadcasts. */
export class ManifoldFeed implements SimVenueFeed {
  private readonly world: World;
  private readonly followed: FollowedMarkets;
  private readonly bets: BetFeed;
  private readonly topics = new Map<FeedSocket, Set<string>>();
  /** The bets of earlier trades are sent. */
  private nextTrade = 0;
  private isStarted = false;

  constructor(world: World, followed: FollowedMarkets) {
    this.world = world;
    this.followed = followed;
    this.bets = new BetFeed(world);
  }

  opened(socket: FeedSocket): void {
    this.start();
    this.topics.set(socket, new Set());
  }

  closed(socket: FeedSocket): void {
    this.topics.delete(socket);
  }

  received(socket: FeedSocket, text: string, maxIds: number): void {
    const topics = this.topics.get(socket);
    const message = objectIn(text);
    if (topics === undefined) return;
    if (message === undefined) {
      socket.reply(JSON.stringify({ type: 'ack', success: false, error: 'parse error' }));
      return;
    }
    const { type, txid } = message;
    const named = textsIn(message['topics']);
    if (named.length > maxIds) {
      socket.close(1009, 'message too big');
      return;
    }
    if (type === 'subscribe') for (const topic of named) topics.add(topic);
    if (type === 'unsubscribe') for (const topic of named) topics.delete(topic);
    // Unknown topics are acknowledged too.
    socket.reply(JSON.stringify({ type: 'ack', txid, success: true }));
  }

  publish(changes: readonly MarketChange[], life: readonly LifeChange[], trades: readonly Trade[]): void {
    if (this.topics.size === 0) return;
    this.publishBets(trades);
    for (const { market } of changes) this.publishPrice(market);
    for (const { market, before } of life) this.publishLife(market, before === undefined);
  }

  /** Contracts whose prices are broadcast: the global topic has those of all binary ones. */
  private start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    this.nextTrade = this.world.tape.nextIndex;
    for (const market of this.world.markets)
      if (market.isTrading && market.spec.hasTraders) this.followed.follow(market);
  }

  private publishBets(trades: readonly Trade[]): void {
    if (trades.length === 0) return;
    const { tape } = this.world;
    const fromMs = (tape.from(this.nextTrade, 1)[0]?.second ?? 0) * 1000;
    const bets = [...this.bets.oldestFirst(fromMs)].filter(({ tradeIndex }) => tradeIndex >= this.nextTrade);
    this.nextTrade = tape.nextIndex;
    const byContract = new Map<string, Bet[]>();
    for (const bet of bets) byContract.set(bet.contractId, [...(byContract.get(bet.contractId) ?? []), bet]);
    const probs = new Map(
      trades.flatMap(({ marketNo }) => {
        const market = this.world.markets[marketNo];
        if (market === undefined) return [];
        const { contractId, answerId } = placeOf(market, this.world.options.seed);
        return [[`${contractId}|${answerId}`, probabilityOf(market)] as const];
      }),
    );
    for (const own of byContract.values()) {
      const wires = own.map((bet) => ({ ...bet.wire(), probAfter: probs.get(`${bet.contractId}|${bet.answerId}`) }));
      this.broadcast('global/new-bet', { bets: wires });
    }
  }

  private publishPrice(market: Market): void {
    const { contractId, answerId } = placeOf(market, this.world.options.seed);
    const prob = probabilityOf(market);
    if (answerId === undefined) this.broadcast('global/updated-contract', { contract: { id: contractId, prob } });
    else this.broadcast(`contract/${contractId}/updated-answers`, { answers: [{ id: answerId, prob }] });
  }

  private publishLife(market: Market, isNew: boolean): void {
    const { contractId } = placeOf(market, this.world.options.seed);
    if (isNew) {
      this.followed.follow(market);
      this.broadcast('global/new-contract', { contract: { id: contractId }, creator: { id: 'simulatedCreator' } });
    } else {
      const isResolved = market.phase === 'resolved';
      this.broadcast('global/updated-contract', { contract: { id: contractId, isResolved, closeTime: Date.now() } });
    }
  }

  private broadcast(topic: string, data: object): void {
    const text = JSON.stringify({ type: 'broadcast', topic, data });
    for (const [socket, topics] of this.topics) if (topics.has(topic)) socket.push(text);
  }
}
