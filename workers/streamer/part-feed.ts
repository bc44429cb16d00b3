import { uuidv7 } from 'uuidv7';
import type { PriceRecord } from '../../src/domain/markets/market.ts';
import type { AnnouncedTimes } from '../../src/domain/markets/resolution.ts';
import { shouldLog } from '../../src/observe/failures.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { closeGaps, openGap } from '../../src/store/feeds/gaps.ts';
import type { WantedMarket } from '../../src/store/feeds/markets.ts';
import { FeedConnection, type FeedTiming } from '../../src/venues/feeds/connection.ts';
import type { FeedGap, FeedReading, FeedState, VenueFeed } from '../../src/venues/feeds/port.ts';
import { announcedTimes } from '../../src/venues/market-fields.ts';
import type { FeedOutcome } from './feed-books.ts';
import type { FeedMeter } from './feed-meter.ts';
import type { FeedWriter } from './feed-writer.ts';

/** A market whose feed keeps losing changes is left to the polls for this time. */
const GIVEN_UP_MS = 600_000;

interface Outcome extends FeedOutcome {
  readonly marketId: string;
  /** The latest quote of the feed. */
  quote?: PriceRecord;
}

/** A quote of the feed with its market, for the comparison with the polls. */
interface ComparedQuote {
  readonly tokenId: bigint;
  readonly marketId: string;
  readonly quote: PriceRecord;
}

interface PartOptions {
  readonly deps: ProcessContext;
  readonly part: number;
  readonly feed: VenueFeed;
  readonly writer: FeedWriter;
  readonly meter: FeedMeter;
  readonly timing?: Partial<FeedTiming> | undefined;
  /** The last moment at which another streamer read this part, epoch milliseconds; null for a new part. */
  readonly seenAtMs: number | null;
  /** The venue announced a change of this market. */
  readonly onMarket: (marketId: string, times: AnnouncedTimes) => void;
  /** The venue announced a trade that only a poll can read. */
  readonly onPrint: () => void;
  /** The venue refused the credentials of a handshake. */
  readonly onRefused: (detail: string) => void;
  /** The first data after a handshake. */
  readonly onLive: () => void;
}

/** The markets of one part: their connection, the way of its changes to the writer, and their gaps. */
export class PartFeed {
  readonly part: number;
  readonly #options: PartOptions;
  readonly #connection: FeedConnection;
  #markets = new Map<string, WantedMarket>();
  readonly #outcomes = new Map<string, Outcome>();
  /** Markets with an open gap in the database. */
  readonly #open = new Set<string>();
  readonly #givenUp = new Map<string, number>();
  #seenAtMs: number | null;
  #isMoved: boolean;
  #isOpen = false;
  #detail = '';
  #lastGap: string | undefined;
  /** How often the connection was given up. */
  #timesGivenUp = 0;

