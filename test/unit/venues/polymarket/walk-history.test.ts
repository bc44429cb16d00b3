import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identifyTrades } from '../../../../src/venues/polymarket/parse-trade.ts';
import { readHistoryPage } from '../../../../src/venues/polymarket/walk-history.ts';
import { conditionIdOf, Feed, PAGE_SIZE, type Row, START } from './trade-feed.ts';

const MARKET = conditionIdOf(1);
const SPAN = 60;
const SETTINGS = { pageSize: PAGE_SIZE, pagesPerCall: 2 };
const EVERYTHING = { fromMs: (START - 86_400) * 1000, toMs: (START + 1) * 1000 };

interface Range {
  fromMs: number;
  toMs: number;
}

class Walker {
  readonly ids: string[] = [];
  readonly truncated: string[] = [];
  readonly rejected: string[] = [];
  position: unknown = null;
  reachedMs: number;
  readonly marketId: string;
  private readonly feed: Feed;
  private readonly range: Range;

  constructor(feed: Feed, range: Range = EVERYTHING, marketId = MARKET) {
    this.feed = feed;
    this.range = range;
    this.marketId = marketId;
    this.reachedMs = range.toMs;
  }

  async page(isStored = true) {
    const request = { marketId: this.marketId, outcomeIds: ['111'], ...this.range };
    const step = await readHistoryPage(request, this.position, START * 1000, SETTINGS, this.feed.list);
    expect(step.reachedMs).toBeLessThanOrEqual(this.reachedMs);
    if (!isStored) return step;
    const { records, rejected } = identifyTrades(step.rows);
    this.ids.push(...records.map((trade) => trade.tradeId));
    this.rejected.push(...rejected.map((each) => each.reason));
    if (step.truncated !== undefined) this.truncated.push(step.truncated);
    // The walk ends because each call reaches further back, or skips further down.
    const isFurther =
      step.reachedMs < this.reachedMs || JSON.stringify(step.position) !== JSON.stringify(this.position);
    if (step.more) expect(isFurther).toBe(true);
    this.reachedMs = step.reachedMs;
    this.position = JSON.parse(JSON.stringify(step.position));
    return step;
  }

  async walk(): Promise<this> {
    for (let pages = 0; pages < 1_000; pages += 1) if (!(await this.page()).more) return this;
    throw new Error('the walk does not end');
  }

  sorted(): string[] {
    return [...this.ids].sort();
  }
}

const isOf = (market: number) => (row: Row) => row.condition_id === conditionIdOf(market);

/** One trade in each of the last seconds. */
function steadyFeed(seconds: number): Feed {
  const feed = new Feed();
  for (let age = seconds; age > 0; age -= 1) feed.trade(age, START - age);
  return feed;
}

