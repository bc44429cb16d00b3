import WebSocket from 'ws';
import { asError } from '../../domain/values/errors.ts';
import { openFeedSocket } from './feed-socket.ts';
import { FeedGaps } from './gaps.ts';
import { BURST_MS, MarketLosses } from './market-losses.ts';
import type { FeedListener, FeedLoss, FeedMarket, FeedSession, FeedState, GapReason, VenueFeed } from './port.ts';
import { FeedSilence, type SilenceTiming } from './silence.ts';

/** Durations in milliseconds. */
export interface FeedTiming extends SilenceTiming {
  /** Longer while this process runs late. */
  readonly handshakeMs: number;
  /** The longest wait before a new attempt; the first one is `firstBackoffMs`. Each wait is random up to its limit. */
  readonly firstBackoffMs: number;
  readonly maxBackoffMs: number;
  /** The wait after refused credentials. */
  readonly refusedBackoffMs: number;
  /** The pause before the second snapshot of a market that loses changes again. Further pauses are twice as long. */
  readonly snapshotPauseMs: number;
}

/** Silence is detected after 20 s at most, and a quiet market answers the probe long before. */
const FEED_TIMING: FeedTiming = {
  handshakeMs: 10_000,
  quietAfterMs: 1_000,
  probeAfterMs: 10_000,
  silentAfterMs: 20_000,
  firstBackoffMs: 500,
  maxBackoffMs: 30_000,
  refusedBackoffMs: 60_000,
  snapshotPauseMs: 1_000,
  checkEveryMs: 500,
};

interface ConnectionOptions {
  readonly feed: VenueFeed;
  readonly listener: FeedListener;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** 0..1. */
  readonly random?: () => number;
  readonly timing?: Partial<FeedTiming>;
}

