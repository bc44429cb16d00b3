import { z } from 'zod';
import { parseDecimal } from '../../domain/values/decimal.ts';
import { isHttpStatus, isOfHost, VenueError } from '../errors.ts';
import { cachedForMs } from '../http/age.ts';
import { callEnd } from '../tape-walk.ts';
import { AT_ONCE, type EventsPage, LIMITLESS, type ListedPage, type PageQuery } from './client.ts';
import { type Pager, readStretch, type StretchRead, stretch } from './fetch-trades.ts';
import { eventsSizeAt, listingSizeAt, textOf } from './listing.ts';
import { limitlessPrices } from './models.ts';
import { tradeTypeOf } from './parse-market.ts';
import type { FeedRow } from './parse-trade.ts';
import { reasonToStop } from './walk-markets.ts';

/**
 * The markets whose feeds the live walk reads, in its position. The venue has no feed of all markets, and the volume in the listing is
 * the sign of a trade. All times are epoch milliseconds, 0 for never.
 */
const tracked = z.object({
  /** Lifetime volume as the venue wrote it; empty where it wrote none. */
  v: z.string(),
  /** When the listing last showed another volume, or showed the market no more. */
  c: z.number(),
  /** The state of the feed that was read last is at least this new. */
  r: z.number(),
  /** Every trade up to here was read. */
  t: z.number(),
  /** The start of the last round that listed it. */
  s: z.number(),
  gone: z.literal(1).exactOptional(),
});
type Tracked = z.infer<typeof tracked>;

/**
 * A volume that just changed may be ahead of the feed, which the CDN serves for 30 s. The feed is read again when this much time has
 * passed.
 */
const CONFIRM_MS = 40_000;
/** Every feed with trades is read this often, with or without a new volume. */
const REREAD_MS = 15 * 60_000;

/** Whether the feed of a market is worth a request now. */
function isDue({ v, c, r }: Tracked, nowMs: number): boolean {
  const confirmMs = c + CONFIRM_MS;
  return r < c || (c > 0 && nowMs >= confirmMs && r < confirmMs) || (v !== '0' && nowMs - r >= REREAD_MS);
}

/** The feed of a market that left the listing is given up after this time. */
const GONE_FOR_MS = 3_600_000;

/** Whether a market that left the listing can have no further trades. */
function isSpent({ c, r, gone }: Tracked): boolean {
  return gone === 1 && r >= c + CONFIRM_MS;
}

/** Whether a market left the listing long ago, and the venue did not serve its last trades since. */
function isGivenUp({ c, r, gone }: Tracked, nowMs: number): boolean {
  return gone === 1 && r < c && nowMs - c >= GONE_FOR_MS;
}

interface ListedVolume {
  slug: string;
  /** As the venue wrote it; empty where it wrote none. */
  volume: string;
  /** Only a market with a book has a feed that is read. */
  hasFeed: boolean;
}

/** The facts of a market in a listing; undefined for any other row. */
function volumeOf(row: unknown): ListedVolume | undefined {
  const parsed = limitlessPrices.pick({ slug: true, tokens: true, tradeType: true, group: true }).safeParse(row);
  if (!parsed.success) return undefined;
  const { slug, tokens } = parsed.data;
  const { volume } = row as { volume?: unknown };
  const hasFeed = tradeTypeOf(parsed.data) === 'clob' && Boolean(tokens);
  return { slug, volume: parseDecimal(volume) ?? '', hasFeed };
}

/** A market after a page of a round listed it. Without a volume a trade leaves no sign, so its feed is read in each round. */
function afterListed(before: Tracked | undefined, volume: string, nowMs: number, roundMs: number): Tracked {
  if (before === undefined) return { v: volume, c: volume === '0' ? 0 : nowMs, r: 0, t: 0, s: roundMs };
  const { gone, ...rest } = before;
  const isChanged = volume === '' || volume !== before.v || gone === 1;
  return { ...rest, v: volume, s: roundMs, ...(isChanged && { c: nowMs }) };
}

