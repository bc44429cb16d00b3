import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import { eventsSizeAt, listingSizeAt } from '../../../../src/venues/limitless/listing.ts';
import { identifyTrades } from '../../../../src/venues/limitless/parse-trade.ts';
import { readTradePage, type TradeWalkSettings } from '../../../../src/venues/limitless/walk-trades.ts';
import { event, NOW_MS, pageOf } from './feed.ts';

type TradePage = Awaited<ReturnType<typeof readTradePage>>;

const SETTINGS: TradeWalkSettings = {
  listingPageSize: 25,
  pageSize: 100,
  pagesPerCall: 2,
  feedsPerCall: 4,
  roundEveryMs: 10_000,
  overlapMs: 120_000,
  initialLookbackMs: 3_600_000,
};

interface Feed {
  volume: string;
  events: unknown[];
  ageMs?: number;
  error?: VenueError;
  /** A pool has no tokens and no feed. */
  isPool?: true;
}

/** A venue of markets by slug, and a walk over it. */
class Venue {
  readonly feeds = new Map<string, Feed>();
  readonly reads: string[] = [];
  /** Changed volumes of pools. */
  unread = 0;
  nowMs = NOW_MS;
  position: unknown = null;

  /** Follows the walk until it rests; returns the ids of the trades. */
  async follow(onPage: (page: TradePage) => void = () => undefined, settings = SETTINGS): Promise<string[]> {
    const ids: string[] = [];
    for (let calls = 0; calls < 100; calls += 1) {
      const page = await readTradePage(this.position, this.nowMs, settings, {
        listMarkets: async ({ page: number, limit }) => {
          const rows = [...this.feeds]
            .map(([slug, { volume, isPool }]) => (isPool ? pool(slug, volume) : row(slug, volume)))
            .slice((number - 1) * limit, number * limit);
          return { rows, isEmpty: rows.length === 0, ageMs: 0, observedAt: 0 };
        },
        listEvents: async (slug, query) => {
          this.reads.push(slug);
          const feed = this.feeds.get(slug) ?? this.gone.get(slug);
          if (feed === undefined)
            throw new VenueError('limitless', 'http_status', 'HTTP 404', { retryable: false, statusCode: 404 });
          if (feed.error) throw feed.error;
          return pageOf(feed.events, query, feed.ageMs);
        },
      });
      onPage(page);
      this.unread += page.unread;
      ids.push(...identifyTrades(page.rows).records.map((trade) => trade.tradeId));
      this.position = JSON.parse(JSON.stringify(page.position));
      if (!page.more) return ids;
    }
    throw new Error('the walk does not rest');
  }

  readonly gone = new Map<string, Feed>();
  get markets(): TradePage['position']['markets'] {
    return (this.position as TradePage['position']).markets;
  }
}

function row(slug: string, volume: string) {
  return { slug, tradeType: 'clob', tokens: { yes: '10', no: '11' }, volume };
}

function pool(slug: string, volume: string) {
  return { slug, tradeType: 'amm', tokens: null, volume };
}

async function started(feeds: Record<string, Feed>): Promise<Venue> {
  const venue = new Venue();
  for (const [slug, feed] of Object.entries(feeds)) venue.feeds.set(slug, feed);
  await venue.follow();
  venue.reads.length = 0;
  return venue;
}