/** One socket of a feed: it connects, subscribes, notices losses and silence, and connects again until `close`. */
export class FeedConnection {
  readonly #feed: VenueFeed;
  readonly #listener: FeedListener;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #timing: FeedTiming;
  readonly #markets = new Map<string, FeedMarket>();
  /** When each market was added. */
  readonly #addedMs = new Map<string, number>();
  readonly #losses: MarketLosses;
  readonly #gaps: FeedGaps;
  #session: FeedSession;
  #socket: WebSocket | undefined;
  #state: FeedState = 'waiting';
  #attempts = 0;
  /** No market stayed complete, and no data has arrived since. */
  #isGivenUp = false;
  #nextTryMs: number | undefined;
  readonly #silence: FeedSilence;
  #lastPingMs: number;
  #probeAt = 0;
  #hasSkipped = false;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor({ feed, listener, now = Date.now, random = Math.random, timing }: ConnectionOptions) {
    this.#feed = feed;
    this.#listener = listener;
    this.#now = now;
    this.#random = random;
    this.#timing = { ...FEED_TIMING, ...timing };
    this.#silence = new FeedSilence(this.#timing, now());
    this.#losses = new MarketLosses(this.#timing.snapshotPauseMs);
    this.#gaps = new FeedGaps(listener);
    this.#session = feed.createSession();
    this.#lastPingMs = now();
  }

  get state(): FeedState {
    return this.#state;
  }

  /** The state `given_up`, which lasts until data arrives; the time of the next try, epoch milliseconds, while the connection waits for it. */
  get givenUp(): { readonly nextTryMs: number | undefined } | undefined {
    return this.#isGivenUp ? { nextTryMs: this.#nextTryMs } : undefined;
  }

  get session(): FeedSession {
    return this.#session;
  }

  get markets(): ReadonlyMap<string, FeedMarket> {
    return this.#markets;
  }

  open(): void {
    this.#silence.start(this.#now());
    this.#timer = setInterval(() => this.#check(), this.#timing.checkEveryMs);
    this.#connect();
  }

  /** Ends the connection for good. Gaps that are open stay open: another connection takes the markets over. */
  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    this.#setState('closed', '');
    this.#socket?.terminate();
    this.#socket = undefined;
  }

  add(markets: readonly FeedMarket[]): void {
    const added = markets.filter(({ marketId }) => !this.#markets.has(marketId));
    for (const market of added) {
      this.#markets.set(market.marketId, market);
      this.#addedMs.set(market.marketId, this.#now());
    }
    if (this.#socket?.readyState === WebSocket.OPEN) this.#send(this.#session.subscribe(added, this.#now()));
  }

  remove(marketIds: readonly string[]): void {
    const removed = marketIds.filter((id) => this.#markets.delete(id));
    for (const id of removed) this.#addedMs.delete(id);
    this.#gaps.forget(removed, this.#now());
    this.#losses.forget(removed);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#send(this.#session.unsubscribe(removed, this.#now()));
  }

  /** A loss that only the polls show. */
  lost(marketIds: readonly string[]): void {
    this.#lost({ of: 'books', reason: 'differs_from_poll', marketIds });
  }

  #connect(): void {
    const sentMs = this.#now();
    this.#nextTryMs = undefined;
    this.#setState('connecting', '');
    let headers: Readonly<Record<string, string>>;
    try {
      headers = this.#feed.headers(sentMs);
    } catch (error) {
      this.#refuse(`the handshake could not be signed: ${asError(error).message}`);
      return;
    }
    this.#silence.connecting(sentMs);
    this.#socket = openFeedSocket({
      feed: this.#feed,
      headers,
      sentMs,
      handshakeMs: this.#timing.handshakeMs,
      now: this.#now,
      isCurrent: (socket) => this.#socket === socket,
      events: {
        onOpen: () => this.#opened(),
        onFrame: (text) => this.#received(text),
        onHeard: () => this.#silence.heard(this.#now()),
        onRefused: (detail) => this.#refuse(detail),
        onDisconnected: (detail) => this.#disconnected('disconnected', detail),
      },
    });
  }

  #opened(): void {
    const nowMs = this.#now();
    this.#session = this.#feed.createSession();
    this.#silence.heard(nowMs);
    this.#silence.gotData(nowMs);
    this.#lastPingMs = nowMs;
    // The new subscription brings new snapshots.
    this.#losses.recovered();
    this.#setState('open', '');
    this.#send([...this.#session.open(), ...this.#session.subscribe([...this.#markets.values()], nowMs)]);
  }

  #received(frame: string): void {
    const nowMs = this.#now();
    this.#silence.heard(nowMs);
    const reading = this.#session.take(frame, nowMs);
    this.#send(reading.sends);
    this.#listener.onReading(reading, this.#session);
    if (reading.updates.length > 0 || reading.applied > 0) {
      this.#silence.gotData(nowMs);
      this.#attempts = 0;
      this.#isGivenUp = false;
      this.#setState('live', '');
    }
    for (const update of reading.updates) {
      if (update.kind === 'quote') this.#gaps.recovered(update.record.outcomeId, nowMs);
      else if (update.kind === 'book') this.#gaps.recovered(update.outcomeId, nowMs);
    }
    for (const notice of reading.notices) {
      if (notice.kind === 'ready' && !this.#feed.hasSnapshots) this.#gaps.recoverAll(nowMs);
      if (notice.kind === 'error' && notice.isFinal) {
        this.#drop('disconnected', `error ${notice.code}: ${notice.message}`);
        return;
      }
    }
    for (const loss of reading.losses) this.#lost(loss);
  }

  #check(): void {
    const nowMs = this.#now();
    const isLate = this.#silence.forgiveStall(nowMs);
    // A session measures mismatches by the clock: the frames that end them are read before the next check.
    const skipsLosses = isLate && !this.#hasSkipped;
    this.#hasSkipped = skipsLosses;
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const { pingEveryMs } = this.#feed.limits;
    const withoutFrameMs = this.#silence.withoutFrameMs(nowMs);
    if (withoutFrameMs > 2 * pingEveryMs) {
      this.#drop('half_open', `no frame for ${withoutFrameMs} ms`);
      return;
    }
    if (nowMs - this.#lastPingMs >= pingEveryMs) {
      this.#lastPingMs = nowMs;
      const text = this.#session.ping();
      if (text === undefined) this.#socket.ping();
      else this.#send([text]);
    }
    if (!skipsLosses) for (const loss of this.#session.check(nowMs)) this.#lost(loss);
    this.#requestLost(nowMs);
    this.#watchData(nowMs);
  }

  /** Data, not pongs, proves a feed. A venue without snapshots cannot be probed; there, only the polls show silence. */
  #watchData(nowMs: number): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (!this.#feed.hasSnapshots || this.#markets.size === 0) {
      this.#silence.gotData(nowMs);
      return;
    }
    const answer = this.#silence.answer(nowMs);
    if (answer === 'reconnect') this.#drop('silent', `no data for ${this.#silence.withoutDataMs(nowMs)} ms`);
    else if (answer !== undefined) this.#probe(nowMs, answer);
  }

  #probe(nowMs: number, which: 'probe_all' | 'probe_one'): void {
    const ids = [...this.#markets.keys()];
    this.#probeAt = (this.#probeAt + 1) % ids.length;
    const probed = which === 'probe_one' ? ids.slice(this.#probeAt, this.#probeAt + 1) : ids;
    this.#send(this.#session.refresh(probed, nowMs));
  }

  #lost(loss: FeedLoss | { of: 'books'; reason: GapReason; marketIds: readonly string[] }): void {
    // While it is given up, every market has an open gap, and a new connection brings new snapshots.
    if (this.#state === 'given_up' || this.#state === 'closed') return;
    const nowMs = this.#now();
    const marketIds = loss.marketIds.filter((id) => this.#markets.has(id));
    const lost = marketIds.flatMap((id) => this.#markets.get(id) ?? []);
    if (lost.length === 0) return;
    const { of, reason } = loss;
    // After a connection was given up, a handshake without data shows that the fault lasts.
    const isStillGivenUp = this.#isGivenUp && of === 'books';
    this.#gaps.start({ of, reason, markets: lost, fromMs: nowMs });
    if (of !== 'books') {
      this.#gaps.endOf(of, nowMs);
      return;
    }
    if (isStillGivenUp) {
      this.#giveUp(nowMs, lost.length);
      return;
    }
    this.#losses.note(marketIds, reason);
    this.#requestLost(nowMs);
  }

  /**
   * Requests the snapshots that are due. Losses that continue reconnect, and then leave the market to the polls. When every market loses
   * changes, the fault is that of the connection.
   */
  #requestLost(nowMs: number): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const { refresh, givenUp, reconnect } = this.#losses.answer(nowMs);
    if (givenUp.length > 0 && !this.#hasSoundMarket(nowMs)) {
      this.#giveUp(nowMs, givenUp.length);
      return;
    }
    if (givenUp.length > 0) {
      this.remove(givenUp);
      this.#listener.onGivenUp(givenUp);
    }
    if (reconnect) this.#drop('disconnected', `${reconnect} again after new snapshots`);
    else if (refresh.length > 0) this.#send(this.#session.refresh(refresh, nowMs));
  }

  /** Whether a market has been complete for a while: then the others lose changes by faults of their own. */
  #hasSoundMarket(nowMs: number): boolean {
    for (const [id, { outcomeIds }] of this.#markets) {
      if (nowMs - (this.#addedMs.get(id) ?? nowMs) < BURST_MS || !this.#losses.isSound(id, nowMs)) continue;
      const hasBooks = outcomeIds.every((outcomeId) => this.#session.book(outcomeId) !== undefined);
      if (hasBooks || !this.#feed.hasSnapshots) return true;
    }
    return false;
  }

  /** Ends the socket for the longest wait of the backoff. Its markets begin without a record of losses, because no loss was their own. */
  #giveUp(nowMs: number, lost: number): void {
    this.#socket?.terminate();
    this.#socket = undefined;
    this.#losses.forget(this.#markets.keys());
    this.#gaps.start({ of: 'books', reason: 'disconnected', markets: [...this.#markets.values()], fromMs: nowMs });
    const delayMs = this.#timing.maxBackoffMs * (0.5 + this.#random() / 2);
    this.#isGivenUp = true;
    this.#nextTryMs = nowMs + delayMs;
    this.#setState(
      'given_up',
      `no market stays complete: ${lost} of ${this.#markets.size} lose changes after new snapshots`,
    );
    this.#later(delayMs);
  }

  #refuse(detail: string): void {
    this.#socket = undefined;
    this.#setState('refused', detail);
    this.#later(this.#timing.refusedBackoffMs);
  }

  /** Ends the socket and connects again. */
  #drop(reason: GapReason, detail: string): void {
    this.#socket?.terminate();
    this.#disconnected(reason, detail);
  }

  #disconnected(reason: GapReason, detail: string): void {
    this.#socket = undefined;
    // Before the first data there is nothing that could have a gap.
    if (this.#state === 'live' && this.#markets.size > 0) {
      const fromMs = reason === 'disconnected' ? this.#silence.heardMs : this.#silence.gotDataMs;
      this.#gaps.start({ of: 'books', reason, markets: [...this.#markets.values()], fromMs });
    }
    this.#setState('waiting', detail);
    const limit = Math.min(this.#timing.maxBackoffMs, this.#timing.firstBackoffMs * 2 ** this.#attempts);
    this.#attempts += 1;
    this.#later(limit * (0.5 + this.#random() / 2));
  }

  #later(delayMs: number): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#connect(), delayMs);
  }

  #send(frames: readonly string[]): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    for (const frame of frames) this.#socket.send(frame);
  }

  #setState(state: FeedState, detail: string): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    this.#listener.onState(state, detail);
  }
}