describe('readHistoryPage', () => {
  it('yields each trade of the market in the range once, at any page cuts and after any crash', async () => {
    const print = fc.record({
      kind: fc.nat(5),
      age: fc.nat(SPAN),
      market: fc.integer({ min: 1, max: 2 }),
      count: fc.integer({ min: 1, max: 9 }),
    });
    const moment = fc.integer({ min: (START - SPAN) * 1000, max: (START + 1) * 1000 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(print, { maxLength: 25 }),
        fc.tuple(moment, moment),
        fc.constantFrom(3, 6),
        fc.infiniteStream(fc.boolean()),
        async (prints, [one, other], pageCap, isStored) => {
          const feed = new Feed();
          Object.assign(feed, { pageCap, cdnSeconds: 300 });
          for (const { kind, age, market, count } of prints) {
            for (let each = 0; each < count; each += 1) feed.trade(kind + each, START - age, market);
          }
          const range = { fromMs: Math.min(one, other), toMs: Math.max(one, other) };
          const walker = new Walker(feed, range);
          for (let isMore = true; isMore; ) {
            const stored = isStored.next().value === true;
            const step = await walker.page(stored);
            if (stored) isMore = step.more;
          }
          const inRange = ({ timestamp }: Row) => timestamp * 1000 >= range.fromMs && timestamp * 1000 < range.toMs;
          expect(walker.sorted()).toEqual(feed.truth((row) => isOf(1)(row) && inRange(row)));
          expect(walker.reachedMs).toBe(range.fromMs);
          expect(walker.position).toBeNull();
          expect(walker.truncated).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('names the market in each request, skips trades newer than the range, and stops below it', async () => {
    const feed = steadyFeed(100);
    const walker = await new Walker(feed, { fromMs: (START - 60) * 1000, toMs: (START - 50) * 1000 }).walk();
    expect(walker.sorted()).toEqual(feed.truth((row) => row.timestamp >= START - 60 && row.timestamp < START - 50));
    expect(new Set(feed.requests.map(({ market }) => market))).toEqual(new Set([MARKET]));
    // 60 rows in pages of 6; of two calls with two pages each, one page is read again.
    expect(feed.requests.length).toBeLessThan(20);
  });

  it('continues by seconds from a position of an older release', async () => {
    const feed = steadyFeed(40);
    const walker = new Walker(feed);
    walker.position = { v: 1, next: START - 20 };
    await walker.walk();
    expect(walker.sorted()).toEqual(feed.truth((row) => row.timestamp <= START - 20));
  });

  it('reports the range before the three years that the venue serves', async () => {
    const range = { fromMs: (START - 4 * 365 * 86_400) * 1000, toMs: START * 1000 };
    const young = await new Walker(steadyFeed(10), range).walk();
    expect(young.truncated).toEqual([]);
    const feed = new Feed();
    feed.trade(1, START - 3 * 365 * 86_400 + 5);
    const walker = await new Walker(feed, range).walk();
    expect(walker.sorted()).toEqual(feed.truth());
    expect(walker.truncated).toEqual([expect.stringContaining('three years')]);
    expect(walker.reachedMs).toBe((START - 3 * 365 * 86_400) * 1000);
  });

  it('drops trades of other markets when the venue ignores the market of the request', async () => {
    const feed = steadyFeed(10);
    feed.trade(1, START - 3, 2);
    feed.isDeaf = true;
    const walker = await new Walker(feed).walk();
    expect(walker.ids).toEqual([]);
    expect(walker.truncated).toEqual([expect.stringContaining('ignores the market')]);
  });

  it('sends no request for an invalid market id or an empty range', async () => {
    const feed = steadyFeed(10);
    const odd = await new Walker(feed, EVERYTHING, '0xab:0').walk();
    const empty = await new Walker(feed, { fromMs: START * 1000 - 900, toMs: START * 1000 - 100 }).walk();
    expect(feed.requests).toEqual([]);
    expect([odd.reachedMs, empty.reachedMs]).toEqual([EVERYTHING.fromMs, START * 1000 - 900]);
    expect([odd.truncated, empty.truncated]).toEqual([[], []]);
  });

  it('reports rejected rows, including rows without a time', async () => {
    const feed = new Feed();
    feed.trade(1, START - 8);
    feed.trade(1, START - 5);
    const sound = feed.rows[0] as Row;
    feed.rows.push({ ...sound, price: 7, timestamp: START - 4 });
    const list = async (query: Parameters<Feed['list']>[0]) => {
      const page = await feed.list(query);
      return { ...page, rows: [{ ...sound, timestamp: 'soon' }, ...page.rows] };
    };
    const request = { marketId: MARKET, outcomeIds: [], ...EVERYTHING };
    const { rows } = await readHistoryPage(request, null, START * 1000, SETTINGS, list);
    expect(
      identifyTrades(rows)
        .rejected.map((each) => each.reason)
        .sort(),
    ).toEqual(['invalid_field', 'price_out_of_range']);
  });

  it('keeps its place when a whole page is unreadable', async () => {
    const row = { condition_id: MARKET, timestamp: START - 5 };
    const list = async () => ({ rows: Array.from({ length: 20 }, () => row), ageMs: 0 });
    const request = { marketId: MARKET, outcomeIds: [], ...EVERYTHING };
    await expect(readHistoryPage(request, null, START * 1000, SETTINGS, list)).rejects.toMatchObject({
      code: 'invalid_payload',
    });
  });

  it('begins at the end of its range when the stored position belongs to another range', async () => {
    for (const foreign of [{ v: 2, next: 5 }, 'text', { v: 1, next: START + 500 }]) {
      const feed = steadyFeed(10);
      const walker = new Walker(feed, { ...EVERYTHING, toMs: (START - 4) * 1000 });
      walker.position = foreign;
      await walker.walk();
      expect(walker.sorted()).toEqual(feed.truth((row) => row.timestamp < START - 4));
    }
  });
});
