import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { ListAnswer, Parameters } from '../../../../src/venues/kalshi/client.ts';
import type { FeedRow } from '../../../../src/venues/kalshi/parse-trade.ts';
import { readTradePage } from '../../../../src/venues/kalshi/walk-trades.ts';
import type { TapeStep } from '../../../../src/venues/tape-walk.ts';

const START = Date.UTC(2026, 6, 1) / 1000;
const SETTINGS = {
  pageSize: 5,
  overlapSeconds: 10,
  overlapReads: 8,
  initialLookbackSeconds: 1_000,
  longGapSeconds: 100,
  headEveryMs: 1_000,
};

interface Print {
  id: string;
  second: number;
}

/** A feed with keyset cursors. A test may change each answer. */
class Feed {
  now = START;
  prints: Print[] = [];
  queries: Parameters[] = [];
  bend: (answer: ListAnswer, query: Parameters) => ListAnswer = (answer) => answer;

  print(second: number, count = 1): void {
    for (let each = 0; each < count; each += 1) this.prints.push({ id: `id-${this.prints.length}`, second });
    this.prints.sort((a, b) => a.second - b.second);
  }

  list(query: Parameters): ListAnswer {
    this.queries.push(query);
    const { min_ts = 0, max_ts = Number.POSITIVE_INFINITY, cursor, limit } = query;
    const inside = this.prints
      .toReversed()
      .filter(({ second }) => second >= Number(min_ts) && second <= Number(max_ts));
    const start = cursor === undefined ? 0 : inside.findIndex(({ id }) => id === cursor) + 1;
    const rows = inside.slice(start, start + Number(limit));
    const isLast = start + rows.length >= inside.length;
    const last = rows.at(-1);
    const answer = { rows: rows.map(rowOf), ...(!isLast && last && { nextCursor: last.id }) };
    return this.bend(answer, query);
  }
}

function rowOf({ id, second }: Print): unknown {
  return {
    trade_id: id,
    ticker: 'KXA',
    count_fp: '1.00',
    yes_price_dollars: '0.5000',
    taker_side: 'yes',
    created_time: new Date(second * 1000).toISOString(),
  };
}