  constructor(options: PartOptions) {
    const { part, feed, deps, timing, seenAtMs } = options;
    this.part = part;
    this.#options = options;
    this.#seenAtMs = seenAtMs;
    this.#isMoved = seenAtMs === null;
    this.#connection = new FeedConnection({
      feed,
      now: deps.now,
      ...(timing && { timing }),
      listener: {
        onReading: (reading) => this.#read(reading),
        onState: (state, detail) => this.#noteState(state, detail),
        onGapStart: (gap) => this.#gapStarted(gap),
        onGapEnd: (gap) => this.#gapEnded(gap),
        onGivenUp: (marketIds) => this.#giveUp(marketIds),
      },
    });
  }

  /** Undefined while no market is wanted. `nextTryMs` is that of `given_up`, epoch milliseconds; absent during a try. */
  get state(): { state: FeedState; detail: string; isSilent: boolean; nextTryMs?: number | undefined } | undefined {
    if (this.#markets.size === 0 && this.#givenUp.size > 0) {
      const detail = `each of the ${this.#givenUp.size} wanted markets keeps losing changes`;
      return { state: 'given_up', detail, isSilent: false, nextTryMs: Math.min(...this.#givenUp.values()) };
    }
    if (!this.#isOpen || this.#markets.size === 0) return undefined;
    const { state, givenUp } = this.#connection;
    if (givenUp) return { state: 'given_up', detail: this.#detail, isSilent: false, ...givenUp };
    const isSilent = this.#lastGap === 'silent' || this.#lastGap === 'half_open';
    return { state, detail: this.#detail, isSilent };
  }

  /** Whether the gap since the former owner is stored, or no market has one. */
  get isMoved(): boolean {
    return this.#isMoved;
  }

  /** The subscribed outcomes. */
  get outcomes(): number {
    return this.#outcomes.size;
  }

  has(marketId: string): boolean {
    return this.#markets.has(marketId);
  }

  /** Subscribes to exactly these markets, apart from markets that were given up. */
  plan(wanted: readonly WantedMarket[]): void {
    const nowMs = this.#options.deps.now();
    for (const [marketId, untilMs] of this.#givenUp) if (untilMs <= nowMs) this.#givenUp.delete(marketId);
    const next = new Map(
      wanted.filter(({ marketId }) => !this.#givenUp.has(marketId)).map((market) => [market.marketId, market]),
    );
    const removed = [...this.#markets.keys()].filter((marketId) => !next.has(marketId));
    const added = [...next.values()].filter(({ marketId }) => !this.#markets.has(marketId));
    if (removed.length > 0) this.#connection.remove(removed);
    for (const marketId of removed) this.#forget(marketId);
    for (const market of added) this.#follow(market);
    if (added.length > 0) this.#connection.add(added);
    this.#noteMove(nowMs);
    if (!this.#isOpen && this.#markets.size > 0) {
      this.#isOpen = true;
      this.#connection.open();
    }
  }

  /** Continues gaps that a former owner of the part left open. Gaps of markets without a subscription end. */
  adopt(gaps: readonly { readonly pk: bigint; readonly marketId: string }[]): void {
    for (const { pk, marketId } of gaps) {
      if (this.#open.has(marketId)) continue;
      if (!this.#markets.has(marketId) || this.#isCurrent(marketId)) this.#end([pk]);
      else this.#open.add(marketId);
    }
  }

  /** The quotes of markets without a known loss. */
  quotes(): ComparedQuote[] {
    if (this.#connection.state !== 'live') return [];
    return [...this.#outcomes.values()].flatMap(({ tokenId, marketId, quote }) =>
      quote === undefined || this.#open.has(marketId) ? [] : [{ tokenId, marketId, quote }],
    );
  }

  /** The polls show that the feed lost changes of these markets. */
  lost(marketIds: readonly string[]): void {
    this.#connection.lost(marketIds);
  }

  /** Ends the connection. Its gaps stay open for the next owner of the part. */
  close(): void {
    this.#connection.close();
    for (const { tokenId } of this.#outcomes.values()) this.#options.writer.forget(tokenId);
  }

  #follow(market: WantedMarket): void {
    const { pk: marketPk, marketId, outcomeIds, tokenIds } = market;
    this.#markets.set(marketId, market);
    outcomeIds.forEach((outcomeId, index) => {
      const tokenId = tokenIds[index];
      if (tokenId === undefined) return;
      this.#outcomes.set(outcomeId, { outcomeId, tokenId, marketPk, marketId, part: this.part });
    });
  }

  #forget(marketId: string): void {
    const market = this.#markets.get(marketId);
    this.#markets.delete(marketId);
    for (const outcomeId of market?.outcomeIds ?? []) {
      const outcome = this.#outcomes.get(outcomeId);
      this.#outcomes.delete(outcomeId);
      if (outcome) this.#options.writer.forget(outcome.tokenId);
    }
    if (market && this.#open.delete(marketId)) this.#end([market.pk]);
  }

  /** Between its former owner and this one nobody read the part. */
  #noteMove(nowMs: number): void {
    const fromMs = this.#seenAtMs;
    if (fromMs === null) return;
    this.#seenAtMs = null;
    const gap = { reason: 'moved', affected: 'books', fromMs: Math.min(fromMs, nowMs) };
    this.#openGap({ ...gap, marketIds: [...this.#markets.keys()] }, () => {
      this.#isMoved = true;
    });
  }

  #isCurrent(marketId: string): boolean {
    const { session, state } = this.#connection;
    if (!this.#options.feed.hasSnapshots) return state === 'open' || state === 'live';
    const outcomeIds = this.#markets.get(marketId)?.outcomeIds ?? [];
    return state === 'live' && outcomeIds.every((outcomeId) => session.book(outcomeId) !== undefined);
  }

  #read(reading: FeedReading): void {
    const { deps, writer, meter, onMarket, onPrint, feed } = this.#options;
    const { metrics } = deps;
    const { venue } = feed;
    const seenAtMs = deps.now();
    meter.count(reading.received, reading.venueAtMs);
    if (reading.applied > 0) metrics.feedMessages.inc({ venue, end: 'applied' }, reading.applied);
    for (const reason of reading.skipped) {
      metrics.feedMessages.inc({ venue, end: 'skipped' });
      metrics.feedSkips.inc({ venue, reason });
    }
    for (const { field } of reading.unknowns) metrics.venueUnknownValues.inc({ venue, field });
    if (reading.rejected.length > 0) {
      metrics.feedMessages.inc({ venue, end: 'rejected' }, reading.rejected.length);
      writer.reject(reading.rejected);
    }
    // Without snapshots, new data begins with the subscription.
    if (!feed.hasSnapshots && reading.notices.some(({ kind }) => kind === 'ready')) {
      for (const marketId of [...this.#open]) this.#recovered(marketId);
    }
    for (const update of reading.updates) {
      switch (update.kind) {
        case 'quote': {
          const outcome = this.#outcomes.get(update.record.outcomeId);
          if (!outcome) break;
          outcome.quote = update.record;
          writer.quote(outcome, { ...update.record, seenAtMs });
          this.#recovered(outcome.marketId);
          break;
        }
        case 'book': {
          const outcome = this.#outcomes.get(update.outcomeId);
          if (!outcome) break;
          writer.book(outcome, () => this.#connection.session.book(outcome.outcomeId));
          this.#recovered(outcome.marketId);
          break;
        }
        case 'trade':
          if (!writer.trade(update.record)) onPrint();
          break;
        case 'print':
          onPrint();
          break;
        case 'market':
          onMarket(update.marketId, announcedTimes(update.times ?? {}, Date.now()));
      }
    }
  }

  #noteState(state: FeedState, detail: string): void {
    const { deps, feed, onRefused, onLive } = this.#options;
    if (state === 'live') {
      this.#lastGap = undefined;
      onLive();
    }
    if (state === 'refused') onRefused(detail);
    else if (state === 'given_up') {
      this.#timesGivenUp += 1;
      const level = shouldLog(this.#timesGivenUp) ? 'warn' : 'debug';
      const line = { venue: feed.venue, part: this.part, times: this.#timesGivenUp, detail };
      deps.log[level](line, 'feed given up until its next try; polls read its markets');
    } else if (state === 'waiting' || state === 'live') {
      deps.log.debug({ venue: feed.venue, part: this.part, state, detail }, 'feed connection');
    }
    // The next attempt must not hide the reason of the last failure.
    if (detail !== '' || state === 'live') this.#detail = detail;
  }

  #gapStarted({ of, reason, fromMs, marketIds }: FeedGap): void {
    const { deps, feed } = this.#options;
    this.#lastGap = reason;
    deps.metrics.feedLosses.inc({ venue: feed.venue, reason });
    deps.log.debug({ venue: feed.venue, part: this.part, reason, markets: marketIds.length }, 'feed gap');
    // Gaps of trades and of catalog entries end at once, and are stored then.
    if (of === 'books') this.#openGap({ reason, affected: of, fromMs, marketIds });
  }

  #gapEnded({ of, reason, fromMs, toMs, marketIds }: FeedGap & { readonly toMs: number }): void {
    if (of !== 'books') {
      this.#openGap({ reason, affected: of, fromMs, marketIds, toMs });
      return;
    }
    for (const marketId of marketIds) this.#recovered(marketId);
  }

  #giveUp(marketIds: readonly string[]): void {
    const { deps, feed } = this.#options;
    const untilMs = deps.now() + GIVEN_UP_MS;
    deps.metrics.feedGivenUp.inc({ venue: feed.venue }, marketIds.length);
    deps.log.warn(
      { venue: feed.venue, markets: marketIds.length },
      'feed keeps losing changes; polls read these markets',
    );
    for (const marketId of marketIds) {
      this.#givenUp.set(marketId, untilMs);
      this.#forget(marketId);
    }
  }

  #openGap(
    gap: { reason: string; affected: string; fromMs: number; toMs?: number; marketIds: readonly string[] },
    onStored: () => void = () => undefined,
  ): void {
    const { writer, feed } = this.#options;
    const { marketIds, ...fields } = gap;
    const fresh = marketIds.filter((marketId) => gap.toMs !== undefined || !this.#open.has(marketId));
    const marketPks = fresh.flatMap((marketId) => this.#markets.get(marketId)?.pk ?? []);
    if (marketPks.length === 0) {
      onStored();
      return;
    }
    if (gap.toMs === undefined) for (const marketId of fresh) this.#open.add(marketId);
    const opened = { ...fields, gap: uuidv7(), venue: feed.venue, marketPks };
    writer.after({ part: this.part, write: (tx) => openGap(tx, opened), onStored });
  }

  #recovered(marketId: string): void {
    if (!this.#open.delete(marketId)) return;
    const market = this.#markets.get(marketId);
    if (market) this.#end([market.pk]);
  }

  #end(marketPks: readonly bigint[]): void {
    const { deps, writer, feed } = this.#options;
    const ended = { venue: feed.venue, marketPks, toMs: deps.now() };
    writer.after({ part: this.part, write: (tx) => closeGaps(tx, ended) });
  }
}