/** Whether a raw row of a listing is one of a market at all. */
function hasSlug(row: unknown): boolean {
  return textOf(row, 'slug') !== undefined;
}

/**
 * The live walk over the trades of all markets, although each market has a feed of its own. It goes in rounds over the listing, page by
 * page, and reads the feeds of the markets whose volume changed before the next page. All that it knows is in its position, so any
 * process can continue, and a market that leaves the listing is read to its last trade.
 */
export interface TradeWalkSettings {
  listingPageSize: number;
  /** At least 32, see `eventsSizeAt`. */
  pageSize: number;
  /** Pages of one feed in one call. */
  pagesPerCall: number;
  /** Feeds in one call, two of them at once: the position is written once a call. */
  feedsPerCall: number;
  /** A call begins no further request after this long. */
  callMs?: number;
  /** A round begins this long after the one before at the earliest. */
  roundEveryMs: number;
  overlapMs: number;
  initialLookbackMs: number;
}

const walk = stretch.extend({
  /** Becomes `t` and `r` of the market. */
  topMs: z.number(),
  readMs: z.number(),
});

const position = z.object({
  v: z.literal(1),
  /** Trades before this moment are history. */
  sinceMs: z.number(),
  /** When the latest round began. */
  roundAtMs: z.number(),
  /** The page of the listing that is next; absent between rounds. */
  round: z
    .object({ page: z.number().int(), limit: z.number().int(), firstSlug: z.string().exactOptional() })
    .exactOptional(),
  markets: z.record(z.string(), tracked),
  /** The volumes of markets without a feed, and the start of the last round that listed them. */
  feedless: z.record(z.string(), z.object({ v: z.string(), s: z.number() })).exactOptional(),
  /** Feeds to read before the next page of the listing. */
  queue: z.array(z.string()),
  /** Feeds that were read in part. */
  walks: z.record(z.string(), walk),
});
type TradePosition = z.infer<typeof position>;

/** The bound of the position: about ten times the catalog of 2026. */
const MAX_TRACKED = 5_000;

interface TradeSource {
  listMarkets(query: PageQuery): Promise<ListedPage>;
  listEvents(slug: string, query: PageQuery): Promise<EventsPage>;
}

interface TradePage {
  /** Rows of complete milliseconds, newest first within each market. */
  rows: FeedRow[];
  /** Markets without a feed whose volume changed: their trades are not read. */
  unread: number;
  position: TradePosition;
  more: boolean;
  /** The reason, when a part could not be read. */
  truncated?: string;
  /** No feed of this page was served. The walk goes on behind them, because they may be the only ones that fail. */
  fault?: VenueError;
}

/** Reads the next feeds, or the next page of the listing. Throws the errors of `source`. */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  source: TradeSource,
): Promise<TradePage> {
  const parsed = position.safeParse(stored);
  const sinceMs = nowMs - settings.initialLookbackMs;
  const at: TradePosition = parsed.success
    ? parsed.data
    : { v: 1, sinceMs, roundAtMs: 0, markets: {}, queue: [], walks: {} };
  if (at.queue.length > 0) return readFeeds(at, nowMs, settings, source);
  if (at.round) return readListing(at, at.round, nowMs, source);
  const sinceRoundMs = nowMs - at.roundAtMs;
  if (sinceRoundMs >= 0 && sinceRoundMs < settings.roundEveryMs)
    return { rows: [], unread: 0, position: at, more: false };
  const round = { page: 1, limit: listingSizeAt(settings.listingPageSize, nowMs) };
  return readListing({ ...at, roundAtMs: nowMs }, round, nowMs, source);
}

type Round = NonNullable<TradePosition['round']>;

