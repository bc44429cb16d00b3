import { setTimeout as delay } from 'node:timers/promises';
import type { StaleReason } from '../../src/domain/live/change.ts';
import type { ApiJson } from '../../src/domain/values/api-json.ts';
import { type CursorCodec, InvalidCursorError } from '../../src/domain/values/cursor.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { EventHorizon, readEventsOf, type StoredEvent } from '../../src/store/deliveries/account-events.ts';
import { MAX_STALE_MS } from '../reads/journal-view.ts';
import type { StreamClient } from './client.ts';
import { Continuity } from './continuity.ts';
import { type Message, streamMessage } from './frame.ts';
import { type Unsent, WriteRounds } from './outbox.ts';

const POLL_MS = 100;
const PAGE = 200;
/** The only part of an event stream. */
const EVENTS = 'events';

/** A position in the events of an account. */
export interface EventPosition {
  /** The epoch of the journal: a restored database begins another one. */
  readonly epoch: string;
  /** The client has the events up to this key. */
  readonly pk: bigint;
  /** When this event was created, epoch milliseconds. */
  readonly atMs: number;
}

interface EventHubOptions {
  db: Queryable;
  codec: CursorCodec;
  /** The epoch of the journal; undefined before its first read. */
  epoch(): string | undefined;
  /** Milliseconds. Older events may be deleted. */
  retentionMs: number;
  log: Logger;
}

/** The stream of one account's events. */
interface EventStream {
  readonly client: StreamClient;
  readonly accountId: bigint;
  state: 'replaying' | 'live';
  /** Events up to this key were handed to the client. */
  position: EventPosition;
  /** The cursor with which the stream began. */
  firstCursor: string;
}

/** Hands the stored events of accounts to their streams. The events are read once for all streams, and only while a stream is open. */
export class EventHub {
  readonly rounds: WriteRounds<StreamClient>;
  readonly #continuity: Continuity;
  readonly #options: EventHubOptions;
  readonly #streams = new Map<StreamClient, EventStream>();
  #horizon: EventHorizon;
  /** The epoch of the keys. */
  #epoch: string | undefined;
  readonly #closing = new AbortController();
  readonly #streaks = new FailureStreaks();
  #running: Promise<void> | undefined;
  #delivered: bigint | undefined;
  #complete: { readAt: Date; seenAtMs: number } | undefined;
  /** The last answer of the database. */
  #readAtMs = Number.NEGATIVE_INFINITY;
  #waiting: (() => void)[] = [];

