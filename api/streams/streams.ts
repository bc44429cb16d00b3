import { setTimeout as delay } from 'node:timers/promises';
import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { CursorCodec } from '../../src/domain/values/cursor.ts';
import type { Collector } from '../../src/observe/collectors.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { StreamMetrics } from '../../src/observe/work-metrics.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { JournalTail } from '../../src/store/journal/tail.ts';
import { isVisitor } from '../context.ts';
import { notReady } from '../errors.ts';
import type { EnabledVenue } from '../reads/venue-catalog.ts';
import {
  type AccountUses,
  createAccountUses,
  type OpenOfAccount,
  type StreamLimits,
  tooManyStreams,
} from './account-use.ts';
import { BookFollowers } from './book-followers.ts';
import { StreamClient, type Subscription } from './client.ts';
import { EventHub, type EventPosition } from './event-hub.ts';
import { countOf } from './executable/value.ts';
import { ExecutableWatch } from './executable/watch.ts';
import type { Filter } from './filter.ts';
import { createStreamCursors, type StreamCursors, streamMessage } from './frame.ts';
import { Heartbeats } from './heartbeats.ts';
import { MarketHub } from './hub.ts';
import { KeyWatch } from './key-watch.ts';
import { type Unsent, UnsentMemory, WriteRounds } from './outbox.ts';
import type { OpenOptions, OpenStreams, Start } from './port.ts';
import { Replays } from './replay.ts';

/** Clients of a stopping process reconnect within this time, so that the other processes do not get all of them at once. */
const DRAIN_SPREAD_MS = 3_000;
const LAST_READ_MS = 5_000;
/** Different orders that this process computes. Each takes about 1.5 KB. */
const MAX_ORDERS = 50_000;

interface StreamsOptions {
  db: Queryable;
  tail: Pick<JournalTail, 'on' | 'staleMs'>;
  codec: CursorCodec;
  venues: readonly EnabledVenue[];
  decimalFormat: DecimalFormat;
  limits: StreamLimits;
  heartbeatMs: number;
  /** Unsent messages of all slow readers together. */
  maxUnsentTotalBytes: number;
  /** Memory for the latest changes, from which a client resumes without the database. */
  recentBytes: number;
  /** How long events are stored, milliseconds. */
  eventRetentionMs: number;
  metrics?: StreamMetrics;
  log: Logger;
  /** Epoch milliseconds. */
  now(): number;
  drainSpreadMs?: number;
  maxUnsentBytes?: number;
  lastReadMs?: number;
}

/** Figures of the open streams. */
interface StreamUsage {
  connections: number;
  subscriptions: number;
  unsentBytes: number;
  largestUnsentBytes: number;
  /** Of slow readers, also of streams that have ended and whose last messages wait. */
  slowBytes: number;
}

/** The open streams of this process. */
export class Streams implements OpenStreams {
  readonly cursors: StreamCursors;
  readonly lastReadMs: number;
  readonly events: EventHub;
  readonly #options: StreamsOptions;
  readonly #uses: AccountUses;
  readonly #keys: KeyWatch;
  readonly #followers: BookFollowers;
  readonly #hub: MarketHub;
  readonly #executable: ExecutableWatch;
  readonly #heartbeats: Heartbeats;
  readonly #replays: Replays;
  readonly #clients = new Set<StreamClient>();
  readonly #memory: UnsentMemory;
  #isDraining = false;
  /** Excludes a connection from the bounds of connections for requests; the server sets it. */
  exempt: OpenStreams['exempt'] = () => undefined;