describe('readTradePage', () => {
  it('reads the feeds of markets that traded, and no others', async () => {
    const venue = new Venue();
    venue.feeds.set('busy', { volume: '5', events: [event(500), event(400)] });
    venue.feeds.set('quiet', { volume: '0', events: [] });
    expect(await venue.follow()).toHaveLength(2);
    expect(venue.reads).toEqual(['busy']);
  });

  it('counts the changed volumes of pools, whose trades it does not read', async () => {
    const venue = await started({ pool: { volume: '5', events: [event(500)], isPool: true } });
    expect(venue.unread).toBe(0);
    for (const volume of ['6', '6', '7']) {
      venue.feeds.set('pool', { volume, events: [], isPool: true });
      venue.nowMs += SETTINGS.roundEveryMs;
      await venue.follow();
    }
    expect([venue.unread, venue.reads, Object.keys(venue.markets)]).toEqual([2, [], []]);
    venue.feeds.delete('pool');
    venue.feeds.set('other', { volume: '0', events: [] });
    venue.nowMs += SETTINGS.roundEveryMs;
    await venue.follow();
    expect((venue.position as TradePage['position']).feedless).toEqual({});
  });

  it('reads a feed again when its volume changes, and not before a round is due', async () => {
    const venue = await started({ a: { volume: '5', events: [event(500)] } });
    venue.feeds.set('a', { volume: '6', events: [event(100), event(500)] });
    expect(await venue.follow()).toEqual([]);
    venue.nowMs += SETTINGS.roundEveryMs;
    expect(await venue.follow()).toHaveLength(2);
    expect(venue.reads).toEqual(['a']);
  });

  it('reads a feed once more after the time for which the venue caches it', async () => {
    const venue = await started({ a: { volume: '5', events: [] } });
    // The volume was ahead of the feed.
    venue.feeds.set('a', { volume: '5', events: [event(500)] });
    venue.nowMs += 20_000;
    expect(await venue.follow()).toEqual([]);
    venue.nowMs += 20_000;
    expect(await venue.follow()).toHaveLength(1);
    venue.nowMs += 20_000;
    await venue.follow();
    expect(venue.reads).toEqual(['a']);
  });

  it('reads a feed again that came from a cache of before the change', async () => {
    const venue = await started({ a: { volume: '5', events: [], ageMs: 20_000 } });
    venue.feeds.set('a', { volume: '5', events: [event(500)] });
    venue.nowMs += 10_000;
    expect(await venue.follow()).toHaveLength(1);
  });

  it('reads a market that leaves the listing to its last trade, twice, and forgets it', async () => {
    const venue = await started({ a: { volume: '5', events: [event(500)] }, b: { volume: '0', events: [] } });
    venue.feeds.delete('a');
    venue.gone.set('a', { volume: '6', events: [event(100), event(500)] });
    venue.nowMs += 20_000;
    expect(await venue.follow()).toHaveLength(2);
    venue.nowMs += 60_000;
    await venue.follow();
    venue.nowMs += 20_000;
    await venue.follow();
    expect(venue.reads).toEqual(['a', 'a']);
    expect(Object.keys(venue.markets)).toEqual(['b']);
  });

  it('forgets a market that the venue does not know any more', async () => {
    const venue = await started({ a: { volume: '5', events: [event(500)] }, b: { volume: '0', events: [] } });
    venue.feeds.delete('a');
    for (let rounds = 0; rounds < 4; rounds += 1) {
      venue.nowMs += 60_000;
      await venue.follow();
    }
    expect(Object.keys(venue.markets)).toEqual(['b']);
  });

  it('keeps its markets when the venue lists nothing', async () => {
    const venue = await started({ a: { volume: '5', events: [event(500)] } });
    venue.feeds.clear();
    venue.nowMs += 60_000;
    venue.gone.set('a', { volume: '5', events: [event(500)] });
    await venue.follow();
    expect(venue.markets['a']).not.toHaveProperty('gone');
  });

  it('goes on with the other feeds when the venue cannot serve one, and comes back to it', async () => {
    const error = new VenueError('limitless', 'http_status', 'HTTP 500', { retryable: true, statusCode: 500 });
    const venue = new Venue();
    venue.feeds.set('bad', { volume: '5', events: [], error });
    venue.feeds.set('good', { volume: '5', events: [event(500)] });
    expect(await venue.follow()).toHaveLength(1);
    venue.feeds.set('bad', { volume: '5', events: [event(300)] });
    venue.nowMs += SETTINGS.roundEveryMs;
    expect(await venue.follow()).toHaveLength(1);
  });

  it('goes on behind several feeds of which the venue serves none, and reports the fault', async () => {
    const error = new VenueError('limitless', 'http_status', 'HTTP 500', { retryable: true, statusCode: 500 });
    const venue = new Venue();
    venue.feeds.set('a', { volume: '5', events: [], error });
    venue.feeds.set('b', { volume: '5', events: [], error });
    const faults: unknown[] = [];
    expect(await venue.follow((page) => faults.push(...(page.fault ? [page.fault] : [])))).toEqual([]);
    expect(new Set(faults)).toEqual(new Set([error]));
    venue.feeds.set('c', { volume: '5', events: [event(500)] });
    venue.nowMs += SETTINGS.roundEveryMs;
    expect(await venue.follow()).toHaveLength(1);
  });

  it('gives its pages one after the other when each call ends after its first requests', async () => {
    const slugs = ['a', 'b', 'c', 'd', 'e'];
    const events = Array.from({ length: 450 }, (_, index) => event(1_000 + index * 10));
    const venue = new Venue();
    for (const slug of slugs) venue.feeds.set(slug, { volume: '5', events });
    const rows: number[] = [];
    const ids = await venue.follow((page) => rows.push(page.rows.length), { ...SETTINGS, callMs: 0 });
    expect(ids).toHaveLength(slugs.length * events.length);
    expect(venue.reads.length).toBeGreaterThan(slugs.length * 4);
    // Two feeds at once, a page each.
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * SETTINGS.pageSize);
  });

  it('keeps the feeds that it read before the host failed, and continues behind them', async () => {
    const late = new VenueError('limitless', 'process_late', 'late', { retryable: true });
    const venue = new Venue();
    for (const slug of ['a', 'c']) venue.feeds.set(slug, { volume: '5', events: [event(500)] });
    venue.feeds.set('b', { volume: '5', events: [], error: late });
    const faults: unknown[] = [];
    const first = venue.follow((page) => {
      faults.push(...(page.fault ? [page.fault] : []));
      if (page.fault) venue.feeds.set('b', { volume: '5', events: [event(400)] });
    });
    expect(await first).toHaveLength(3);
    expect(faults).toEqual([late]);
  });

  it('reports a rejected row once, although the overlap reads it again', async () => {
    const rejections: number[] = [];
    const rows = [event(500), event(600, { price: 'much' })];
    let position: unknown = null;
    for (const [nowMs, volume] of [
      [NOW_MS, '5'],
      [NOW_MS + 20_000, '6'],
    ] as const) {
      for (let more = true; more; ) {
        const page = await readTradePage(position, nowMs, SETTINGS, {
          listMarkets: async ({ page: number }) => ({
            rows: number === 1 ? [row('a', volume)] : [],
            isEmpty: number > 1,
            ageMs: 0,
            observedAt: 0,
          }),
          listEvents: async (_slug, query) => pageOf(rows, query),
        });
        rejections.push(...page.rows.filter((each) => each.rejected).map((each) => each.ms ?? 0));
        ({ position, more } = page);
      }
    }
    expect(rejections).toEqual([NOW_MS - 600]);
  });

  it('gives up the feed of a market that left the listing an hour ago, and reports its last trades as lost', async () => {
    const venue = new Venue();
    venue.feeds.set('a', { volume: '5', events: [event(500)] });
    venue.feeds.set('b', { volume: '5', events: [event(600)] });
    await venue.follow();
    venue.gone.set('a', {
      volume: '5',
      events: [],
      error: new VenueError('limitless', 'http_status', 'HTTP 500', { retryable: true }),
    });
    venue.feeds.delete('a');
    const lost: string[] = [];
    const isKept = () => Object.hasOwn(venue.markets, 'a');
    const note = ({ truncated }: TradePage) => {
      if (truncated?.includes('left the listing')) lost.push(truncated);
    };
    venue.nowMs += 20_000;
    await venue.follow(note);
    venue.nowMs += 3_500_000;
    await venue.follow(note);
    expect([isKept(), lost]).toEqual([true, []]);
    venue.nowMs += 200_000;
    await venue.follow(note);
    expect([isKept(), lost.length]).toEqual([false, 1]);
  });

  it('goes on in a long feed at the next call, with places that new rows do not move', async () => {
    const events = Array.from({ length: 450 }, (_, index) => event(1_000 + index * 10));
    const venue = new Venue();
    venue.feeds.set('a', { volume: '5', events });
    const ids = await venue.follow();
    expect(new Set(ids).size).toBe(450);
    expect(venue.reads.length).toBeGreaterThan(4);
  });
});

describe('page sizes', () => {
  it('repeat no address within the time for which the venue caches it', () => {
    const listings = Array.from({ length: 6 }, (_, slot) => listingSizeAt(25, NOW_MS + slot * 5_000));
    const feeds = Array.from({ length: 31 }, (_, second) => eventsSizeAt(100, NOW_MS + second * 1_000));
    expect(new Set(listings).size).toBe(6);
    expect(new Set(feeds).size).toBe(31);
    expect([Math.max(...listings), Math.max(...feeds)]).toEqual([25, 100]);
    expect(Math.min(...listings, ...feeds)).toBeGreaterThan(0);
  });
});
