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
