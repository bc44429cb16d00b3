import type { AnnouncedTimes } from '../../src/domain/markets/resolution.ts';
import { VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import { shouldLog } from '../../src/observe/failures.ts';
import type { RequestedPoll } from '../../src/queues/producer.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { noteAnnounced } from '../../src/store/catalog/market-sightings.ts';
import { marketsWithOpenGaps } from '../../src/store/feeds/gaps.ts';
import { mostTradedFeedMarkets, type WantedMarket, wantedFeedMarkets } from '../../src/store/feeds/markets.ts';
import { claimParts, createParts, type FeedPart, releaseParts } from '../../src/store/feeds/parts.ts';
import type { FeedReport, IdleReason } from '../../src/store/feeds/streamers.ts';
import type { FeedTiming } from '../../src/venues/feeds/connection.ts';
import type { FeedLimits, VenueFeed } from '../../src/venues/feeds/port.ts';
import { FeedMeter } from './feed-meter.ts';
import { FeedWriter } from './feed-writer.ts';
import type { FollowedMarkets } from './followed-markets.ts';
import { PartFeed } from './part-feed.ts';
import { PollComparison } from './poll-comparison.ts';
import { Refusals } from './refusals.ts';

/** A market that drops a little in the order keeps its subscription. */
const KEEP_FACTOR = 1.25;
const RANK_EVERY_MS = 60_000;
/** Polls that a feed requests begin at most this often. */
const REQUEST_EVERY_MS = 1_000;
/** A streamer without reports for a moment must not move parts to and fro. */
const ROUNDS_UNTIL_RELEASE = 3;
/** After this time without one, a loss of parts is news again. */
const LOSS_MEMORY_MS = 600_000;

interface VenueOptions {
  readonly deps: ProcessContext;
  readonly streamer: string;
  readonly venue: VenueName;
  readonly feed: VenueFeed;
  readonly followed: FollowedMarkets;
  readonly timing?: Partial<FeedTiming> | undefined;
}

/** The feed of one venue in this streamer: its parts, their markets, and its state. */
export class VenueFeeds {
  readonly venue: VenueName;
  readonly #options: VenueOptions;
  readonly #parts: number;
  readonly #held = new Map<number, PartFeed>();
  readonly #writer: FeedWriter;
  readonly #meter: FeedMeter;
  readonly #comparison: PollComparison;
  readonly #refusals: Refusals;
  readonly #requested = new Map<RequestedPoll, number>();
  #announced = new Map<string, AnnouncedTimes>();
  #traded: readonly bigint[] = [];
  /** Wanted markets since the last ranking: an outcome that a market gains later is covered then. */
  readonly #known = new Map<bigint, WantedMarket>();
  #rankedAtMs = Number.NEGATIVE_INFINITY;
  #isCreated = false;
  #needsPlan = false;
  #roundsOverShare = 0;
  /** Losses of parts to other streamers, and the time of the last one. */
  #timesLost = 0;
  #lostAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: VenueOptions) {
    const { deps, streamer, venue, followed } = options;
    this.venue = venue;
    this.#options = options;
    this.#parts = partCount(options.feed.limits, deps.config.feeds.markets);
    this.#writer = new FeedWriter({ deps, venue, streamer, followed });
    this.#meter = new FeedMeter(deps.now);
    this.#comparison = new PollComparison(deps);
    this.#refusals = new Refusals(deps.log, venue);
  }

  /** The held parts. */
  get parts(): readonly number[] {
    return [...this.#held.keys()];
  }

  /** The held parts whose changes until now are stored, with the gap since their former owners. */
  get seenParts(): readonly FeedPart[] {
    if (this.#writer.isFailing) return [];
    return [...this.#held].flatMap(([part, { isMoved }]) => (isMoved ? { venue: this.venue, part } : []));
  }

  /** Ends those of `parts` that another streamer has taken. */
  keep(parts: readonly number[], held: readonly FeedPart[]): void {
    const ours = new Set(held.filter(({ venue }) => venue === this.venue).map(({ part }) => part));
    const lost = parts.filter((part) => !ours.has(part) && this.#held.has(part));
    if (lost.length === 0) return;
    for (const part of lost) this.#close(part);
    const nowMs = performance.now();
    if (nowMs - this.#lostAtMs > LOSS_MEMORY_MS) this.#timesLost = 0;
    this.#lostAtMs = nowMs;
    this.#timesLost += 1;
    const level = shouldLog(this.#timesLost) ? 'warn' : 'debug';
    const line = { venue: this.venue, parts: lost, times: this.#timesLost };
    this.#options.deps.log[level](line, 'parts of a feed lost: another streamer took them while this one was late');
  }

  /** Takes free parts up to the share of this streamer, or gives back those above it. */
  async share(streamers: number): Promise<void> {
    const { deps, streamer } = this.#options;
    if (!this.#isCreated) await createParts(deps.db, this.venue, this.#parts);
    this.#isCreated = true;
    const share = Math.ceil(this.#parts / Math.max(1, streamers));
    this.#roundsOverShare = this.#held.size > share ? this.#roundsOverShare + 1 : 0;
    if (this.#roundsOverShare >= ROUNDS_UNTIL_RELEASE) await this.#release([...this.#held.keys()].slice(share));
    const limit = share - this.#held.size;
    const claimed = await claimParts(deps.db, streamer, {
      venue: this.venue,
      parts: this.#parts,
      limit,
      held: [...this.#held.keys()],
    });
    for (const { part, seenAtMs } of claimed) this.#held.set(part, this.#open(part, seenAtMs));
    if (claimed.length > 0) {
      // Each loss has its own line, so parts that come back again and again need none.
      const level = this.#timesLost === 0 || shouldLog(this.#timesLost) ? 'info' : 'debug';
      deps.log[level]({ venue: this.venue, parts: claimed.map(({ part }) => part) }, 'parts of a feed taken');
    }
    if (claimed.length > 0) this.#needsPlan = true;
  }

  /** Reads which markets are wanted, and subscribes to those of the held parts. Before it is due, only for new parts. */
  async plan(isDue: boolean): Promise<void> {
    const { deps, feed } = this.#options;
    if (this.#held.size === 0 || !(isDue || this.#needsPlan)) return;
    const limit = deps.config.feeds.markets;
    const wish = {
      venue: this.venue,
      onlyBooks: VENUES[this.venue].capabilities.books,
      limit: Math.ceil(limit * KEEP_FACTOR),
    };
    if (deps.now() - this.#rankedAtMs >= RANK_EVERY_MS) {
      this.#traded = await mostTradedFeedMarkets(deps.db, wish);
      this.#rankedAtMs = this.#traded.length > 0 ? deps.now() : Number.NEGATIVE_INFINITY;
      this.#known.clear();
    }
    const wanted = await wantedFeedMarkets(deps.db, wish, this.#traded, this.#known);
    const openGaps = await marketsWithOpenGaps(deps.db, this.venue);
    this.#needsPlan = false;
    const ofPart = new Map<number, WantedMarket[]>();
    wanted.forEach((market, place) => {
      const part = partOf(market.marketId, this.#parts);
      const held = this.#held.get(part);
      if (held === undefined || (place >= limit && !held.has(market.marketId))) return;
      const markets = ofPart.get(part) ?? [];
      ofPart.set(part, markets);
      if (markets.length < feed.limits.marketsPerConnection) markets.push(market);
    });
    for (const [part, held] of this.#held) {
      held.plan(ofPart.get(part) ?? []);
      held.adopt(openGaps.filter(({ marketId }) => partOf(marketId, this.#parts) === part));
    }
  }

  /** Compares the feed with the polls. */
  async compare(): Promise<void> {
    const markets = await this.#comparison.compare([...this.#held.values()]);
    if (markets > 0) this.#options.deps.log.debug({ venue: this.venue, markets }, 'feed differs from polls');
  }

  #announce(marketId: string, times: AnnouncedTimes): void {
    this.#announced.set(marketId, { ...this.#announced.get(marketId), ...times });
  }

  /** Marks the markets that the venue announced as changed, so that the catalog poll looks them up. */
  async requestLookups(): Promise<void> {
    if (this.#announced.size === 0) return;
    const announced = this.#announced;
    this.#announced = new Map();
    try {
      await noteAnnounced(this.#options.deps.db, this.venue, announced);
    } catch (error) {
      const later = this.#announced;
      this.#announced = announced;
      for (const [marketId, times] of later) this.#announce(marketId, times);
      throw error;
    }
    this.#request('poll-markets');
  }

  report(): FeedReport {
    const states = [...this.#held.values()].flatMap((part) => part.state ?? []);
    const bad = states.find(({ state }) => state === 'refused');
    const silent = states.find(({ state, isSilent }) => isSilent && state !== 'live');
    const givenUp = states.filter(({ state }) => state === 'given_up');
    const away = states.find(({ state }) => state !== 'live');
    const subscribed = [...this.#held.values()].reduce((sum, { outcomes }) => sum + outcomes, 0);
    const common = { venue: this.venue, subscribed, ...this.#meter.read() };
    if (bad) return { ...common, state: 'refused', reason: bad.detail };
    if (silent) return { ...common, state: 'silent', reason: silent.detail };
    if (givenUp[0]) {
      const tries = givenUp.flatMap(({ nextTryMs }) => nextTryMs ?? []);
      const nextTryAt = tries.length > 0 ? new Date(Math.min(...tries)) : null;
      return { ...common, state: 'given_up', reason: givenUp[0].detail, nextTryAt };
    }
    if (away) return { ...common, state: 'connecting', reason: away.detail || null };
    if (states.length > 0) return { ...common, state: 'live', reason: null };
    const idle: IdleReason = this.#held.size === 0 ? 'standby' : 'no_markets';
    return { ...common, state: 'connecting', reason: idle };
  }

  /** Writes the last changes and gives the parts back. */
  async stop(): Promise<void> {
    for (const part of this.#held.values()) part.close();
    await this.#writer.stop();
    await this.#release([...this.#held.keys()]);
  }

  async #release(parts: readonly number[]): Promise<void> {
    const { deps, streamer } = this.#options;
    // A part that closes first would have no reader while this streamer renews its lease, when the statement fails.
    const seen = this.seenParts.map(({ part }) => part);
    await releaseParts(deps.db, streamer, this.venue, parts, seen);
    for (const part of parts) this.#close(part);
  }

  #close(part: number): void {
    this.#held.get(part)?.close();
    this.#held.delete(part);
    this.#refusals.forget(part);
  }

  #open(part: number, seenAtMs: number | null): PartFeed {
    const { deps, feed, timing } = this.#options;
    return new PartFeed({
      deps,
      part,
      feed,
      writer: this.#writer,
      meter: this.#meter,
      timing,
      seenAtMs,
      onMarket: (marketId, times) => this.#announce(marketId, times),
      onPrint: () => this.#request('poll-trades'),
      onRefused: (detail) => this.#refusals.note(part, detail),
      onLive: () => this.#refusals.accepted(part),
    });
  }

  #request(job: RequestedPoll): void {
    const nowMs = performance.now();
    if (nowMs - (this.#requested.get(job) ?? Number.NEGATIVE_INFINITY) < REQUEST_EVERY_MS) return;
    this.#requested.set(job, nowMs);
    this.#options.deps.producer.requestPoll(job, this.venue);
  }
}

/** The number of parts of a venue, so that a part of average size is half full: markets spread over the parts by a hash. */
function partCount({ connections, marketsPerConnection }: FeedLimits, markets: number): number {
  return Math.max(1, Math.min(connections, Math.ceil((2 * markets) / marketsPerConnection)));
}

/** The part of a market, the same in every process. FNV-1a over UTF-16 units. */
function partOf(marketId: string, parts: number): number {
  let hash = 0x81_1c_9d_c5;
  for (let index = 0; index < marketId.length; index += 1) {
    hash = Math.imul(hash ^ marketId.charCodeAt(index), 0x01_00_01_93);
  }
  return (hash >>> 0) % parts;
}