  constructor(options: StreamsOptions) {
    const { db, tail, codec, decimalFormat, venues, recentBytes, log, now, metrics } = options;
    this.#options = options;
    this.cursors = createStreamCursors(codec);
    this.lastReadMs = options.lastReadMs ?? LAST_READ_MS;
    this.#uses = createAccountUses(options.limits);
    this.#keys = new KeyWatch(db, log);
    this.#followers = new BookFollowers(db, log);
    this.#memory = new UnsentMemory(options.maxUnsentTotalBytes);
    const { cursors } = this;
    const rounds = new WriteRounds<StreamClient>((client, nowMs) =>
      this.#heartbeats.continuity.whenIdle(client, nowMs),
    );
    const onDispatched = (type: string, count: number) => metrics?.streamMessages.inc({ type }, count);
    const onHanded: ExecutableWatch['note'] = (batch, hasLost) => this.#executable.note(batch, hasLost);
    this.#hub = new MarketHub({ tail, db, cursors, decimalFormat, log, recentBytes, onHanded, onDispatched }, rounds);
    const ofHub = { hub: this.#hub, db, cursors, decimalFormat, venues, log, now };
    this.#executable = new ExecutableWatch({ ...ofHub, onDispatched });
    this.#heartbeats = new Heartbeats({ ...ofHub, isPending: (one) => this.#executable.isPending(one) });
    this.#replays = new Replays({ hub: this.#hub, db, cursors, decimalFormat, log });
    const epoch = () => this.#hub.head?.epoch;
    this.events = new EventHub({ db, codec, epoch, retentionMs: options.eventRetentionMs, log });
  }

  /** @throws ApiError `not_ready` before the first read of the journal, and while the process stops. */
  requireReady(): void {
    if (this.#isDraining) throw notReady('the process is stopping; connect again');
    if (!this.#hub.head) throw notReady('the journal was not read yet');
  }

  /** Counts a connection of the account. @throws ApiError `rate_limited`, or `not_ready`: the process may stop while a request is read */
  admit(accountId: bigint) {
    this.requireReady();
    return this.#uses.open(accountId);
  }

  /** @throws ApiError `rate_limited` when the account or this process watches as many orders as it may. */
  requireRoom(accountId: bigint, { orders }: Filter): void {
    if (!orders) return;
    const { orders: open, ordersLimit } = this.#uses.of(accountId);
    const added = countOf(orders);
    if (open + added > ordersLimit)
      throw tooManyStreams(`this account has a limit of ${ordersLimit} executable prices on its open streams`);
    if (this.#executable.orders + added > MAX_ORDERS)
      throw tooManyStreams('this process computes as many executable prices as it may');
  }

  usageOf(accountId: bigint): OpenOfAccount {
    return this.#uses.of(accountId);
  }

  /** The client of an admitted connection. */
  open(use: ReturnType<AccountUses['open']>, options: OpenOptions): StreamClient {
    const { sink, caller, scope, protocol, socket, maxHeartbeatMs = Number.POSITIVE_INFINITY } = options;
    const { metrics, maxUnsentBytes, heartbeatMs } = this.#options;
    const { keyId } = caller;
    const isEventStream = scope !== 'markets:read';
    const client = new StreamClient({
      sink,
      use,
      keyId,
      heartbeatMs: Math.min(heartbeatMs, maxHeartbeatMs),
      memory: this.#memory,
      onConflated: () => metrics?.streamConflated.inc(),
      finalMessages: isEventStream ? this.events.finalMessages : this.#finalMessages,
      onEnd: (reason) => {
        unwatch();
        this.#forget(client);
        metrics?.streamsEnded.inc({ protocol, reason });
      },
      ...(maxUnsentBytes !== undefined && { maxUnsentBytes }),
    });
    const isPublic = isVisitor(caller);
    const end = () => client.end('unauthorized');
    const unwatch = isPublic ? () => undefined : this.#keys.add({ keyId, scope, end });
    this.#clients.add(client);
    // The bound of connections per address stays in effect for visitors, who have no account.
    if (!isPublic) this.exempt(socket);
    if (!isEventStream) this.#heartbeats.add(client);
    return client;
  }

  /** Includes the client in the next write: the connection accepts bytes again. */
  resume(client: StreamClient): void {
    this.#hub.rounds.mark(client);
    if (this.events.clients.has(client)) this.events.rounds.mark(client);
  }

  /** Begins a subscription at a position or at the present. Returns the number after which its first change comes. */
  subscribe(client: StreamClient, id: string, filter: Filter, start: Start): number {
    const { head, seq } = this.#hub;
    if (!head) throw notReady('the journal was not read yet');
    const from = start.position ?? { epoch: head.epoch, seq };
    const subscription: Subscription = { id, filter, client, state: 'replaying', after: from.seq, sent: from.seq };
    client.subscriptions.set(id, subscription);
    this.#hub.add(subscription);
    this.#followers.add(filter);
    this.#executable.add(subscription);
    const started = this.#replays.begin(subscription, from, start);
    const begun = started.then(() => this.#executable.begin(subscription));
    this.#endOnFailure(begun, client);
    this.#heartbeats.continuity.hasten([client]);
    this.#hub.rounds.mark(client);
    return from.seq;
  }

  unsubscribe(client: StreamClient, id: string): boolean {
    const subscription = client.subscriptions.get(id);
    if (!subscription) return false;
    client.subscriptions.delete(id);
    client.drop(id);
    this.#remove(subscription);
    return true;
  }

  /** Figures of the open streams. */
  usage(): StreamUsage {
    let [subscriptions, unsentBytes, largestUnsentBytes] = [0, 0, 0];
    for (const client of this.#clients) {
      const bytes = client.unsentBytes;
      subscriptions += Math.max(1, client.subscriptions.size);
      unsentBytes += bytes;
      largestUnsentBytes = Math.max(largestUnsentBytes, bytes);
    }
    const slowBytes = this.#memory.bytes;
    return { connections: this.#clients.size, subscriptions, unsentBytes, largestUnsentBytes, slowBytes };
  }

  /** Asks all clients to connect again, spread over a few seconds, and ends their streams. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    const clients = [...this.#clients];
    const spreadMs = clients.length === 0 ? 0 : (this.#options.drainSpreadMs ?? DRAIN_SPREAD_MS);
    const endAt = clients.map((client) => ({ client, atMs: Math.random() * spreadMs })).sort((a, b) => a.atMs - b.atMs);
    const startedMs = performance.now();
    for (const { client, atMs } of endAt) {
      const waitMs = startedMs + atMs - performance.now();
      if (waitMs > 0) await delay(waitMs);
      client.end('draining');
    }
    for (const client of [...this.#clients]) client.end('draining');
  }

  async close(): Promise<void> {
    for (const client of [...this.#clients]) client.end('draining');
    this.#keys.close();
    this.#heartbeats.close();
    const closed = this.#executable.close();
    this.#hub.close();
    await closed;
    await this.#followers.close();
    await this.events.close();
  }

  /** Sends the account's events after a position, by default all later ones. */
  followEvents(client: StreamClient, accountId: bigint, position: EventPosition | undefined): void {
    this.#endOnFailure(this.events.add(client, accountId, position), client);
  }

  /** A stream that lost its way ends, so that its client connects again and resumes. */
  #endOnFailure(started: Promise<void>, client: StreamClient): void {
    started.catch((error: unknown) => {
      logLimited(this.#options.log, { level: 'error', fields: { err: error }, message: 'stream failed' });
      client.end('failed');
    });
  }

  #remove(subscription: Subscription): void {
    this.#hub.remove(subscription);
    this.#followers.remove(subscription.filter);
    this.#executable.remove(subscription);
  }

  #forget(client: StreamClient): void {
    for (const subscription of client.subscriptions.values()) this.#remove(subscription);
    client.subscriptions.clear();
    this.#clients.delete(client);
    this.#heartbeats.continuity.remove(client);
    this.#hub.rounds.forget(client);
    this.events.remove(client);
  }

  /** A `lagged` message per subscription, with the cursor behind the last sent change. */
  readonly #finalMessages = (client: StreamClient): readonly Unsent[] => {
    const { head } = this.#hub;
    if (!head) return [];
    const { decimalFormat } = this.#options;
    const bySent = new Map<string, Unsent>();
    for (const { id, sent, filter } of client.subscriptions.values()) {
      const { venue } = filter;
      const known = bySent.get(`${sent} ${venue}`);
      if (known) {
        known.subscriptions.push(id);
        continue;
      }
      const cursor = this.cursors.encode({ epoch: head.epoch, seq: sent });
      const fields = { type: 'lagged', seq: sent, at: head.readAt, venue } as const;
      const message = streamMessage(fields, { reason: 'slow_reader', cursor }, { cursor, decimalFormat });
      bySent.set(`${sent} ${venue}`, { message, subscriptions: [id], conflated: 0 });
    }
    return [...bySent.values()];
  };
}

/** The figures of open streams, read at a scrape. */
export function streamGauges(metrics: StreamMetrics, streams: Pick<Streams, 'usage'>): Collector {
  return {
    name: 'streams',
    async read() {
      const { connections, subscriptions, unsentBytes, largestUnsentBytes, slowBytes } = streams.usage();
      metrics.streamConnections.set(connections);
      metrics.streamSubscriptions.set(subscriptions);
      metrics.streamUnsentBytes.set({ of: 'all' }, unsentBytes);
      metrics.streamUnsentBytes.set({ of: 'largest' }, largestUnsentBytes);
      metrics.streamUnsentBytes.set({ of: 'slow' }, slowBytes);
    },
    forget: () => undefined,
  };
}
