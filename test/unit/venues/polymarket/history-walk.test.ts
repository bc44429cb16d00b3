import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HistoryStep, readHistoryPage } from '../../../../src/venues/polymarket/history-walk.ts';
import { identifyTrades } from '../../../../src/venues/polymarket/parse-trade.ts';
import { conditionIdOf, Feed, type Row, START } from './trade-feed.ts';

const MARKET = conditionIdOf(1);
const SPAN = 60;
const EVERYTHING = { fromMs: 0, toMs: (START + 1) * 1000 };

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

  async page(isStored = true): Promise<HistoryStep> {
    const request = { marketId: this.marketId, outcomeIds: ['111'], ...this.range };
    const settings = { pageSize: Math.max(6, this.feed.pageCap) };
    const step = await readHistoryPage(request, this.position, START * 1000, settings, this.feed.list);
    expect(step.reachedMs).toBeLessThanOrEqual(this.reachedMs);
    if (!isStored) return step;
    const { records, rejected } = identifyTrades(step.rows);
    this.ids.push(...records.map((trade) => trade.tradeId));
    this.rejected.push(...rejected.map((each) => each.reason));
    if (step.truncated !== undefined) this.truncated.push(step.truncated);
    // The walk ends because each page reaches further back.
    if (step.more) expect(step.reachedMs).toBeLessThan(this.reachedMs);
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

const isOf = (market: number) => (row: Row) => row.conditionId === conditionIdOf(market);

/** A print each second of the last so many. */
function steadyFeed(seconds: number): Feed {
  const feed = new Feed();
  for (let age = seconds; age > 0; age -= 1) feed.trade(age, START - age);
  return feed;
}

describe('readHistoryPage', () => {
  it('yields each print of the market in the range once, however pages cut it and wherever it dies', async () => {
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
        fc.constantFrom('inclusive' as const, 'exclusive' as const),
        fc.constantFrom(3, 6),
        fc.boolean(),
        fc.infiniteStream(fc.boolean()),
        async (prints, [one, other], endBehaviour, pageCap, isDeaf, isStored) => {
          const feed = new Feed();
          Object.assign(feed, { endBehaviour, pageCap, deafTo: isDeaf ? ['start'] : [] });
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

  it('names the market and the window in each request, whichever way the venue counts its ends', async () => {
    const feed = steadyFeed(10);
    await new Walker(feed, { fromMs: (START - 8) * 1000, toMs: (START - 2) * 1000 }).walk();
    expect(feed.requests.length).toBeGreaterThan(1);
    for (const { market, start, end } of feed.requests) {
      expect({ market, start }).toEqual({ market: MARKET, start: START - 9 });
      expect(end).toBeLessThanOrEqual(START - 2);
    }
  });

  it.each([
    { beyond: 'repeat', after: 12, endBehaviour: 'inclusive' },
    { beyond: 'refuse', after: 12, endBehaviour: 'inclusive' },
    { beyond: 'refuse', after: 12, endBehaviour: 'exclusive' },
    // Where pages are empty only this far down, they end the paging and not the feed.
    { beyond: 'empty', after: 3_000, endBehaviour: 'inclusive' },
  ] as const)('goes on below a second of which the venue would $beyond the rest ($endBehaviour end)', async (venue) => {
    const { beyond, after, endBehaviour } = venue;
    const feed = new Feed();
    Object.assign(feed, { offsetCap: { after, beyond }, endBehaviour, pageCap: beyond === 'empty' ? 1_000 : 6 });
    for (const age of [40, 11, 11]) feed.trade(1, START - age);
    for (let each = 0; each < after + feed.pageCap + 30; each += 1) feed.trade(1 + (each % 5), START - 10);
    feed.trade(1, START - 5);
    const walker = await new Walker(feed).walk();
    const truth = new Set(feed.truth());
    expect(walker.ids.filter((id) => !truth.has(id))).toEqual([]);
    // The second just below, too.
    const readable = feed.truth((row) => row.timestamp !== START - 10);
    expect(walker.ids).toEqual(expect.arrayContaining(readable));
    expect(walker.ids.length).toBeLessThan(truth.size);
    expect(walker.truncated).toEqual([expect.stringContaining(`second ${START - 10}:`)]);
    expect(walker.reachedMs).toBe(0);
  });

  it.each(['ignored', 'refused'] as const)('stops where the window is %s, and says what is left', async (behaviour) => {
    const feed = steadyFeed(30);
    feed.endBehaviour = behaviour;
    const toMs = (START - 12) * 1000;
    const walker = await new Walker(feed, { fromMs: (START - 20) * 1000, toMs }).walk();
    expect(feed.requests).toHaveLength(1);
    expect(walker.ids).toEqual([]);
    expect(walker.truncated).toEqual([
      `trades from ${START - 20} to ${START - 13} (epoch seconds): the venue ignores or refuses the window`,
    ]);
    expect(walker.reachedMs).toBe(toMs);
  });

  it('stops with what it has where the window is ignored from some page on', async () => {
    const feed = steadyFeed(30);
    const walker = new Walker(feed);
    expect((await walker.page()).more).toBe(true);
    feed.endBehaviour = 'ignored';
    expect((await walker.page()).more).toBe(false);
    expect(walker.ids.length).toBeGreaterThan(0);
    expect(walker.truncated).toHaveLength(1);
    expect(walker.reachedMs).toBe((START - 5) * 1000);
  });

  it('takes no trades of other markets from a venue that ignores which is asked for', async () => {
    const feed = steadyFeed(10);
    feed.trade(1, START - 3, 2);
    feed.deafTo = ['market'];
    const walker = await new Walker(feed).walk();
    expect(walker.ids).toEqual([]);
    expect(walker.truncated).toEqual([expect.stringContaining('ignores which market')]);
  });

  it('asks nothing about an id that no market can have, nor about an empty range', async () => {
    const feed = steadyFeed(10);
    const odd = await new Walker(feed, EVERYTHING, '0xab:0').walk();
    const empty = await new Walker(feed, { fromMs: START * 1000 - 900, toMs: START * 1000 - 100 }).walk();
    expect(feed.requests).toEqual([]);
    expect([odd.reachedMs, empty.reachedMs]).toEqual([0, START * 1000 - 900]);
    expect([odd.truncated, empty.truncated]).toEqual([[], []]);
  });

  it('reports rows that are refused, and those without a time too', async () => {
    const feed = new Feed();
    feed.trade(1, START - 8);
    feed.trade(1, START - 5);
    const sound = feed.rows[0] as Row;
    feed.rows.push({ ...sound, price: 7, timestamp: START - 4 });
    const list = async (query: Parameters<Feed['list']>[0]) => {
      const rows = await feed.list(query);
      return query.offset === 0 && (query.end ?? 0) > START ? [{ ...sound, timestamp: 'soon' }, ...rows] : rows;
    };
    const request = { marketId: MARKET, outcomeIds: [], ...EVERYTHING };
    const { rows } = await readHistoryPage(request, null, START * 1000, { pageSize: 6 }, list);
    expect(
      identifyTrades(rows)
        .rejected.map((each) => each.reason)
        .sort(),
    ).toEqual(['invalid_field', 'price_out_of_range']);
  });

  it('keeps its place when a whole page is unreadable', async () => {
    const row = { conditionId: MARKET, timestamp: START - 5 };
    const list = async () => Array.from({ length: 20 }, () => row);
    const request = { marketId: MARKET, outcomeIds: [], ...EVERYTHING };
    await expect(readHistoryPage(request, null, START * 1000, { pageSize: 6 }, list)).rejects.toMatchObject({
      code: 'invalid_payload',
    });
  });

  it('begins at the end of its range where the stored position is not its own', async () => {
    for (const foreign of [{ v: 2, next: 5 }, 'text', { v: 1, next: START + 500 }]) {
      const feed = steadyFeed(10);
      const walker = new Walker(feed, { fromMs: 0, toMs: (START - 4) * 1000 });
      walker.position = foreign;
      await walker.walk();
      expect(walker.sorted()).toEqual(feed.truth((row) => row.timestamp < START - 4));
    }
  });
});