async function readListing(at: TradePosition, round: Round, nowMs: number, source: TradeSource): Promise<TradePage> {
  const answer = await source.listMarkets({ page: round.page, limit: round.limit });
  if (!answer.isEmpty && !answer.rows.some(hasSlug)) {
    throw new VenueError(LIMITLESS, 'invalid_payload', 'a page of markets without slugs', { retryable: true });
  }
  const { round: _, ...rest } = at;
  const stop = reasonToStop(round, answer);
  if (stop !== undefined || answer.isEmpty) return endRound(rest, nowMs, stop);
  const markets = { ...at.markets };
  const feedless = { ...at.feedless };
  const listed: string[] = [];
  let unread = 0;
  let room = MAX_TRACKED - Object.keys(markets).length - Object.keys(feedless).length;
  let tooMany = 0;
  for (const row of answer.rows) {
    const seen = volumeOf(row);
    if (seen === undefined) continue;
    const { slug, volume } = seen;
    const before = own(markets, slug);
    const pool = own(feedless, slug);
    const isNew = before === undefined && pool === undefined;
    if (isNew && room === 0) {
      tooMany += 1;
      continue;
    }
    if (isNew) room -= 1;
    if (!seen.hasFeed) {
      if (pool !== undefined && pool.v !== volume) unread += 1;
      feedless[slug] = { v: volume, s: at.roundAtMs };
      continue;
    }
    markets[slug] = afterListed(before, volume, nowMs, at.roundAtMs);
    listed.push(slug);
  }
  const firstSlug = textOf(answer.rows[0], 'slug');
  const next: Round = { page: round.page + 1, limit: round.limit, ...(firstSlug !== undefined && { firstSlug }) };
  const page = {
    rows: [],
    unread,
    position: { ...rest, markets, feedless, round: next, queue: dueOf(listed, markets, nowMs) },
    more: true,
  };
  return tooMany === 0
    ? page
    : { ...page, truncated: `trades of ${tooMany} markets: more than ${MAX_TRACKED} are listed` };
}

/** Markets that the round did not list are read to their end. A round that was cut short says nothing about them. */
function endRound(at: Omit<TradePosition, 'round'>, nowMs: number, stop: string | undefined): TradePage {
  const markets: Record<string, Tracked> = {};
  const givenUp: string[] = [];
  for (const [slug, market] of Object.entries(at.markets)) {
    const isGone = stop === undefined && market.s !== at.roundAtMs && market.gone === undefined;
    if (stop === undefined && isGivenUp(market, nowMs)) givenUp.push(slug);
    else if (!isSpent(market)) markets[slug] = isGone ? { ...market, c: nowMs, gone: 1 } : market;
  }
  const queue = dueOf(Object.keys(markets), markets, nowMs);
  const stillListed = Object.entries(at.feedless ?? {}).filter(([, { s }]) => stop !== undefined || s === at.roundAtMs);
  const position = { ...at, markets, feedless: Object.fromEntries(stillListed), queue };
  const page = { rows: [], unread: 0, position, more: queue.length > 0 };
  if (stop !== undefined) return { ...page, truncated: `round over the listing: ${stop}` };
  const lost = `last trades of ${givenUp.length} markets that left the listing, such as ${givenUp[0]}: the venue does not serve them`;
  return givenUp.length === 0 ? page : { ...page, truncated: lost };
}

function dueOf(slugs: readonly string[], markets: Readonly<Record<string, Tracked>>, nowMs: number): string[] {
  return slugs.filter((slug) => {
    const market = own(markets, slug);
    return market !== undefined && isDue(market, nowMs);
  });
}

/**
 * Reads the first feeds of the queue. One that the venue cannot serve waits for its next turn; when it serves none, it is broken. When the
 * host fails behind a feed that was read, that feed is kept, and the others remain in the queue.
 */