async function follow(
  feed: Feed,
  from: unknown,
  seen: Set<string>,
): Promise<{ position: unknown; pages: TapeStep<FeedRow>[] }> {
  const pages: TapeStep<FeedRow>[] = [];
  let position = from;
  for (let at = 0; at < 500; at += 1) {
    const page = await readTradePage(position, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
    pages.push(page);
    for (const { trade } of page.rows) if (trade) seen.add(trade.tradeId);
    position = JSON.parse(JSON.stringify(page.position));
    if (!page.more) return { position, pages };
  }
  throw new Error('the walk did not end');
}

describe('the walk over the Kalshi trade feed', () => {
  it('reads a window over many pages, then only new trades and the overlap', async () => {
    const feed = new Feed();
    for (let back = 0; back < 60; back += 1) feed.print(START - back);
    const seen = new Set<string>();
    const { position } = await follow(feed, null, seen);
    expect(seen.size).toBe(60);
    feed.now += 30;
    feed.print(START + 20, 3);
    feed.queries = [];
    const { pages } = await follow(feed, position, seen);
    expect(seen.size).toBe(63);
    expect(feed.queries[0]?.['min_ts']).toBe(START - 10);
    expect(pages.flatMap((page) => page.rows).length).toBe(3 + 11);
  });

  it('reads late rows within the overlap', async () => {
    const feed = new Feed();
    feed.print(START);
    const seen = new Set<string>();
    const { position } = await follow(feed, null, seen);
    feed.print(START - 8);
    await follow(feed, position, seen);
    expect(seen.size).toBe(2);
  });

  it('reads a second with more rows than a page', async () => {
    const feed = new Feed();
    feed.print(START - 2, 23);
    const seen = new Set<string>();
    await follow(feed, null, seen);
    expect(seen.size).toBe(23);
  });

  it('turns a long rest into a gap, and reads new trades before it fills the gap', async () => {
    const feed = new Feed();
    for (let back = 0; back < 900; back += 10) feed.print(START - back);
    const first = await readTradePage(null, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
    expect(first.position).toMatchObject({ watermark: START, gaps: [{ floor: START - 1_000 }] });
    feed.now += 5;
    feed.print(START + 4);
    const second = await readTradePage(first.position, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
    expect(second.rows.map((row) => row.second)).toContain(START + 4);
    const seen = new Set([...first.rows, ...second.rows].flatMap(({ trade }) => trade?.tradeId ?? []));
    const { position } = await follow(feed, second.position, seen);
    expect(seen.size).toBe(feed.prints.length);
    expect(position).toMatchObject({ watermark: START + 4, gaps: [] });
  });

  it('fills a gap although each walk over the newest trades lasts longer than their interval', async () => {
    const feed = new Feed();
    for (let back = 0; back < 300; back += 10) feed.print(START - back);
    const seen = new Set<string>();
    let position: unknown = null;
    for (let calls = 0; calls < 40; calls += 1) {
      const page = await readTradePage(position, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
      for (const { trade } of page.rows) if (trade) seen.add(trade.tradeId);
      position = JSON.parse(JSON.stringify(page.position));
      feed.now += 5;
      feed.print(feed.now - 1);
    }
    expect(position).toMatchObject({ gaps: [] });
    expect(feed.prints.filter(({ id, second }) => second <= START && !seen.has(id))).toEqual([]);
  });

  it('continues by time when the venue refuses a cursor, and loses nothing', async () => {
    const feed = new Feed();
    for (let back = 0; back < 40; back += 1) feed.print(START - back);
    let refusals = 0;
    feed.bend = (answer, { cursor }) => {
      if (cursor === undefined || refusals === 2) return answer;
      refusals += 1;
      throw new VenueError('kalshi', 'http_status', 'bad cursor', { retryable: false, statusCode: 400 });
    };
    const seen = new Set<string>();
    const { pages } = await follow(feed, null, seen);
    expect(refusals).toBe(2);
    expect(seen.size).toBe(40);
    expect(pages.flatMap((page) => page.truncated ?? [])).toEqual([]);
  });

  it('ends and reports the unread part when the venue repeats its cursor endlessly', async () => {
    const feed = new Feed();
    feed.print(START - 2, 20);
    feed.bend = (answer) => ({ rows: answer.rows, nextCursor: 'same' });
    const { position, pages } = await follow(feed, null, new Set());
    expect(position).toMatchObject({ watermark: START - 2, gaps: [] });
    expect(pages.flatMap((page) => page.truncated ?? [])).toEqual([expect.stringMatching(/repeats its cursor/)]);
  });

  it('gives up a stretch when the venue ignores the end of a window', async () => {
    const feed = new Feed();
    for (let back = 0; back < 900; back += 10) feed.print(START - back);
    const first = await readTradePage(null, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
    feed.bend = (_, { cursor, max_ts }) => {
      if (cursor === undefined && max_ts !== undefined) return { rows: [rowOf({ id: 'new', second: START + 50 })] };
      throw new VenueError('kalshi', 'http_status', 'bad cursor', { retryable: false, statusCode: 400 });
    };
    const { position, pages } = await follow(feed, first.position, new Set());
    expect(position).toMatchObject({ gaps: [] });
    expect(pages.flatMap((page) => page.truncated ?? [])).toEqual([expect.stringMatching(/ignores the end/)]);
  });

  it('throws and keeps its position when a whole page is unreadable', async () => {
    const feed = new Feed();
    feed.bend = () => ({ rows: Array.from({ length: 25 }, () => ({ id: 1 })) });
    const page = readTradePage(null, feed.now * 1000, SETTINGS, async (query) => feed.list(query));
    await expect(page).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('keeps the watermark at or below the clock when a trade is from the future', async () => {
    const feed = new Feed();
    feed.print(START + 200);
    const { position } = await follow(feed, null, new Set());
    expect(position).toMatchObject({ watermark: START });
  });
});

describe('the walk of a process that goes on', () => {
  const GOING: typeof SETTINGS = { ...SETTINGS, pageSize: 100, overlapSeconds: 120, longGapSeconds: 300 };

  /** A poller that remembers what it stored, as `poll-trades` does. */
  class Poller {
    readonly ids = new Set<string>();
    position: unknown = null;
    claims: number[] = [];
    isContinued = false;

    readonly feed: Feed;
    readonly #settings: typeof SETTINGS;

    constructor(feed: Feed, settings = GOING) {
      this.feed = feed;
      this.#settings = settings;
    }

    async tick(): Promise<{ requests: number; rows: number }> {
      this.feed.queries = [];
      let rows = 0;
      for (let more = true; more; ) {
        const page = await readTradePage(
          this.position,
          this.feed.now * 1000,
          this.#settings,
          async (query) => this.feed.list(query),
          { isStored: (id) => this.ids.has(id), isContinued: this.isContinued },
        );
        rows += page.rows.length;
        for (const { trade } of page.rows) if (trade) this.ids.add(trade.tradeId);
        if (page.caughtUpMs !== undefined) this.claims.push(page.caughtUpMs / 1000);
        this.position = JSON.parse(JSON.stringify(page.position));
        this.isContinued = true;
        ({ more } = page);
      }
      return { requests: this.feed.queries.length, rows };
    }

    /** Ticks every two seconds, with a rate of trades. */
    async run(seconds: number, rate: number): Promise<{ requests: number; rows: number }[]> {
      const ticks: { requests: number; rows: number }[] = [];
      for (let passed = 0; passed < seconds; passed += 2) {
        this.feed.now += 2;
        for (const second of [this.feed.now - 1, this.feed.now]) this.feed.print(second, rate);
        ticks.push(await this.tick());
      }
      return ticks;
    }
  }

  it('reads down to the newest known second, and the overlap every 15 s', async () => {
    const poller = new Poller(new Feed());
    await poller.run(30, 1);
    const floors: number[] = [];
    for (const _ of Array(16)) {
      await poller.run(2, 1);
      expect(poller.feed.queries).toHaveLength(1);
      floors.push(poller.feed.now - Number(poller.feed.queries[0]?.['min_ts']));
    }
    expect(floors.filter((depth) => depth === 2)).toHaveLength(14);
    expect(floors.filter((depth) => depth >= 120)).toHaveLength(2);
  });

  it('finds a trade that the venue shows 120 s late within 15 s', async () => {
    const poller = new Poller(new Feed());
    await poller.run(60, 1);
    for (let late = 0; late < 10; late += 1) {
      poller.feed.print(poller.feed.now - 120);
      const isMissing = () => poller.feed.prints.some(({ id }) => !poller.ids.has(id));
      expect(isMissing()).toBe(true);
      await poller.run(16, 1);
      expect(isMissing()).toBe(false);
      await poller.run(2 * (late % 4), 1);
    }
  });

  it('finds a trade of the newest known second in the next tick', async () => {
    const poller = new Poller(new Feed());
    await poller.run(4, 3);
    poller.feed.print(poller.feed.now, 2);
    await poller.tick();
    expect(poller.ids.size).toBe(poller.feed.prints.length);
  });

  it('reads the overlap at once after a doubt, also one during a walk, and claims nothing between', async () => {
    const poller = new Poller(new Feed());
    await poller.run(16, 1);
    poller.feed.print(poller.feed.now - 100);
    poller.isContinued = false;
    poller.claims = [];
    await poller.run(2, 1);
    expect(poller.ids.size).toBe(poller.feed.prints.length);
    expect(poller.claims).toEqual([poller.feed.now]);
    await poller.run(4, 1);
    expect(poller.claims).toHaveLength(1);
  });

  it('requests a bounded number of pages per tick at any rate, and loses no late trade', async () => {
    // A page per second.
    const [pageSize, rate] = [20, 20];
    const poller = new Poller(new Feed(), { ...GOING, pageSize });
    await poller.run(160, rate);
    const ticks = await poller.run(60, rate);
    // The pages of two seconds and of the known one, one that ends in between, and the overlap, which has 120 pages.
    expect(Math.max(...ticks.map(({ requests }) => requests))).toBeLessThanOrEqual(4 + GOING.overlapReads);
    poller.feed.print(poller.feed.now - 115, 3);
    poller.claims = [];
    await poller.run(100, rate);
    expect(poller.ids.size).toBe(poller.feed.prints.length);
    expect(poller.claims.length).toBeGreaterThan(1);
  });

  it('leaves a position from which the former release reads everything above the overlap again', async () => {
    const poller = new Poller(new Feed());
    await poller.run(20, 1);
    const claimed = poller.claims.at(-1) ?? 0;
    const { v, watermark, gaps, walk } = poller.position as Record<string, unknown>;
    expect({ v, watermark, gaps, walk }).toEqual({ v: 1, watermark: claimed, gaps: [], walk: undefined });
    expect(claimed).toBeLessThan(poller.feed.now);
    const former = { v, watermark, headAtMs: poller.feed.now * 1000, gaps };
    poller.feed.print(claimed - 119);
    poller.position = former;
    await poller.tick();
    expect(poller.ids.size).toBe(poller.feed.prints.length);
  });

  it('takes a changed format for a fault of the page, although most of its rows are known', async () => {
    const poller = new Poller(new Feed());
    await poller.run(30, 2);
    poller.feed.bend = (answer) => ({
      ...answer,
      rows: answer.rows.map((row) => ({ ...(row as object), count_fp: 'many' })),
    });
    poller.isContinued = false;
    await expect(poller.run(2, 2)).rejects.toMatchObject({ code: 'invalid_payload' });
    poller.feed.bend = (answer) => answer;
    await poller.tick();
    expect(poller.ids.size).toBe(poller.feed.prints.length);
  });
});
