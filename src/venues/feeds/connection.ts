import WebSocket from 'ws';
import { asError } from '../../domain/values/errors.ts';
import { processLag } from '../../observe/process-lag.ts';
import { FeedGaps } from './gaps.ts';
import { BURST_MS, MarketLosses } from './market-losses.ts';
import type { FeedListener, FeedLoss, FeedMarket, FeedSession, FeedState, GapReason, VenueFeed } from './port.ts';

/** Durations in milliseconds. */
export interface FeedTiming {
  /** Longer while this process runs late. */
  readonly handshakeMs: number;
  /**
   * Without data for so long, the connection requests snapshots, which the venue must answer with data: they contain each change of which
   * the message was lost. The wait doubles with each request up to `probeAfterMs`, and halves after a minute without one.
   */
  readonly quietAfterMs: number;
  /** The longest wait. A connection that is so quiet requests one snapshot at a time. */
  readonly probeAfterMs: number;
  /** Without data for so long, the feed is silent, although its pings are answered. */
  readonly silentAfterMs: number;
  /** The longest wait before a new attempt; the first one is `firstBackoffMs`. Each wait is random up to its limit. */
  readonly firstBackoffMs: number;
  readonly maxBackoffMs: number;
  /** The wait after refused credentials. */
  readonly refusedBackoffMs: number;
  /** The pause before the second snapshot of a market that loses changes again. Further pauses are twice as long. */
  readonly snapshotPauseMs: number;
  readonly checkEveryMs: number;
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

/** A quiet connection that became busy waits less again. */
const QUIET_MEMORY_MS = 60_000;
/** Characters of a refusal that are read. */
const MAX_REFUSAL_LENGTH = 2_048;

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
  #lastDataMs: number;
  #lastFrameMs: number;
  /** The same without the forgiven stalls of this process: a gap begins there. */
  #gotDataMs: number;
  #heardMs: number;
  #lastPingMs: number;
  #lastCheckMs: number;
  #probedMs = 0;
  #quietMs: number;
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
    this.#quietMs = this.#timing.quietAfterMs;
    this.#losses = new MarketLosses(this.#timing.snapshotPauseMs);
    this.#gaps = new FeedGaps(listener);
    this.#session = feed.createSession();
    this.#lastDataMs = now();
    this.#lastFrameMs = now();
    this.#gotDataMs = now();
    this.#heardMs = now();
    this.#lastPingMs = now();
    this.#lastCheckMs = now();
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
    this.#lastCheckMs = this.#now();
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
    const lag = processLag().begin();
    const handshakeMs = processLag().stretched(this.#timing.handshakeMs);
    this.#nextTryMs = undefined;
    this.#setState('connecting', '');
    let headers: Readonly<Record<string, string>>;
    try {
      headers = this.#feed.headers(sentMs);
    } catch (error) {
      this.#refuse(`the handshake could not be signed: ${asError(error).message}`);
      return;
    }
    const socket = new WebSocket(this.#feed.url, {
      headers,
      handshakeTimeout: handshakeMs,
      maxPayload: this.#feed.limits.maxFrameBytes,
      perMessageDeflate: false,
    });
    this.#socket = socket;
    this.#lastFrameMs = sentMs;
    // A socket that was replaced must not change the state of its successor.
    const ifCurrent =
      <Args extends unknown[]>(act: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#socket === socket) act(...args);
      };
    socket.on(
      'open',
      ifCurrent(() => this.#opened()),
    );
    socket.on(
      'message',
      ifCurrent((data: Buffer) => this.#received(data.toString('utf8'))),
    );
    const sawFrame = ifCurrent(() => this.#heard(this.#now()));
    socket.on('ping', sawFrame);
    socket.on('pong', sawFrame);
    socket.on('unexpected-response', (_request, response) => {
      let body = '';
      const nowMs = this.#now();
      const done = ifCurrent(() => {
        const { statusCode = 0, headers: answered } = response;
        const answer = { statusCode, headers: answered, body, sentMs, nowMs };
        const { detail, isOfCredentials } = this.#feed.describeRefusal(answer);
        if (isOfCredentials) this.#refuse(detail);
        else this.#disconnected('disconnected', detail);
        response.destroy();
        socket.terminate();
      });
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
        if (body.length >= MAX_REFUSAL_LENGTH) done();
      });
      response.setTimeout(handshakeMs, done);
      response.on('close', done);
      response.on('error', done);
    });
    socket.on(
      'error',
      ifCurrent((error: Error) => {
        const isOwnDelay = this.#state === 'connecting' && lag.wasLate();
        const why = isOwnDelay ? ` while this process was late by ${Math.round(lag.lateMs())} ms` : '';
        this.#disconnected('disconnected', `${error.message}${why}`);
      }),
    );
    socket.on(
      'close',
      ifCurrent((code: number) => this.#disconnected('disconnected', `closed with ${code}`)),
    );
  }

  #opened(): void {
    const nowMs = this.#now();
    this.#session = this.#feed.createSession();
    this.#heard(nowMs);
    this.#gotData(nowMs);
    this.#lastPingMs = nowMs;
    // The new subscription brings new snapshots.
    this.#losses.recovered();
    this.#setState('open', '');
    this.#send([...this.#session.open(), ...this.#session.subscribe([...this.#markets.values()], nowMs)]);
  }

