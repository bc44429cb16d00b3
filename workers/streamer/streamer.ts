import { setTimeout as delay } from 'node:timers/promises';
import type { VenueName } from '../../src/domain/markets/venue.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import { inOrder } from '../../src/runtime/lifecycle.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { type FeedReport, forgetStreamer, reportFeeds } from '../../src/store/feeds/streamers.ts';
import type { FeedTiming } from '../../src/venues/feeds/connection.ts';
import type { FeedOrReason } from '../../src/venues/feeds/feeds.ts';
import { FollowedMarkets } from './followed-markets.ts';
import { VenueFeeds } from './venue-feeds.ts';

/** Leases and reports; slow work must not delay them. */
const LEASE_ROUND_MS = 1_000;
const WORK_ROUND_MS = 1_000;
/** The newest book of a market is stored within this time after the market becomes a followed one. */
const FOLLOWED_ROUND_MS = 1_000;
/** Rounds between two readings of the wanted markets, and between two comparisons with the polls. */
const PLAN_EVERY = 5;

interface StreamerOptions {
  readonly deps: ProcessContext;
  /** Names this streamer in its leases: another id at each start. */
  readonly streamer: string;
  readonly feeds: ReadonlyMap<string, FeedOrReason>;
  readonly timing?: Partial<FeedTiming>;
}

/**
 * Reads the feeds until `stop`. One loop renews leases, reports states and takes free parts; another one chooses markets and compares with
 * the polls; a third one looks for followed markets.
 */
export function startFeeds({ deps, streamer, feeds, timing }: StreamerOptions): { stop(): Promise<void> } {
  const { db, log, tracker } = deps;
  const streaks = new FailureStreaks();
  const stopping = new AbortController();
  const off: FeedReport[] = [];
  const venues: VenueFeeds[] = [];
  const followed = new FollowedMarkets();
  for (const [name, found] of feeds) {
    const venue = name as VenueName;
    if ('feed' in found) venues.push(new VenueFeeds({ deps, streamer, venue, feed: found.feed, followed, timing }));
    else off.push({ venue, state: 'off', reason: found.off, subscribed: 0, messagesPerSecond: 0, lagMs: null });
  }

  async function holdParts(): Promise<void> {
    // A part that is claimed during the statement is not in its answer.
    const before = venues.map((venue) => ({ venue, parts: venue.parts }));
    const { parts: held, streamers } = await reportFeeds(
      db,
      streamer,
      [...off, ...venues.map((venue) => venue.report())],
      venues.flatMap((venue) => venue.seenParts),
    );
    for (const { venue, parts } of before) venue.keep(parts, held);
    await inOrder(venues.map((venue) => () => venue.share(streamers)));
  }

  async function work(count: number): Promise<void> {
    const isDue = count % PLAN_EVERY === 0;
    await inOrder([
      ...venues.map((venue) => () => venue.plan(isDue)),
      ...venues.map((venue) => () => venue.requestLookups()),
      ...(isDue ? venues.map((venue) => () => venue.compare()) : []),
    ]);
  }

  async function repeat(name: string, everyMs: number, round: (count: number) => Promise<void>): Promise<void> {
    const beat = tracker.loop(name, everyMs);
    for (let count = 0; !stopping.signal.aborted; count += 1) {
      const startedAtMs = performance.now();
      try {
        await round(count);
        streaks.succeeded(name);
      } catch (error) {
        const { inARow, shouldLog } = streaks.failed(name);
        log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'round of the streamer failed; will retry');
      }
      beat();
      const pauseMs = Math.max(50, everyMs - (performance.now() - startedAtMs));
      await delay(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const running = [
    repeat('feed-parts', LEASE_ROUND_MS, holdParts),
    repeat('feed-markets', WORK_ROUND_MS, work),
    repeat('followed-markets', FOLLOWED_ROUND_MS, () => followed.look(db)),
  ];
  return {
    async stop() {
      stopping.abort();
      await Promise.all(running);
      await inOrder([...venues.map((venue) => () => venue.stop()), () => forgetStreamer(db, streamer)]);
    },
  };
}
