import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { FaultBoard } from '../faults.ts';
import { KalshiFeed } from '../kalshi/feed.ts';
import { KalshiKeys } from '../kalshi/handshake.ts';
import { LimitlessFeed } from '../limitless/feed.ts';
import { ManifoldFeed } from '../manifold/feed.ts';
import { MarketChannel } from '../polymarket/market-channel.ts';
import { RandomStream } from '../random.ts';
import type { World } from '../world/world.ts';
import { FollowedMarkets } from './followed-markets.ts';
import { FeedSocket, type SimVenueFeed } from './socket.ts';
import type { FeedHost, SocketFault } from './socket-faults.ts';

const FAULT_DOMAIN = 63;
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const NORMAL_MAX_IDS = Number.POSITIVE_INFINITY;
const DEFAULT_MAX_IDS = 50;
const DEFAULT_DELAY_MS = 6_000;
const DEFAULT_REFUSAL = 429;

/** The addresses of the feeds below the address of the exchange. */
export const FEED_PATHS: Readonly<Record<FeedHost, string>> = {
  clob: '/clob/ws/market',
  kalshi: '/kalshi/trade-api/ws/v2',
  manifold: '/manifold/ws',
  limitless: '/limitless/socket.io/',
};

interface Host {
  readonly feed: SimVenueFeed;
  readonly followed: FollowedMarkets;
  readonly sockets: Set<FeedSocket>;
}

interface Handshake {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly faults: readonly SocketFault[];
}

/** The WebSocket feeds of the four venues over one engine. */
export class FeedHub {
  readonly kalshiKeys = new KalshiKeys();
  private readonly world: World;
  private readonly faults: FaultBoard;
  private readonly seed: number;
  private readonly server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES });
  private readonly hosts: ReadonlyMap<FeedHost, Host>;
  private nextId = 1;
  private publishedVersion: number;
  private isPublishing = false;

  constructor(world: World, faults: FaultBoard, seed: number) {
    this.world = world;
    this.faults = faults;
    this.seed = seed;
    this.publishedVersion = world.version;
    const host = (create: (followed: FollowedMarkets) => SimVenueFeed): Host => {
      const followed = new FollowedMarkets(world);
      return { followed, feed: create(followed), sockets: new Set() };
    };
    this.hosts = new Map<FeedHost, Host>([
      ['clob', host((followed) => new MarketChannel(world, followed))],
      ['kalshi', host((followed) => new KalshiFeed(world, followed))],
      ['manifold', host((followed) => new ManifoldFeed(world, followed))],
      ['limitless', host((followed) => new LimitlessFeed(world, followed))],
    ]);
  }

  /** Sends every change since the last call to the subscribers. */
  publish(): void {
    if (this.isPublishing) return;
    this.isPublishing = true;
    try {
      // Reading the clock of a fault can play another second.
      while (this.publishedVersion !== this.world.version) {
        this.publishedVersion = this.world.version;
        for (const { feed, followed } of this.hosts.values()) {
          const trades = followed.takeTrades();
          feed.publish(followed.changes(trades), followed.life(), trades);
        }
      }
    } finally {
      this.isPublishing = false;
    }
  }

  /** Answers a handshake. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): undefined {
    socket.on('error', () => socket.destroy());
    const path = new URL(request.url ?? '/', 'http://sim.invalid').pathname;
    const found = [...this.hosts].find(([name]) => FEED_PATHS[name] === path);
    if (found === undefined) return refuse(socket, 404, 'not found');
    const [name, host] = found;
    const faults = this.faults.socketFaults(name, 'handshake');
    const slow = faults.find(({ how }) => how === 'slow_handshake');
    if (slow !== undefined) {
      setTimeout(
        () => this.check(name, host, { request, socket, head, faults }),
        slow.delayMs ?? DEFAULT_DELAY_MS,
      ).unref();
      return undefined;
    }
    return this.check(name, host, { request, socket, head, faults });
  }

  private check(name: FeedHost, host: Host, { request, socket, head, faults }: Handshake): undefined {
    if (socket.destroyed) return undefined;
    const rejection = faults.find(({ how }) => how === 'reject');
    if (rejection !== undefined) return refuse(socket, rejection.status ?? DEFAULT_REFUSAL, 'rejected');
    const unsigned = name === 'kalshi' ? this.kalshiKeys.refusalOf(request.headers, Date.now()) : undefined;
    if (unsigned !== undefined) return refuse(socket, 401, unsigned);
    this.server.handleUpgrade(request, socket, head, (client) => this.accept(name, host, client));
  }

  /** Ends every connection of these hosts without a closing handshake. */
  restart(names: readonly FeedHost[]): void {
    for (const name of names) for (const socket of this.hosts.get(name)?.sockets ?? []) socket.terminate();
  }

  /** The number of open connections of a host. */
  connections(name: FeedHost): number {
    return this.hosts.get(name)?.sockets.size ?? 0;
  }

  close(): void {
    for (const client of this.server.clients) client.terminate();
    this.server.close();
  }

  private accept(name: FeedHost, host: Host, client: WebSocket): void {
    const random = new RandomStream(this.seed, FAULT_DOMAIN, this.nextId);
    const socket = new FeedSocket(this.nextId, client, random, () => this.faults.socketFaults(name, 'data'));
    this.nextId += 1;
    host.sockets.add(socket);
    client.on('error', () => client.terminate());
    client.on('close', () => {
      host.sockets.delete(socket);
      host.feed.closed(socket);
    });
    client.on('message', (data) => {
      // A snapshot must contain every change that was announced before.
      this.publish();
      const limit = this.faults.socketFaults(name, 'subscription').at(0);
      const maxIds = limit === undefined ? NORMAL_MAX_IDS : (limit.maxIds ?? DEFAULT_MAX_IDS);
      host.feed.received(socket, String(data), maxIds);
    });
    host.feed.opened(socket);
  }
}

function refuse(socket: Duplex, status: number, reason: string): undefined {
  const body = JSON.stringify({ error: { code: 'refused', message: reason, details: reason } });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\nconnection: close\r\ndate: ${new Date().toUTCString()}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