async function readFeeds(
  at: TradePosition,
  nowMs: number,
  settings: TradeWalkSettings,
  source: TradeSource,
): Promise<TradePage> {
  const waiting = at.queue.slice(0, settings.feedsPerCall);
  const unread = at.queue.slice(settings.feedsPerCall);
  const isEnd = callEnd(settings.callMs);
  const reads = new Map<string, FeedRead>();
  const failures = new Map<string, VenueError>();
  let hostFailure: VenueError | undefined;
  const work = async () => {
    do {
      const slug = waiting.shift();
      if (slug === undefined) return;
      try {
        const read = await readFeedOf(slug, at, nowMs, { ...settings, isEnd }, source);
        if (read !== undefined) reads.set(slug, read);
      } catch (error) {
        if (!(error instanceof VenueError)) throw error;
        if (isOfHost(error)) {
          hostFailure ??= error;
          unread.unshift(slug);
        } else failures.set(slug, error);
      }
    } while (!isEnd() && hostFailure === undefined);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (hostFailure !== undefined && reads.size === 0) throw hostFailure;
  const [failure] = failures;
  const page = afterReads(
    { ...at, queue: [...waiting, ...unread] },
    reads,
    failure && `feed of ${failure[0]}: ${failure[1].message}`,
  );
  const fault = hostFailure ?? (reads.size === 0 && failures.size > 1 ? failure?.[1] : undefined);
  return fault === undefined ? page : { ...page, fault };
}

interface FeedRead {
  read: StretchRead;
  walk: z.infer<typeof walk>;
}

async function readFeedOf(
  slug: string,
  at: TradePosition,
  nowMs: number,
  settings: TradeWalkSettings & Pick<Pager, 'isEnd'>,
  source: TradeSource,
): Promise<FeedRead | undefined> {
  const market = own(at.markets, slug);
  if (market === undefined) return undefined;
  const begun = own(at.walks, slug);
  const floorMs = Math.max(at.sinceMs, market.t - settings.overlapMs);
  const limit = eventsSizeAt(settings.pageSize, nowMs);
  const from = begun ?? { floorMs };
  const list = (query: PageQuery) => source.listEvents(slug, query);
  const { pagesPerCall, isEnd } = settings;
  const read = await readStretch(from, { list, nowMs, limit, pagesPerCall, isEnd }).catch(withoutFeed);
  const newestMs = Math.max(0, ...read.rows.map((row) => Math.min(row.ms ?? 0, nowMs)));
  const topMs = Math.max(begun?.topMs ?? market.t, newestMs);
  const readMs = begun?.readMs ?? nowMs - (read.ageMs > 0 ? cachedForMs(read.ageMs) : 0);
  return { read, walk: { ...(read.left ?? from), topMs, readMs } };
}

/** A market that the venue does not know any more, or that has no feed, has nothing to read. */
function withoutFeed(error: unknown): StretchRead {
  if (!isHttpStatus(error, [400, 404, 410])) throw error;
  return { rows: [], ageMs: 0 };
}

function afterReads(at: TradePosition, reads: ReadonlyMap<string, FeedRead>, failed: string | undefined): TradePage {
  const markets = { ...at.markets };
  const walks = { ...at.walks };
  const rows: FeedRow[] = [];
  const unfinished: string[] = [];
  let truncated = failed;
  for (const [slug, { read, walk: next }] of reads) {
    const market = own(markets, slug);
    if (market === undefined) continue;
    // Refusals of the overlap were reported when those rows were first read.
    rows.push(...read.rows.filter(({ rejected, ms }) => rejected === undefined || ms === undefined || ms > market.t));
    truncated ??= read.truncated;
    if (read.left) {
      walks[slug] = next;
      unfinished.push(slug);
    } else {
      delete walks[slug];
      markets[slug] = { ...market, t: next.topMs, r: Math.max(market.r, next.readMs) };
    }
  }
  const queue = [...unfinished, ...at.queue];
  return {
    rows,
    unread: 0,
    position: { ...at, markets, walks, queue },
    more: queue.length > 0 || at.round !== undefined,
    ...(truncated !== undefined && { truncated }),
  };
}

/** An own property: slugs come from the venue, and `constructor` could be one. */
function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