  #received(frame: string): void {
    const nowMs = this.#now();
    this.#heard(nowMs);
    const reading = this.#session.take(frame, nowMs);
    this.#send(reading.sends);
    this.#listener.onReading(reading, this.#session);
    if (reading.updates.length > 0 || reading.applied > 0) {
      this.#gotData(nowMs);
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

  #heard(nowMs: number): void {
    this.#lastFrameMs = nowMs;
    this.#heardMs = nowMs;
  }

  #gotData(nowMs: number): void {
    this.#lastDataMs = nowMs;
    this.#gotDataMs = nowMs;
  }

  #check(): void {
    const nowMs = this.#now();
    const isLate = this.#forgiveStall(nowMs);
    // A session measures mismatches by the clock: the frames that end them are read before the next check.
    const skipsLosses = isLate && !this.#hasSkipped;
    this.#hasSkipped = skipsLosses;
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const { pingEveryMs } = this.#feed.limits;
    if (nowMs - this.#lastFrameMs > 2 * pingEveryMs) {
      this.#drop('half_open', `no frame for ${nowMs - this.#lastFrameMs} ms`);
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

  /** After a stall of this process, its frames are still unread: the stall is no silence of the venue. Returns whether there was one. */
  #forgiveStall(nowMs: number): boolean {
    const lateMs = nowMs - this.#lastCheckMs - this.#timing.checkEveryMs;
    this.#lastCheckMs = nowMs;
    if (lateMs < this.#timing.checkEveryMs) return false;
    this.#lastFrameMs = Math.min(nowMs, this.#lastFrameMs + lateMs);
    this.#lastDataMs = Math.min(nowMs, this.#lastDataMs + lateMs);
    return true;
  }

  /** Data, not pongs, proves a feed. A venue without snapshots cannot be probed; there, only the polls show silence. */
  #watchData(nowMs: number): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (!this.#feed.hasSnapshots || this.#markets.size === 0) {
      this.#gotData(nowMs);
      return;
    }
    const { silentAfterMs, probeAfterMs, quietAfterMs } = this.#timing;
    const silentMs = nowMs - this.#lastDataMs;
    if (silentMs >= silentAfterMs) {
      this.#drop('silent', `no data for ${silentMs} ms`);
    } else if (silentMs >= this.#quietMs && nowMs - this.#probedMs >= this.#quietMs) {
      this.#probe(nowMs);
      this.#quietMs = Math.min(2 * this.#quietMs, probeAfterMs);
    } else if (nowMs - this.#probedMs >= QUIET_MEMORY_MS) {
      this.#probedMs = nowMs;
      this.#quietMs = Math.max(this.#quietMs / 2, quietAfterMs);
    }
  }

  #probe(nowMs: number): void {
    this.#probedMs = nowMs;
    const ids = [...this.#markets.keys()];
    this.#probeAt = (this.#probeAt + 1) % ids.length;
    const isQuiet = this.#quietMs >= this.#timing.probeAfterMs;
    this.#send(this.#session.refresh(isQuiet ? ids.slice(this.#probeAt, this.#probeAt + 1) : ids, nowMs));
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
      const fromMs = reason === 'disconnected' ? this.#heardMs : this.#gotDataMs;
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