  constructor(options: EventHubOptions) {
    this.#options = options;
    this.#horizon = new EventHorizon(options.db);
    this.rounds = new WriteRounds<StreamClient>((client, nowMs) => this.#continuity.whenIdle(client, nowMs));
    this.#continuity = new Continuity({
      rounds: this.rounds,
      staleMs: (nowMs) => (this.#complete ? nowMs - this.#complete.seenAtMs : Number.POSITIVE_INFINITY),
      reason: (nowMs) => (nowMs - this.#readAtMs <= MAX_STALE_MS ? 'commit_pending' : 'database_unreachable'),
      heartbeat: (client) => this.#heartbeat(client),
      stale: (client, reason) => this.#stale(client, reason),
    });
  }

  get clients(): ReadonlyMap<StreamClient, unknown> {
    return this.#streams;
  }

  /** The position of a cursor of this account. @throws InvalidCursorError */
  decode(accountId: bigint, cursor: string): EventPosition {
    const [epoch = '', pk = '', at = ''] = this.#options.codec.decode(scopeOf(accountId), cursor);
    if (!/^\d+$/.test(pk) || !/^\d+$/.test(at)) throw new InvalidCursorError();
    return { epoch, pk: BigInt(pk), atMs: Number(at) };
  }

  /** Sends the events of the account after a position, by default all later ones. Resolves when the stream is live or has ended. */
  async add(client: StreamClient, accountId: bigint, from: EventPosition | undefined): Promise<void> {
    const stream: EventStream = { client, accountId, state: 'replaying', position: from ?? NOWHERE, firstCursor: '' };
    this.#streams.set(client, stream);
    this.#continuity.add(client);
    this.#start();
    await this.#catchUp(stream, from);
    this.rounds.mark(client);
  }

  remove(client: StreamClient): void {
    this.#streams.delete(client);
    this.#continuity.remove(client);
    this.rounds.forget(client);
  }

  /** The `lagged` message of a reader that is too slow. */
  readonly finalMessages = (client: StreamClient): readonly Unsent[] => {
    const stream = this.#streams.get(client);
    if (!stream) return [];
    const cursor = client.sentCursor ?? stream.firstCursor;
    const head = { type: 'lagged', at: new Date() } as const;
    const message = streamMessage(head, { reason: 'slow_reader', cursor }, { cursor, decimalFormat: 'number' });
    return [{ message, subscriptions: [EVENTS], conflated: 0 }];
  };

  async close(): Promise<void> {
    this.#closing.abort();
    this.#release();
    await this.#running;
  }

  #start(): void {
    this.#running ??= this.#follow().finally(() => {
      this.#running = undefined;
      if (this.#streams.size > 0 && !this.#closing.signal.aborted) this.#start();
    });
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#streams.size > 0) {
      try {
        await this.#readOnce();
        this.#streaks.succeeded('read');
      } catch (error) {
        const { inARow, shouldLog } = this.#streaks.failed('read');
        this.#options.log[shouldLog ? 'warn' : 'debug'](
          { err: error, inARow },
          'events of streams not read; will retry',
        );
      }
      this.#continuity.markDue(performance.now());
      await delay(POLL_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
    // The next stream begins after the events that exist then.
    this.#delivered = undefined;
    this.#complete = undefined;
  }

  async #readOnce(): Promise<void> {
    const askedAtMs = performance.now();
    this.#followEpoch();
    const { isComplete, readAt } = await this.#horizon.advance();
    this.#readAtMs = askedAtMs;
    const { settled } = this.#horizon;
    if (settled === undefined) return;
    while (this.#delivered !== undefined && this.#delivered < settled && this.#live().length > 0) {
      const accountIds = [...new Set(this.#live().map(({ accountId }) => accountId))];
      const range = { after: this.#delivered, upTo: settled, limit: PAGE };
      const events = await readEventsOf(this.#options.db, accountIds, range);
      for (const event of events) this.#hand(event);
      this.#delivered = events.length < PAGE ? settled : (events.at(-1)?.pk ?? settled);
    }
    this.#delivered = settled;
    for (const stream of this.#live()) if (stream.position.epoch !== this.#epoch) this.#changeEpoch(stream, settled);
    if (isComplete) this.#complete = { readAt, seenAtMs: askedAtMs };
    this.#release();
  }

  /** A restored database, or a standby that lags behind, has other keys: the next read begins behind its events. */
  #followEpoch(): void {
    const epoch = this.#options.epoch();
    if (this.#epoch !== undefined && epoch !== this.#epoch) {
      this.#horizon = new EventHorizon(this.#options.db);
      this.#delivered = undefined;
      this.#complete = undefined;
    }
    this.#epoch = epoch;
  }

  /** The stream continues behind the events of the new epoch, and says so, unless it began before the epoch was known. */
  #changeEpoch(stream: EventStream, pk: bigint): void {
    const wasKnown = stream.position.epoch !== '';
    stream.position = { epoch: this.#epoch ?? '', pk, atMs: Date.now() };
    if (wasKnown) this.#pushGap(stream, 'epoch');
  }

  #pushGap({ client, accountId, position }: EventStream, reason: 'epoch' | 'expired'): void {
    const cursor = this.#encode(accountId, position);
    const head = { type: 'gap', at: new Date() } as const;
    client.push(streamMessage(head, { reason }, { cursor, decimalFormat: 'number' }), EVENTS);
    this.rounds.mark(client);
  }

  #live(): EventStream[] {
    return [...this.#streams.values()].filter(({ state }) => state === 'live');
  }

  #hand(event: StoredEvent): void {
    for (const stream of this.#live()) {
      if (stream.accountId === event.accountId && event.pk > stream.position.pk) this.#push(stream, event);
    }
  }

  #push(stream: EventStream, event: StoredEvent): void {
    stream.position = { ...stream.position, pk: event.pk, atMs: event.createdAt.getTime() };
    stream.client.push(this.#eventMessage(stream.accountId, event, stream.position), EVENTS);
    this.rounds.mark(stream.client);
  }

  #eventMessage(accountId: bigint, { type, body }: StoredEvent, position: EventPosition): Message {
    const cursor = this.#encode(accountId, position);
    const sse = Buffer.from(`event: ${type}\nid: ${cursor}\ndata: ${body}\n\n`, 'utf8');
    return { type, head: '', data: body, cursor, sse };
  }

  #encode(accountId: bigint, { epoch, pk, atMs }: EventPosition): string {
    return this.#options.codec.encode(scopeOf(accountId), [epoch, String(pk), String(atMs)]);
  }

  async #catchUp(stream: EventStream, from: EventPosition | undefined): Promise<void> {
    const { client, accountId } = stream;
    while (this.#delivered === undefined && !client.hasEnded) await this.#nextRead();
    if (client.hasEnded) return;
    const here = this.#delivered ?? 0n;
    const epoch = this.#epoch ?? '';
    const nowMs = Date.now();
    stream.position = from ?? { epoch, pk: here, atMs: nowMs };
    stream.firstCursor = this.#encode(accountId, stream.position);
    const reason = from && this.#gapReason(from, epoch, nowMs);
    if (reason !== undefined) {
      // Keys of another epoch are not comparable, so the stream begins with the next event.
      stream.position = { epoch, pk: reason === 'epoch' ? here : stream.position.pk, atMs: nowMs };
      this.#pushGap(stream, reason);
    }
    // Another epoch has other keys: then the next read announces it.
    while (!client.hasEnded && (this.#epoch ?? '') === epoch) {
      // Every event up to the horizon is visible, also when the common read has not reached it.
      const upTo: bigint = this.#horizon.settled ?? stream.position.pk;
      if (stream.position.pk >= upTo) break;
      try {
        const range = { after: stream.position.pk, upTo, limit: PAGE };
        const events = await readEventsOf(this.#options.db, [accountId], range);
        // A page of large events is more than a reader gets at once.
        for (const event of events) {
          await client.room();
          this.#push(stream, event);
        }
        if (events.length < PAGE) stream.position = { ...stream.position, pk: upTo };
      } catch (error) {
        this.#options.log.debug({ err: error }, 'stored events not read; will retry');
        await this.#nextRead();
      }
    }
    stream.state = 'live';
  }

  #gapReason({ epoch, atMs }: EventPosition, present: string, nowMs: number): 'epoch' | 'expired' | undefined {
    if (epoch !== present) return 'epoch';
    return nowMs - atMs > this.#options.retentionMs ? 'expired' : undefined;
  }

  #heartbeat(client: StreamClient): readonly Unsent[] {
    const stream = this.#streams.get(client);
    if (stream?.state !== 'live' || !this.#complete) return [];
    const { readAt } = this.#complete;
    const pk =
      this.#delivered !== undefined && this.#delivered > stream.position.pk ? this.#delivered : stream.position.pk;
    stream.position = { ...stream.position, pk, atMs: readAt.getTime() };
    return this.#control(stream, 'heartbeat', readAt, {
      checked_at: readAt.toISOString(),
      interval_seconds: client.heartbeatMs / 1_000,
    });
  }

  #stale(client: StreamClient, reason: StaleReason): readonly Unsent[] {
    const stream = this.#streams.get(client);
    return stream?.state === 'live' ? this.#control(stream, 'stale', new Date(), { reason }) : [];
  }

  #control(
    { accountId, position }: EventStream,
    type: 'heartbeat' | 'stale',
    at: Date,
    data: ApiJson,
  ): readonly Unsent[] {
    const cursor = this.#encode(accountId, position);
    const message = streamMessage({ type, at }, data, { cursor, decimalFormat: 'number' });
    return [{ message, subscriptions: [EVENTS], conflated: 0 }];
  }

  /** Resolves after the next successful read, or when the hub closes. */
  #nextRead(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

const NOWHERE: EventPosition = { epoch: '', pk: 0n, atMs: 0 };

function scopeOf(accountId: bigint): string {
  return JSON.stringify(['event stream', String(accountId)]);
}
