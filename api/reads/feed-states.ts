import { withoutAddresses } from '../../src/domain/values/failure-reasons.ts';
import type { TimeRange } from '../../src/domain/values/time-range.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { countGaps, countOpenGaps, readGaps } from '../../src/store/feeds/gaps.ts';
import { type FeedReport, type FeedState, readFeedStates } from '../../src/store/feeds/streamers.ts';
import type { BookGap } from '../../src/store/series/market-series.ts';
import { type FeedBody, type FeedGapBody, MAX_GAPS } from '../contract/feed.ts';
import { epochSeconds } from '../http/respond.ts';
import type { ReadDeps } from './read-deps.ts';
import { feedsOff } from './venue-catalog.ts';

/** The feeds of the venues with markets. */
export interface VenueFeeds {
  states: ReadonlyMap<string, FeedState>;
  /** By venue: gaps that last, and gaps of the last 24 hours. */
  open: ReadonlyMap<string, number>;
  recent: ReadonlyMap<string, number>;
}

export async function readVenueFeeds({ db, venues }: Pick<ReadDeps, 'db' | 'venues'>): Promise<VenueFeeds> {
  const names = venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
  const [states, open, recent] = await Promise.all([
    readFeedStates(db, names, feedsOff(venues)),
    countOpenGaps(db),
    countGaps(db),
  ]);
  return { states, open, recent };
}

/** The feed of a venue in an answer, without addresses. `gaps`: those of the last 24 hours. */
export function presentFeed(report: FeedReport, gaps: number): FeedBody {
  const { state, reason, subscribed, messagesPerSecond, lagMs, nextTryAt } = report;
  return {
    state,
    reason: reason === null ? undefined : withoutAddresses(reason),
    next_try_at: nextTryAt ? epochSeconds(nextTryAt) : undefined,
    subscribed,
    messages_per_second: Math.round(messagesPerSecond * 10) / 10,
    lag_ms: lagMs === null ? undefined : Math.round(lagMs),
    gaps_24h: gaps,
  };
}

/** Gaps as whole seconds that contain them; undefined without one. */
export function presentFeedGaps(gaps: readonly BookGap[]): FeedGapBody[] | undefined {
  if (gaps.length === 0) return undefined;
  return gaps.map(({ fromAt, toAt, reason }) => ({
    start: Math.floor(fromAt.getTime() / 1_000),
    end: toAt === null ? null : Math.ceil(toAt.getTime() / 1_000),
    cause: reason,
  }));
}

/** An answer about a past time: its gaps, and how long it may be cached. An open gap gets an end later. */
export async function readPastGaps(
  db: Queryable,
  { venue, marketId }: { venue: string; marketId: string },
  { start, end }: TimeRange,
): Promise<{ feed_gaps: FeedGapBody[] | undefined; hasOpen: boolean }> {
  if (end <= start) return { feed_gaps: undefined, hasOpen: false };
  const range = { fromMs: start * 1_000, toMs: end * 1_000, limit: MAX_GAPS };
  const gaps = await readGaps(db, { venue, marketIds: [marketId], affected: 'books', ...range });
  return { feed_gaps: presentFeedGaps(gaps), hasOpen: gaps.some(({ toAt }) => toAt === null) };
}
